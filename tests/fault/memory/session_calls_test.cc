// Memory refused in a call that reads or writes a session whose state lives in tiers: the call says so, and the session is
// as before. Called again with memory there it works, and the bits are those of a session that nothing disturbed.
#include <unistd.h>

#include <functional>

#include "tests/fault/memory/heap.h"
#include "tests/fault/memory/training.h"
#include "tests/support/campaign.h"

namespace fault {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kOneIn = 9;  // allocations of a call that are refused: all in a long campaign

class RefusedCall : public testing::TestWithParam<std::tuple<Kind, heap::Failing>> {
 protected:
  RefusedCall() { fs::create_directories(folder_); }
  ~RefusedCall() override { fs::remove_all(folder_); }

  // Makes the call once for each of its allocations, which is refused, and a last time with all of them, on a training that
  // goes on afterwards.
  void walk(const char* what, const std::function<cairn_status_t(Training&)>& call) {
    SCOPED_TRACE(what);
    const auto [kind, failing] = GetParam();
    Training undisturbed(kind), training(kind);
    for (uint32_t micro = 0; micro < 3 * training.micro_steps(); ++micro) {
      ASSERT_EQ(undisturbed.micro(), 0);
      ASSERT_EQ(training.micro(), 0) << training.message();
    }
    const std::string before = undisturbed.digest();
    long refusals = 0;
    bool done = false;  // a call succeeded all the same
    for (long at = 0;; ++at) {
      if (at > 0 && !cairn::support::taken(at, kOneIn)) continue;
      heap::arm(at, failing);
      const cairn_status_t status = call(training);
      if (heap::disarm().failed_at < 0) {
        ASSERT_EQ(status, CAIRN_STATUS_OK) << training.message();
        break;
      }
      done = done || status == CAIRN_STATUS_OK;
      if (status == CAIRN_STATUS_OK) continue;
      ++refusals;
      ASSERT_EQ(status, CAIRN_STATUS_OUT_OF_MEMORY) << training.message();
      const std::string said = training.message();
      if (!done) ASSERT_EQ(training.digest(), before) << "allocation " << at << ": " << said;
      if (refusals == 1) ASSERT_EQ(training.save(folder_ / "saved"), CAIRN_STATUS_OK) << training.message();
    }
    std::printf("%s: %ld allocations refused\n", what, refusals);
    ASSERT_EQ(call(undisturbed), CAIRN_STATUS_OK) << undisturbed.message();
    for (uint32_t micro = 0; micro < 2 * training.micro_steps(); ++micro) {
      ASSERT_EQ(undisturbed.micro(), 0);
      ASSERT_EQ(training.micro(), 0) << training.message();
    }
    EXPECT_EQ(training.digest(), undisturbed.digest());
  }

  const fs::path folder_ = fs::temp_directory_path() / ("cairn-calls-" + std::to_string(::getpid()));
};

TEST_P(RefusedCall, ReadingLeavesAllAsBefore) {
  const fs::path checkpoint = folder_ / "checkpoint", weights = folder_ / "weights.safetensors";
  walk("digest", [](Training& t) {
    std::array<char, 33> hex;
    return t.digest(hex);
  });
  walk("read", [](Training& t) { return t.read(); });
  walk("save", [&](Training& t) { return t.save(checkpoint); });
  walk("export", [&](Training& t) { return t.export_to(weights); });
}

TEST_P(RefusedCall, WritingIsAllOrNothing) {
  const fs::path checkpoint = folder_ / "others", weights = folder_ / "others.safetensors";
  {
    Training other(std::get<0>(GetParam()));
    for (uint32_t micro = 0; micro < other.micro_steps(); ++micro) ASSERT_EQ(other.micro(), 0);
    ASSERT_EQ(other.export_to(weights), 0);
    ASSERT_EQ(other.save(checkpoint), 0);
  }
  walk("initialise", [](Training& t) { return t.initialise(); });
  walk("import", [&](Training& t) { return t.import_from(weights); });
  walk("restore", [&](Training& t) { return t.restore(checkpoint); });
}

TEST_P(RefusedCall, RemovesAllOrNothing) {
  const auto [kind, failing] = GetParam();
  if (kind != Kind::kDeferred) GTEST_SKIP() << "the same files";
  const fs::path checkpoint = folder_ / "removed";
  Training training(kind);
  ASSERT_EQ(training.micro(), 0);
  for (long at = 0;; ++at) {
    if (!cairn::support::taken(at, kOneIn / 3)) continue;
    ASSERT_EQ(training.save(checkpoint), 0) << training.message();
    heap::arm(at, failing);
    const cairn_status_t status = training.remove(checkpoint);
    const bool disturbed = heap::disarm().failed_at >= 0;
    if (status == CAIRN_STATUS_OK) EXPECT_FALSE(fs::exists(checkpoint));
    if (!disturbed) break;
    if (status == CAIRN_STATUS_OK) continue;
    ASSERT_EQ(status, CAIRN_STATUS_OUT_OF_MEMORY) << training.message();
    ASSERT_EQ(training.restore(checkpoint), 0) << "allocation " << at << ": " << training.message();
  }
}

TEST_P(RefusedCall, AppliesWithMemory) {
  const auto [kind, failing] = GetParam();
  if (kind == Kind::kDeferred) GTEST_SKIP() << "a step is one micro-batch";
  Training undisturbed(kind), training(kind);
  for (int step = 0; step < 3; ++step) {
    ASSERT_EQ(undisturbed.micro(), 0);
    ASSERT_EQ(undisturbed.apply(), 0);
    ASSERT_EQ(training.micro(), 0);
    for (long at = 0;; ++at) {
      heap::arm(at, failing);
      const cairn_status_t status = training.apply();
      const bool disturbed = heap::disarm().failed_at >= 0;
      if (status == CAIRN_STATUS_OK) break;
      ASSERT_TRUE(disturbed) << training.message();
      ASSERT_EQ(status, CAIRN_STATUS_OUT_OF_MEMORY) << training.message();
    }
    ASSERT_EQ(training.digest(), undisturbed.digest());
  }
}

TEST_P(RefusedCall, TiersAreInUse) {
  Training training(std::get<0>(GetParam()));
  const Kind kind = std::get<0>(GetParam());
  if (kind == Kind::kSplitOnDisk) EXPECT_GT(training.reserved_bytes(CAIRN_TIER_DISK), 0u);
  if (kind == Kind::kOnHostAndDisk || kind == Kind::kDeferred)
    EXPECT_GT(training.reserved_bytes(CAIRN_TIER_HOST), 0u);
}

INSTANTIATE_TEST_SUITE_P(, RefusedCall,
                         testing::Combine(testing::Values(Kind::kSplitOnDisk, Kind::kOnHostAndDisk,
                                                          Kind::kDeferred),
                                          testing::Values(heap::Failing::kOne, heap::Failing::kRest)));

}  // namespace
}  // namespace fault
