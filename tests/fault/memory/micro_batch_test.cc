// Memory refused in the middle of a micro-batch costs the effective batch, and nothing else: the same session goes on.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/fault/memory/heap.h"
#include "tests/fault/memory/training.h"

namespace fault {
namespace {

class RefusedMicroBatch : public testing::TestWithParam<std::tuple<Kind, heap::Failing>> {};

TEST_P(RefusedMicroBatch, CostsTheEffectiveBatchAtMost) {
  const auto [kind, failing] = GetParam();
  Training undisturbed(kind), training(kind);
  int refused = 0, lost = 0;
  for (uint64_t step = 0; step < 4; ++step) {
    SCOPED_TRACE(step);
    for (uint32_t micro = 0; micro < training.micro_steps(); ++micro) ASSERT_EQ(undisturbed.micro(), 0);
    const std::string before = training.digest();
    for (long at = 0; training.report().step == step;) {
      const uint32_t micro = training.report().micro;
      heap::arm(at, failing);
      const cairn_status_t status = training.micro();
      const bool disturbed = heap::disarm().failed_at >= 0;
      if (disturbed) ++at;
      if (status == CAIRN_STATUS_OK) continue;
      ASSERT_EQ(status, CAIRN_STATUS_OUT_OF_MEMORY) << training.message();
      ASSERT_TRUE(disturbed) << "with memory there: " << training.message();
      const bool discarded = training.message().find("repeat the effective batch") != std::string::npos;
      EXPECT_EQ(training.message().find("make the session again"), std::string::npos) << training.message();
      EXPECT_EQ(training.report().micro, discarded ? 0 : micro);
      EXPECT_EQ(training.digest(), before);
      ++refused;
      lost += discarded;
    }
    EXPECT_EQ(training.digest(), undisturbed.digest());
  }
  std::printf("%d micro-batches refused, %d effective batches lost\n", refused, lost);
}

INSTANTIATE_TEST_SUITE_P(, RefusedMicroBatch,
                         testing::Combine(testing::Values(Kind::kKept, Kind::kTraced, Kind::kSplitOnDisk,
                                                          Kind::kOnHostAndDisk, Kind::kDeferred),
                                          testing::Values(heap::Failing::kOne, heap::Failing::kRest)));

}  // namespace
}  // namespace fault
