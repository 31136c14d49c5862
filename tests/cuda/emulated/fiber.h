// A function that can be left in its midst and gone on with later: its own stack, and a switch of a few
// instructions.
#pragma once
#include <cstdint>
#include <memory>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace cairn::kernels::cuda::emulated {

class Fiber {
 public:
  Fiber() : stack_(std::make_unique<char[]>(kStackBytes)) {}
  // From the beginning again at the next go_on(); the function never returns, it leaves for good.
  void restart(void (*function)());
  void go_on();  // until the function leaves
  void leave();  // from inside

 private:
  static constexpr size_t kStackBytes = 64 * 1024;
  std::unique_ptr<char[]> stack_;
#if defined(__x86_64__)
  void *here_ = nullptr, *outside_ = nullptr;  // stack pointers
#else
  ucontext_t here_, outside_;
#endif
};

}  // namespace cairn::kernels::cuda::emulated
