// A plan made by hand, without graph or planner: many launches of a kernel that does nothing, with copies
// between.
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/exec/session.h"

namespace cairn::engine {
namespace {

struct Nothing : kernels::Kernel {
  void run(const kernels::Call&) const override {}
};

// `launches` launches; after every tenth one the value goes out to the host tier and comes back.
std::shared_ptr<CompiledPlan> hand_made(const device::Device& device, int launches) {
  auto plan = std::make_shared<CompiledPlan>();
  auto joint = std::make_shared<graph::JointGraph>();
  graph::JointValue value;
  value.name = "x";
  value.desc = {DType::kF32, {16}};
  value.role = graph::Role::kScratch;
  joint->values.push_back(value);
  plan->joint = joint;
  plan->problem.values = {{"x", 64, true}};
  plan->problem_value = {0};
  plan->link_tier = {Tier::kHost};
  plan->plan.value_offsets = {0};
  plan->plan.arena_bytes = 256;
  plan->plan.tier_arena_bytes = {64};
  plan->kernels = {std::make_shared<Nothing>()};
  plan->kernel_locks = std::make_unique<std::mutex[]>(1);
  plan->threads = device.info().threads;
  plan->device = device.info().name;
  Program& p = plan->program();
  p.operands = {{value.desc, 0}, {value.desc, 64}};
  p.ranges = {{Tier::kDevice, 64, 64}, {Tier::kDevice, 128, 64}, {Tier::kHost, 0, 64}};
  p.copies = {{Tier::kHost, Tier::kDevice, 0, 64, 64, 0}, {Tier::kDevice, Tier::kHost, 64, 0, 64, 0}};
  const auto emit = [&](Opcode opcode, device::Lane lane, int32_t a) { p.code.push_back({opcode, lane, a}); };
  using device::Lane;
  for (int i = 0; i < launches; ++i) {
    emit(Opcode::kBegin, Lane::kCompute, 0);
    emit(Opcode::kBegin, Lane::kCompute, 1);
    Launch launch = {};
    launch.inputs = launch.outputs = 1;
    launch.workspace_offset = 128;
    launch.workspace_bytes = 64;
    p.launches.push_back(launch);
    emit(Opcode::kLaunch, Lane::kCompute, i);
    emit(Opcode::kEnd, Lane::kCompute, 1);
    if (i % 10 == 9) {
      emit(Opcode::kBegin, Lane::kCompute, 2);
      for (const int32_t copy : {0, 1}) {
        const Lane lane = copy == 0 ? Lane::kCopyOut : Lane::kCopyIn;
        emit(Opcode::kRecord, Lane::kCompute, p.events);
        emit(Opcode::kWait, lane, p.events++);
        emit(Opcode::kCopy, lane, copy);
        emit(Opcode::kRecord, lane, p.events);
        emit(Opcode::kWait, Lane::kCompute, p.events++);
      }
      emit(Opcode::kEnd, Lane::kCompute, 2);
    }
    emit(Opcode::kEnd, Lane::kCompute, 0);
  }
  return plan;
}

// The walker runs far ahead of the queue; the account must not.
TEST(HandMadePlan, ManyLaunchesLeaveTheAccountAsItWas) {
  const auto device = device::open("reference", {.threads = 1});
  auto plan = hand_made(*device, 9);  // no copies
  {
    auto& p = plan->program();
    const std::vector<Instruction> once = p.code;
    for (int i = 0; i < 200; ++i) p.code.insert(p.code.end(), once.begin(), once.end());
  }
  Session session(plan, device);
  for (int i = 0; i < 3; ++i) session.run({0, 0, 0});
  EXPECT_EQ(session.count(Tier::kDevice).live_bytes, 64) << "only what persists is left";
  EXPECT_EQ(session.count(Tier::kDevice).peak_live_bytes, 192);
}

TEST(HandMadePlan, CopiesAndLaunchesPassTheCheck) {
  const auto device = device::checked(device::open("reference", {.threads = 1}));
  Session session(hand_made(*device, 100), device);
  for (uint32_t micro = 0; micro < 3; ++micro) session.run({0, 0, micro});
  EXPECT_EQ(session.count(Tier::kDevice).peak_live_bytes, 192);
  EXPECT_EQ(session.count(Tier::kDevice).peak_height_bytes, 192);
  EXPECT_EQ(session.count(Tier::kHost).peak_live_bytes, 64);
  EXPECT_EQ(session.count(Tier::kDevice).live_bytes, 64) << "only what persists is left";
}

TEST(HandMadePlan, AMissingWaitIsCaught) {
  const auto device = device::checked(device::open("reference", {.threads = 1}));
  const auto plan = hand_made(*device, 10);
  auto& code = plan->program().code;
  // The compute lane no longer waits for the copy back; the next launch then races with it.
  const auto wait = std::find_if(code.rbegin(), code.rend(), [](const Instruction& i) {
    return i.opcode == Opcode::kWait && i.lane == device::Lane::kCompute;
  });
  code.erase(std::next(wait).base());
  const auto again = code;
  code.insert(code.end(), again.begin(), again.end());
  Session session(plan, device);
  try {
    session.run({0, 0, 0});
    FAIL() << "the race was not seen";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInternal);
    EXPECT_NE(std::string(error.what()).find("race"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(session.poisoned());
  EXPECT_THROW(session.run({0, 0, 0}), Error);
}

TEST(HandMadePlan, OverlappingRangesAreAnInternalError) {
  const auto device = device::open("reference", {.threads = 1});
  const auto plan = hand_made(*device, 3);
  plan->program().ranges[1].offset = 96;
  Session session(plan, device);
  try {
    session.run({0, 0, 0});
    FAIL() << "overlap not seen";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInternal);
  }
  EXPECT_EQ(session.count(Tier::kDevice).live_bytes, 64);
}

TEST(HandMadePlan, APlanForAnotherDeviceIsRefused) {
  const auto device = device::open("reference", {.threads = 1});
  const auto plan = hand_made(*device, 1);
  plan->device = "cuda:0";
  EXPECT_THROW(Session(plan, device), Error);
}

}  // namespace
}  // namespace cairn::engine
