// Small runs in which the n-th call fails that takes a thread, memory or a file, or moves bytes of the disk
// tier: for every n, once or from there on. A call that fails is a status; what it left behind works on, or
// says that it does not.
#include "tests/fault/device/calls.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>

#include "tests/fault/device/training.h"
#include "tests/support/campaign.h"

namespace cairn {
namespace {

using test::calls;
using test::Kind;
using test::Training;
using test::Way;

constexpr long kSmall = 30;

size_t entries(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

// Whether the folder comes to have so many entries: the system lists a thread for a moment after its end.
bool becomes(const char* folder, size_t wanted) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (entries(folder) != wanted)
    if (std::chrono::steady_clock::now() > until) return false;
  return true;
}

const Kind kKinds[] = {
    {.name = "kept", .tiers = {}, .layers = 4, .micros = 4, .threads = 5, .memory = true, .one_in = 10},
    {.name = "host", .tiers = {"host"}, .layers = 4, .micros = 4, .threads = 3, .memory = true, .one_in = 10},
    {.name = "alone",
     .tiers = {"disk"},
     .layers = 3,
     .micros = 3,
     .threads = 1,
     .memory = false,
     .one_in = 20},
    {.name = "disk",
     .tiers = {"disk"},
     .layers = 8,
     .micros = 8,
     .threads = 3,
     .memory = true,
     .one_in = 120},
    {"both", {"host", "disk"}, 8, 8, 2, true},
    {.name = "state",
     .tiers = {"disk"},
     .layers = 3,
     .micros = 7,
     .threads = 2,
     .memory = true,
     .state = true},
    {.name = "fused",
     .tiers = {"disk"},
     .layers = 4,
     .micros = 5,
     .threads = 2,
     .memory = true,
     .fused = true},
    {.name = "saved",
     .tiers = {"disk"},
     .layers = 3,
     .micros = 7,
     .threads = 2,
     .memory = true,
     .state = true,
     .saves = true},
};

// The status of a call, which must be one that a system without threads, memory or disk gives.
template <class Call>
Code status_of(const Call& call, const std::string& where, std::string& said) {
  try {
    call();
    return Code::kOk;
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == Code::kOutOfMemory || error.code() == Code::kIo)
        << where << ": " << static_cast<int>(error.code()) << ": " << error.what();
    said = error.what();
    EXPECT_NE(said, "") << where;
    EXPECT_EQ(said.find("Success"), std::string::npos) << where << ": " << said;
    return error.code();
  }
}

struct Counts {
  long points = 0, taken = 0, failed = 0, went_on = 0, survived = 0;
};

class FailingCalls : public ::testing::TestWithParam<Kind> {
 protected:
  const Kind& kind = GetParam();
  std::shared_ptr<const engine::CompiledPlan> plan;
  std::string expected;
  Counts counts;

  // Trains while call number n fails; whatever came of that goes on without, then begins anew.
  void point(long n, Way way, bool for_good) {
    const std::string where =
        cat(kind.name, ", way ", static_cast<int>(way), for_good ? ", from" : ", call", " ", n);
    Training run(kind, plan);
    std::string digest, said;
    const auto all = [&] { digest = run.all(); };
    Code status;
    {
      const test::Failing failing(n, way, for_good);
      status = status_of(all, where, said);
    }
    const bool failed = calls.failed.load() > 0;
    if (way == Way::kShort || way == Way::kInterrupted || !failed) {
      EXPECT_EQ(status, Code::kOk) << where << ": " << said;
    }
    counts.failed += status != Code::kOk;
    counts.survived += status == Code::kOk && failed;
    if (status != Code::kOk) {
      const bool on = status_of(all, where + ", going on", said) == Code::kOk;
      counts.went_on += on;
      if (!on) {  // on the same device, if there is one
        run.close();
        EXPECT_EQ(status_of(all, where + ", anew", said), Code::kOk) << said;
      }
    }
    EXPECT_EQ(digest, expected) << where << ": other bits after " << static_cast<int>(status) << ' ' << said;
    run.close();
    EXPECT_EQ(run.reserved_bytes(), 0) << where;
  }
};

TEST_P(FailingCalls, EveryOneIsAStatusAndTheNextTryWorks) {
  plan = Training::plan(kind);
  {
    Training run(kind, plan);
    expected = run.all();
  }
  const size_t threads = entries("/proc/self/task"), files = entries("/proc/self/fd");
  for (const Way way : {Way::kRefused, Way::kLost, Way::kShort, Way::kInterrupted})
    for (const bool for_good : {false, true}) {
      if (for_good && way == Way::kInterrupted) continue;  // would be gone on with for ever
      point(-1, way, false);
      const long all = calls.made.load();
      for (long n = 0; n < all; ++n) {
        if (!support::taken(counts.points++, all < kSmall ? 1 : kind.one_in)) continue;
        ++counts.taken;
        point(n, way, for_good);
        ASSERT_TRUE(becomes("/proc/self/task", threads)) << n << ": threads are left";
        ASSERT_TRUE(becomes("/proc/self/fd", files)) << n << ": files are left";
      }
    }
  std::printf("[ COUNTED  ] %s: %ld points, %ld taken, %ld failed and %ld of them went on, %ld survived\n",
              kind.name, counts.points, counts.taken, counts.failed, counts.went_on, counts.survived);
  EXPECT_GT(counts.failed, 0);
}

// Where nothing can be reserved the tier works all the same, and one that is too large is refused when it is made.
TEST(FailingCallsOfTheDisk, AFileSystemThatCannotReserveServesUntilItIsFull) {
  calls.cannot_reserve = true;
  const auto device = device::open("cpu", {});
  constexpr int64_t kBytes = (3 << 20) + 5;
  {
    const auto disk = device->allocate(Tier::kDisk, kBytes),
               memory = device->allocate(Tier::kDevice, 2 * kBytes);
    auto* const bytes = static_cast<unsigned char*>(memory->address());
    for (int64_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<unsigned char>(i * 7 >> 2);
    const auto queue = device->create_queue(device::Lane::kCopyOut);
    queue->copy({disk.get(), 0}, {memory.get(), 0}, kBytes);
    queue->copy({memory.get(), kBytes}, {disk.get(), 0}, kBytes);
    queue->synchronize();
    EXPECT_EQ(std::memcmp(bytes, bytes + kBytes, kBytes), 0);
  }
  try {
    device->allocate(Tier::kDisk, int64_t{1} << 50);
    ADD_FAILURE() << "more than any disk has was promised";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kIo);
    EXPECT_NE(std::string(error.what()).find("bytes are free there"), std::string::npos) << error.what();
  }
  calls.cannot_reserve = false;
}

INSTANTIATE_TEST_SUITE_P(Kinds, FailingCalls, ::testing::ValuesIn(kKinds),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace cairn
