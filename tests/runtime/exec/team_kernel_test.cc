#include "runtime/exec/team_kernel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace cairn::engine {
namespace {

// Notes who runs the shares of its loop.
struct Loop final : kernels::Kernel {
  int64_t workspace_bytes() const override { return 48; }
  void run(const kernels::Call&) const override {
    count = thread_count();
    parallel_for(count, 1,
                 [&](int64_t begin, int64_t end, int) { elements += static_cast<int>(end - begin); });
    if (fails) throw Error(Code::kInternal, "it fails");
  }
  mutable int count = 0;
  mutable std::atomic<int> elements{0};
  bool fails = false;
};

TEST(TeamKernel, RunsOnItsThreadsAndGivesTheCallersBack) {
  Loop loop;
  ThreadTeam team(3);
  const TeamKernel kernel(loop, team, 3);
  EXPECT_EQ(kernel.workspace_bytes(), 48);
  std::thread([&] {  // one of a driver's, say
    kernel.run({});
    EXPECT_EQ(thread_count(), 1);
    loop.fails = true;
    EXPECT_THROW(kernel.run({}), Error);
    EXPECT_EQ(thread_count(), 1);
  })
      .join();
  EXPECT_EQ(loop.count, 3);
  EXPECT_EQ(loop.elements, 6);
}

}  // namespace
}  // namespace cairn::engine
