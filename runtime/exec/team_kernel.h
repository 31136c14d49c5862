// A kernel of the processor's registry beside a device of other kernels: on threads of its own, whichever thread the device
// lends to call it.
#pragma once
#include "runtime/base/kernel.h"
#include "runtime/base/parallel.h"

namespace cairn::engine {

// Here and not in the device, whose plugin has its own thread-locals: what it set would not be what the library's kernels read.
class TeamKernel final : public kernels::Kernel {
 public:
  TeamKernel(const kernels::Kernel& inner, ThreadTeam& team, int threads)
      : inner_(inner), team_(team), threads_(threads) {}
  int64_t workspace_bytes() const override { return inner_.workspace_bytes(); }
  void run(const kernels::Call& call) const override {
    const Lent thread(team_, threads_);
    inner_.run(call);
  }

 private:
  // The thread serves other work, too.
  struct Lent {
    Lent(ThreadTeam& team, int threads) {
      set_thread_team(&team);
      set_thread_count(threads);
    }
    ~Lent() {
      set_thread_team(nullptr);
      set_thread_count(1);
    }
  };

  const kernels::Kernel& inner_;
  ThreadTeam& team_;
  const int threads_;
};

}  // namespace cairn::engine
