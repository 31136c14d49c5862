// Runs a kernel of the processor on the store's own threads, next to a device with other kernels. The device's
// queue calls it on any thread.
#pragma once
#include "runtime/base/kernel.h"
#include "runtime/base/parallel.h"

namespace cairn::engine {

// This is not the device's work: its plugin has thread-locals of its own, which the library's kernels do not read.
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
  // Restores the calling thread, which serves other work as well.
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
