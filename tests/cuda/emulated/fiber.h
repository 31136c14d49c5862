// A function that can be left in its midst and gone on with later, on a stack of its own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace cairn::kernels::cuda::emulated {

#if defined(__x86_64__)
// Where a thread of execution goes on.
struct Context {
  void *at = nullptr, *stack = nullptr, *frame = nullptr;  // instruction, stack and frame pointers
};

// Leaves here for later and goes on at `to`. In line, without a call or a return: the processor predicts returns by the calls
// it saw, so a `ret` to another stack would be mispredicted at each switch. The compiler keeps what it needs on the stack that is
// left; the frame pointer, which it does not let go, is kept by hand. Nothing is pushed, so a red zone stays whole.
[[gnu::always_inline]] inline void switch_to(Context& from, const Context& to) {
  auto* own = &from;
  auto* next = &to;
  asm volatile(
      R"(
      leaq 1f(%%rip), %%rax
      movq %%rax, 0(%0)
      movq %%rsp, 8(%0)
      movq %%rbp, 16(%0)
      movq 8(%1), %%rsp
      movq 16(%1), %%rbp
      jmpq *0(%1)
    1:
      )"
      : "+D"(own), "+S"(next)
      :
      : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1",
        "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
        "xmm14", "xmm15", "memory", "cc");
}
#else
using Context = ucontext_t;
inline void switch_to(Context& from, const Context& to) { swapcontext(&from, &to); }
#endif

class Fiber {
 public:
  Fiber() : stack_(std::make_unique<char[]>(kStackBytes)) {}
  // The next switch to `context` calls `function`, which never returns: it switches away for good.
  void restart(void (*function)()) {
#if defined(__x86_64__)
    // A function begins 8 bytes below a multiple of 16, where its return address lies: none, so that lists of callers end.
    const auto top = reinterpret_cast<uintptr_t>(stack_.get() + kStackBytes) & ~uintptr_t{15};
    auto** const stack = reinterpret_cast<void**>(top - 8);
    *stack = nullptr;
    context = {reinterpret_cast<void*>(function), stack, nullptr};
#else
    getcontext(&context);
    context.uc_stack.ss_sp = stack_.get();
    context.uc_stack.ss_size = kStackBytes;
    context.uc_link = nullptr;
    makecontext(&context, function, 0);
#endif
  }

  Context context;

 private:
  static constexpr size_t kStackBytes = 64 * 1024;
  std::unique_ptr<char[]> stack_;
};

}  // namespace cairn::kernels::cuda::emulated
