#include "tests/cuda/emulated/fiber.h"

#if defined(__x86_64__)
// Saves what a call must preserve on the present stack, its pointer in *from, and goes on with the stack
// `to`.
extern "C" void cairn_switch_stacks(void** from, void* to);
asm(R"(
  .text
  .p2align 4
  .globl cairn_switch_stacks
  .hidden cairn_switch_stacks
  .type cairn_switch_stacks, @function
cairn_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size cairn_switch_stacks, .-cairn_switch_stacks
)");

namespace cairn::kernels::cuda::emulated {

void Fiber::restart(void (*function)()) {
  constexpr int kSaved = 6;
  auto top = reinterpret_cast<uintptr_t>(stack_.get() + kStackBytes) & ~uintptr_t{15};
  auto** slot = reinterpret_cast<void**>(top) - 2;  // a function begins 8 bytes below a multiple of 16
  *slot = reinterpret_cast<void*>(function);
  for (int i = 0; i < kSaved; ++i) *--slot = nullptr;
  here_ = slot;
}

void Fiber::go_on() { cairn_switch_stacks(&outside_, here_); }
void Fiber::leave() { cairn_switch_stacks(&here_, outside_); }

}  // namespace cairn::kernels::cuda::emulated

#else

namespace cairn::kernels::cuda::emulated {

void Fiber::restart(void (*function)()) {
  getcontext(&here_);
  here_.uc_stack.ss_sp = stack_.get();
  here_.uc_stack.ss_size = kStackBytes;
  here_.uc_link = nullptr;
  makecontext(&here_, function, 0);
}

void Fiber::go_on() { swapcontext(&outside_, &here_); }
void Fiber::leave() { swapcontext(&here_, &outside_); }

}  // namespace cairn::kernels::cuda::emulated

#endif
