// Small runs in which the n-th call fails that takes a thread, memory or a file, or moves bytes of the disk
// tier: for every n, once or from there on. A call that fails is a status; what it left behind works on, or
// says that it does not.
#include "tests/fault/device/calls.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "runtime/step/stepper.h"
#include "tests/runtime/io/rig.h"
#include "tests/support/campaign.h"

namespace cairn {
namespace {

using test::calls;
using test::Way;

constexpr int64_t kOneIn = 30;  // of many points, unless the campaign is a long one
constexpr long kFew = 30;

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

struct Kind {
  const char* name;
  std::vector<std::string> tiers;  // of the layers' activations, in turn; none: all are kept
  int layers;
  uint64_t micros;
  int threads;
  bool memory;  // the disk tier lies in memory, which is faster; else where temporary files do
};

const Kind kKinds[] = {
    {"kept", {}, 4, 4, 5, true},
    {"host", {"host"}, 4, 4, 3, true},
    {"alone", {"disk"}, 3, 3, 1, false},
    {"disk", {"disk"}, 8, 8, 3, true},
    {"both", {"host", "disk"}, 8, 8, 2, true},
};

constexpr int64_t kBatch = 32, kWidth = 48;

std::shared_ptr<graph::Graph> network(const Kind& kind) {
  auto g = std::make_shared<graph::Graph>();
  graph::ValueId x = g->input("x", {DType::kF32, {kBatch, kWidth}});
  for (int i = 0; i < kind.layers; ++i) {
    const std::string name = cat("layer", i);
    const auto w = g->parameter(name, {DType::kF32, {kWidth, kWidth}},
                                {.init = graph::Init::kNormal, .init_scale = 0.2});
    const auto region = kind.tiers.empty()
                            ? g->region_begin(name, plan::Policy::kKeep)
                            : g->region_begin(name, plan::Policy::kOffload,
                                              kind.tiers[static_cast<size_t>(i) % kind.tiers.size()]);
    x = g->op("linear", {x, w}, {{"activation", std::string("gelu_tanh")}})[0];
    g->region_end(region);
  }
  const auto loss = g->op("mse", {x, g->input("target", {DType::kF32, {kBatch, kWidth}})});
  g->freeze(loss[0], loss[1], {});
  return g;
}

// From nothing to a digest; what has been made stays when a call fails.
struct Training {
  explicit Training(const Kind& with) : kind(with) {}

  void open() {
    if (device == nullptr)
      device =
          device::open("cpu", {.threads = kind.threads, .disk_directory = kind.memory ? "/dev/shm" : ""});
  }
  void load() {
    if (session != nullptr) return;
    if (plan == nullptr) {
      engine::PlanOptions options;
      if (!kind.tiers.empty()) options.tiers = {Tier::kHost, Tier::kDisk};
      plan = engine::compile(network(kind), *device, options);
    }
    auto made = std::make_shared<engine::Session>(plan, device);
    step::initialise(*made, 7);
    stepper = std::make_unique<step::Stepper>(made, test::rig_options());
    session = std::move(made);
  }
  void feed(const char* name, uint64_t index) {
    std::vector<float> numbers(kBatch * kWidth);
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<float>((i * 7 + index * 13) % 31) / 31;
    session->write(session->plan().joint->find(name), numbers.data(),
                   static_cast<int64_t>(numbers.size() * 4));
  }
  std::string train() {
    for (uint64_t index = 0; index < kind.micros; ++index) {
      feed("x", index);
      feed("target", index + 100);
      stepper->micro();
    }
    return step::parameter_digest(*session);
  }
  std::string all() {
    open();
    load();
    return train();
  }

  const Kind& kind;
  std::shared_ptr<device::Device> device;
  std::shared_ptr<const engine::CompiledPlan> plan;
  std::shared_ptr<engine::Session> session;
  std::unique_ptr<step::Stepper> stepper;
};

// The status of a call, which must be one that a system without threads, memory or disk gives.
template <class Call>
Code status_of(const Call& call, const std::string& where, std::string* said = nullptr) {
  try {
    call();
    return Code::kOk;
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == Code::kOutOfMemory || error.code() == Code::kIo)
        << where << ": " << static_cast<int>(error.code()) << ": " << error.what();
    const std::string message = error.what();
    if (said != nullptr) *said = message;
    EXPECT_NE(message, "") << where;
    EXPECT_EQ(message.find("Success"), std::string::npos) << where << ": " << message;
    return error.code();
  }
}

class FailingCalls : public ::testing::TestWithParam<Kind> {};

TEST_P(FailingCalls, EveryOneIsAStatusAndTheNextTryWorks) {
  const Kind& kind = GetParam();
  std::string expected;
  {
    Training run(kind);
    expected = run.all();
  }
  const size_t threads = entries("/proc/self/task"), files = entries("/proc/self/fd");
  int64_t points = 0, taken = 0, failed = 0, survived = 0;
  // Tries to train while call number n fails, and whatever came of that once more without.
  const auto point = [&](long n, Way way, bool for_good) {
    const std::string where =
        cat(kind.name, ", way ", static_cast<int>(way), for_good ? ", from" : ", call", " ", n);
    Training run(kind);
    std::string digest, said;
    Code status;
    {
      const test::Failing failing(n, way, for_good);
      status = status_of([&] { digest = run.all(); }, where, &said);
    }
    if (way == Way::kShort || way == Way::kInterrupted || calls.failed.load() == 0) {
      EXPECT_EQ(status, Code::kOk) << where;
    }
    failed += status != Code::kOk;
    survived += status == Code::kOk && calls.failed.load() > 0;
    if (status != Code::kOk) {  // on the same device, if there is one, and by the same plan
      run.stepper.reset();
      run.session.reset();
      EXPECT_EQ(status_of([&] { digest = run.all(); }, where + ", again"), Code::kOk);
    }
    EXPECT_EQ(digest, expected) << where << ": other bits after " << static_cast<int>(status) << ' ' << said;
    run.stepper.reset();
    run.session.reset();
    for (int tier = 0; tier < kTierCount; ++tier)
      EXPECT_EQ(run.device->ledger().count(static_cast<Tier>(tier)).reserved_bytes, 0) << where;
  };
  for (const Way way : {Way::kRefused, Way::kLost, Way::kShort, Way::kInterrupted})
    for (const bool for_good : {false, true}) {
      if (for_good && way == Way::kInterrupted) continue;  // would be gone on with for ever
      point(-1, way, false);
      const long all = calls.made.load();
      for (long n = 0; n < all; ++n)
        if (support::taken(points++, all < kFew ? 1 : kOneIn)) {
          ++taken;
          point(n, way, for_good);
          ASSERT_TRUE(becomes("/proc/self/task", threads)) << n << ": threads are left";
          ASSERT_TRUE(becomes("/proc/self/fd", files)) << n << ": files are left";
        }
    }
  std::printf("[ COUNTED  ] %s: %ld points, %ld taken, %ld failed, %ld survived\n", kind.name,
              static_cast<long>(points), static_cast<long>(taken), static_cast<long>(failed),
              static_cast<long>(survived));
  RecordProperty("points", static_cast<int>(points));
  EXPECT_GT(failed, 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, FailingCalls, ::testing::ValuesIn(kKinds),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace cairn
