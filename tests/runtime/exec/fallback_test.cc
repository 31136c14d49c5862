// A disk that fails while a session runs: the micro-batch ends right or is refused as a whole, and the
// session goes on.
#include "runtime/exec/fallback.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/runtime/compile/support.h"

namespace cairn::engine {
namespace {

// Fails the `at`-th transfer from arm() on, after a while in which compute goes as far as it can.
struct FailingDisk {
  std::atomic<int> left{1 << 30}, seen{0};
  std::atomic<bool> slow{false};

  std::shared_ptr<device::Device> device(bool check) {
    device::DeviceOptions options;
    options.threads = 1;
    options.disk_fault = [this](bool, int64_t, int64_t bytes) -> int64_t {
      ++seen;
      if (left.fetch_sub(1) != 0) return bytes;
      if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(30));
      return -EIO;
    };
    const auto plain = device::open("cpu", options);
    return check ? device::checked(plain) : plain;
  }
  void arm(int at) {
    left = at;
    seen = 0;
  }
};

PlanOptions to_disk() {
  PlanOptions options;
  options.policy = Policy::kOffload;
  options.tiers = {Tier::kDisk};
  return options;
}

bool uses_disk(const Session& session) {
  for (const CopyJob& copy : session.plan().program().copies)
    if (copy.to == Tier::kDisk || copy.from == Tier::kDisk) return true;
  return false;
}

class Fallback : public ::testing::TestWithParam<bool> {
 protected:
  FailingDisk disk;
  std::shared_ptr<device::Device> device = disk.device(GetParam());
  std::shared_ptr<const CompiledPlan> plan = compile(mlp(2), *device, to_disk());
  Result once, twice;  // what a run without failure leaves after one and after two micro-batches
  int transfers = 0;   // of one micro-batch

  void SetUp() override {
    Session session(plan, device);
    ASSERT_TRUE(uses_disk(session));
    fill(session);
    disk.arm(1 << 30);
    session.run({3, 0, 0});
    transfers = disk.seen;
    ASSERT_GE(transfers, 4);
    once = result(session);
    session.run({3, 0, 1});
    twice = result(session);
    expect_exact_memory(session);
  }
};

TEST_P(Fallback, AFirstMicroBatchEndsRightWhereverTheDiskFails) {
  for (int at = 0; at < transfers; ++at) {
    Session session(plan, device);
    fill(session);
    disk.arm(at);
    const RunReport report = session.run({3, 0, 0});
    EXPECT_TRUE(report.fell_back);
    EXPECT_EQ(result(session), once) << "transfer " << at;
    EXPECT_FALSE(uses_disk(session));
    EXPECT_EQ(session.count(Tier::kDisk).reserved_bytes, 0) << "the file is given back";
    const int before = disk.seen;
    EXPECT_FALSE(session.run({3, 0, 1}).fell_back);
    EXPECT_EQ(result(session), twice);
    EXPECT_EQ(disk.seen, before) << "no more transfers";
    EXPECT_LE(session.count(Tier::kDevice).peak_height_bytes, plan->plan.arena_bytes);
    EXPECT_FALSE(session.poisoned());
  }
}

TEST_P(Fallback, ALaterMicroBatchEndsRightOrIsRefusedAndTheEffectiveBatchCanBeRepeated) {
  int refused = 0;
  for (int at = 0; at < transfers; ++at) {
    Session session(plan, device);
    fill(session);
    disk.arm(1 << 30);
    session.run({3, 0, 0});
    const int32_t head = session.plan().joint->find("head");
    const auto parameter = bytes_of(session, head);
    disk.slow = at % 2 == 1;
    disk.arm(at);
    try {
      EXPECT_TRUE(session.run({3, 0, 1}).fell_back);
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(error.code(), Code::kIo);
      EXPECT_NE(std::string(error.what()).find("repeat the effective batch"), std::string::npos)
          << error.what();
      EXPECT_FALSE(session.poisoned());
      EXPECT_EQ(bytes_of(session, head), parameter);
      session.run({3, 0, 0});
      EXPECT_EQ(result(session), once);
      session.run({3, 0, 1});
    }
    EXPECT_EQ(result(session), twice) << "transfer " << at;
    EXPECT_FALSE(uses_disk(session));
  }
  disk.slow = true;
  Session session(plan, device);
  fill(session);
  disk.arm(1 << 30);
  session.run({3, 0, 0});
  disk.arm(transfers - 1);  // the last that is read: gradients of later layers have been added to
  EXPECT_THROW(session.run({3, 0, 1}), Error);
}

// Gradients of one micro-batch per update lie where the plan left them: without the disk that may be elsewhere.
TEST_P(Fallback, NormAndUpdateFindTheGradientsOfThePlanThatItWentOnWith) {
  PlanOptions options = to_disk();
  options.micro_steps = 1;
  const auto short_of_memory = compile(mlp(4), *device, options);
  ASSERT_FALSE(short_of_memory->gradient_offsets.empty());
  const double row[8] = {0.01, 0.9, 0.95, 1e-8, 0.1, 0.1, 0.05, 1.0};
  const auto train = [&](Session& session, int at) {
    fill(session);
    for (const graph::HyperBlock& hyper : session.plan().joint->hypers)
      session.write(hyper.value, row, sizeof row);
    disk.arm(at);
    EXPECT_EQ(session.run({3, 0, 0}).fell_back, at == 2);
    const double squares = session.gradient_squares();
    session.update({3, 0, 0});
    session.run({3, 1, 0});
    return std::pair(squares, result(session));
  };
  Session whole(short_of_memory, device), fails(short_of_memory, device);
  const auto as = train(whole, 1 << 30);
  EXPECT_EQ(train(fails, 2), as);
  EXPECT_FALSE(uses_disk(fails));
  EXPECT_NE(fails.plan().gradient_offsets, short_of_memory->gradient_offsets) << "else nothing is shown";
  EXPECT_EQ(fails.count(Tier::kDevice).live_bytes, whole.count(Tier::kDevice).live_bytes);
}

INSTANTIATE_TEST_SUITE_P(Devices, Fallback, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "checked" : "plain"; });

TEST(FallbackPlan, RegionsForOtherTiersStayAsTheyAre) {
  const auto device = device::open("reference", {.threads = 1});
  PlanOptions options = to_disk();
  options.tiers = {Tier::kDisk, Tier::kHost};
  const auto plan = compile(mlp(2, true, Policy::kOffload, "host"), *device, options);
  const auto rest = without_tier(*plan, Tier::kDisk);
  ASSERT_EQ(rest->link_tier, std::vector<Tier>{Tier::kHost});
  for (const plan::Region& region : rest->problem.regions) {
    EXPECT_EQ(region.policy, Policy::kOffload);
    EXPECT_EQ(region.offload_tier, 0);
  }
  EXPECT_LE(rest->plan.arena_bytes, plan->plan.arena_bytes);
  EXPECT_GT(rest->plan.totals.offload_bytes.at(0), 0);
}

// What may not run again cannot be dropped either: without the disk it does not fit.
TEST(FallbackPlan, WithoutOneTheSessionStopsButItsValuesCanBeSaved) {
  auto g = std::make_shared<Graph>();
  graph::CustomOp op;
  op.name = "once";
  op.inputs = op.outputs = 1;
  op.recomputable = false;
  op.shape = [](std::span<const TensorDesc> in, std::span<TensorDesc> out) {
    out[0] = in[0];
    return true;
  };
  op.forward = [](std::span<const Tensor> in, std::span<const Tensor> out, void*) {
    for (int64_t i = 0; i < in[0].desc.shape.elements(); ++i)
      out[0].as<float>()[i] = 0.5f * in[0].as<float>()[i];
    return true;
  };
  op.backward = [](std::span<const Tensor> in, std::span<const Tensor> out, void*) {
    for (int64_t i = 0; i < out[0].desc.shape.elements(); ++i)
      out[0].as<float>()[i] = 0.5f * in[2].as<float>()[i];
    return true;
  };
  g->custom(op);
  ValueId x = g->op("mul", {g->input("x", {DType::kF32, {64, 64}}), parameter(*g, "w", {64})})[0];
  for (int i = 0; i < 8; ++i) x = g->op("once", {x})[0];
  const auto loss = g->op("mse", {x, g->input("t", {DType::kF32, {64, 64}})});
  g->freeze(loss[0], loss[1], {});
  FailingDisk disk;
  const auto device = disk.device(true);
  PlanOptions options = to_disk();
  Session session(compile(g, *device, options), device);
  ASSERT_TRUE(uses_disk(session));
  fill(session);
  session.run({0, 0, 0});
  const int32_t w = session.plan().joint->find("w");
  const auto parameter = bytes_of(session, w);
  disk.arm(1);
  for (int i = 0; i < 2; ++i) try {
      session.run({0, 0, 0});
      FAIL() << "there is no plan for this";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kIo);
      EXPECT_NE(std::string(error.what()).find("cannot go on without the disk tier"), std::string::npos)
          << error.what();
    }
  EXPECT_EQ(bytes_of(session, w), parameter);
  EXPECT_FALSE(session.poisoned());
}

}  // namespace
}  // namespace cairn::engine
