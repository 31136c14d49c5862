// Optimizer state and master weights in lower tiers: what leaves and why, and that nobody who reads or writes
// it can tell.
#include "runtime/compile/update/offloaded_state.h"

#include <numeric>

#include "runtime/exec/fallback.h"
#include "tests/runtime/compile/update_check.h"

namespace cairn::engine {
namespace {

// Weights are large beside the activations, and of many sizes: the moments of some are several pieces, others
// share one.
std::shared_ptr<Graph> heavy() {
  auto g = std::make_shared<Graph>();
  ValueId x = g->input("x", {DType::kF32, {16, 192}});
  const ValueId t = g->input("t", {DType::kF32, {16, 192}});
  for (int i = 0; i < 2; ++i) {
    const std::string name = "l" + std::to_string(i);
    const ValueId up = parameter(*g, name + ".up", {256, 192}), bias = parameter(*g, name + ".bias", {256});
    const ValueId h = g->op("gelu", {g->op("linear", {x, up, bias})[0]})[0];
    const ValueId y = g->op("linear", {h, parameter(*g, name + ".down", {192, 256})})[0];
    x = g->op("layernorm", {y, parameter(*g, name + ".g", {192}), parameter(*g, name + ".b", {192})})[0];
  }
  const auto loss = g->op("mse", {x, t});
  g->freeze(loss[0], loss[1], {});
  return g;
}

PlanOptions options_for(std::vector<Tier> tiers, int64_t budget, graph::AmpMode amp = graph::AmpMode::kOff) {
  PlanOptions o;
  o.tiers = std::move(tiers);
  o.budget_bytes = budget;
  o.amp = amp;
  return o;
}

int64_t smallest(const PlanOptions& o, device::Device& device) { return smallest_budget(heavy(), device, o); }

bool master_leaves(const CompiledPlan& plan) {
  return std::any_of(plan.offloaded.begin(), plan.offloaded.end(), [&](const auto& place) {
    return plan.joint->values[static_cast<size_t>(place.first)].role == graph::Role::kParameter;
  });
}

TEST(OffloadedState, NothingLeavesWithoutABudgetALinkOrANeed) {
  const auto device = cpu();
  EXPECT_TRUE(compile(heavy(), *device, options_for({Tier::kHost}, 0))->offloaded.empty());
  const auto resident = compile(heavy(), *device, options_for({}, 0));
  const int64_t whole = resident->plan.arena_bytes;
  EXPECT_TRUE(compile(heavy(), *device, options_for({Tier::kHost}, whole))->offloaded.empty());
  EXPECT_TRUE(compile(heavy(), *device, options_for({}, whole))->offloaded.empty());
  PlanOptions gradients = options_for({Tier::kHost}, 1);
  gradients.optimizer.name = "";
  gradients.budget_bytes = smallest(gradients, *device);
  EXPECT_TRUE(compile(heavy(), *device, gradients)->offloaded.empty());
}

TEST(OffloadedState, ATightBudgetIsMetByStateInATier) {
  const auto device = cpu();
  const auto resident = compile(heavy(), *device, options_for({}, 0));
  int64_t moments = 0;
  for (const graph::ParameterSlot& slot : resident->joint->parameters)
    for (const int32_t m : resident->joint->owned(slot.value, graph::Role::kOptimizer))
      moments += resident->joint->values[static_cast<size_t>(m)].desc.bytes();
  const int64_t without = smallest(options_for({}, 1), *device);
  for (const bool streams : {true, false}) {
    PlanOptions o = options_for({Tier::kHost}, 1);
    o.forced.update_on_device = streams;
    const int64_t with = smallest(o, *device);
    EXPECT_LT(with, without - moments / 2);
    // Below what state on the device needs, some of it leaves; at the smallest budget all does.
    o.budget_bytes = without - (without - with) / 16;
    const auto some = compile(heavy(), *device, o);
    o.budget_bytes = with;
    const auto all = compile(heavy(), *device, o);
    EXPECT_GT(some->offloaded.size(), 0u);
    EXPECT_LT(some->offloaded_bytes[1], all->offloaded_bytes[1]);
    EXPECT_GE(all->offloaded_bytes[1], moments);
    EXPECT_LE(all->plan.arena_bytes, with);
    EXPECT_EQ(all->update_seconds > resident->update_seconds, streams)
        << "what is updated in place costs nothing";
    EXPECT_EQ(all->update_at(), streams ? Tier::kDevice : Tier::kHost);
    EXPECT_EQ(plan::violation(all->problem, all->plan), "");
    EXPECT_EQ(all->memory_at_peak().optimizer, 0);
    o.budget_bytes = with - kPageBytes;
    EXPECT_THROW(compile(heavy(), *device, o), Error);
  }
}

TEST(OffloadedState, WhatAnUpdateCostsIsSharedByItsMicroBatches) {
  const auto device = cpu();
  const auto resident = compile(mlp(2), *device, options_for({}, 0));
  // There is a choice: activations can be recomputed, or state can leave.
  PlanOptions o = options_for({Tier::kHost}, resident->plan.arena_bytes * 8 / 10);
  o.forced.update_on_device = true;  // where it lives, it costs nothing
  o.link_bytes_per_second = 2e9;
  o.micro_steps = 1000000;
  const auto many = compile(mlp(2), *device, o);
  o.micro_steps = 1;
  o.link_bytes_per_second = 1e5;
  const auto one = compile(mlp(2), *device, o);
  EXPECT_GT(many->offloaded_bytes[1], 0) << "a free choice was not taken";
  EXPECT_LT(one->offloaded_bytes[1], many->offloaded_bytes[1]) << "a slow link is no place for state";
}

TEST(OffloadedState, TheFirstTierWithRoomIsTaken) {
  const auto device = cpu();
  PlanOptions o = options_for({Tier::kHost, Tier::kDisk}, 1);
  o.policy = Policy::kKeep;
  o.costs = with_host_bytes(1 << 20);
  o.budget_bytes = smallest(o, *device) + 4 * kPageBytes;  // the smallest is that of the disk alone
  const auto plan = compile(heavy(), *device, o);
  const int64_t host = plan->offloaded_bytes[1], disk = plan->offloaded_bytes[2];
  EXPECT_GT(host, 0);
  EXPECT_GT(disk, 0);
  EXPECT_LE(host + plan->plan.tier_arena_bytes.at(0), 1 << 20);
}

// Where a tier has little room, large moments have it, not the ends of small ones' pages; nothing smaller plans than what is named.
TEST(OffloadedState, ATierWithLittleRoomIsForWhatIsLarge) {
  const auto device = cpu();
  for (const int64_t room : {450 << 10, 850 << 10, 900 << 10, 1300 << 10}) {
    SCOPED_TRACE(room);
    PlanOptions o = options_for({Tier::kHost}, 1);
    o.forced.update_on_device = true;
    o.costs = with_host_bytes(room);
    const int64_t least = smallest(o, *device);
    o.budget_bytes = least;
    const auto plan = compile(heavy(), *device, o);
    EXPECT_EQ(plan->plan.arena_bytes, least);
    EXPECT_GT(plan->resident_bytes(Tier::kHost), room / 2);
    for (const double less : {.9999, .999, .99, .97}) {
      o.budget_bytes = static_cast<int64_t>(less * static_cast<double>(least));
      EXPECT_THROW(compile(heavy(), *device, o), Error) << less;
    }
  }
}

enum class Home : uint8_t {
  kReached,
  kHost,
  kDisk
};  // the host tier, in place or through the device; the disk

class OffloadedStateOn : public ::testing::TestWithParam<std::tuple<Home, graph::AmpMode>> {
 protected:
  Home home() const { return std::get<0>(GetParam()); }
  Tier tier() const { return home() == Home::kDisk ? Tier::kDisk : Tier::kHost; }
  graph::AmpMode amp() const { return std::get<1>(GetParam()); }
  std::shared_ptr<device::Device> device = cpu();
  // At the smallest budget.
  std::shared_ptr<const CompiledPlan> tight() const {
    static std::map<std::pair<Home, graph::AmpMode>, std::shared_ptr<const CompiledPlan>> plans;
    auto& plan = plans[{home(), amp()}];
    if (plan != nullptr) return plan;
    PlanOptions o = options_for({tier()}, 1, amp());
    o.forced.update_on_device = home() != Home::kReached;
    o.policy = Policy::kKeep;  // so that state is all that can leave, and planning is quick
    o.budget_bytes = smallest(o, *device);
    return plan = compile(heavy(), *device, o);
  }
};

TEST_P(OffloadedStateOn, ExtentsTileTheirValuesAndNothingOverlaps) {
  const auto plan = tight();
  std::vector<std::pair<int64_t, int64_t>> used;
  int pieces_of_one = 0;
  std::map<int32_t, OffloadedPlace> all = plan->offloaded;
  all.insert(plan->homes.begin(), plan->homes.end());
  for (const auto& [value, place] : all) {
    EXPECT_EQ(place.tier, tier());
    int64_t at = 0;
    for (const OffloadedPlace::Extent& e : place.extents) {
      EXPECT_EQ(e.begin, at);
      EXPECT_EQ(e.tier_offset % kAlignment, 0);
      at += e.bytes;
      used.emplace_back(e.tier_offset, e.tier_offset + e.bytes);
    }
    EXPECT_EQ(at, plan->joint->values[static_cast<size_t>(value)].desc.bytes());
    pieces_of_one = std::max(pieces_of_one, static_cast<int>(place.extents.size()));
  }
  if (home() == Home::kReached)
    EXPECT_EQ(pieces_of_one, 1) << "kernels use it in one piece";
  else
    EXPECT_GT(pieces_of_one, 1) << "some parameter is larger than a piece";
  std::sort(used.begin(), used.end());
  for (size_t i = 1; i < used.size(); ++i) EXPECT_GE(used[i].first, used[i - 1].second);
  EXPECT_LE(used.back().second, plan->resident_bytes(tier()));
  // Small neighbours share a copy: fewer copies than tensors and their pieces.
  EXPECT_LT(plan->program(graph::kUpdate).copies.size(), 2 * used.size());
  if (home() == Home::kReached)
    for (const graph::PhaseIndex phase : {graph::kRepack, graph::kGradientNorm, graph::kUpdate})
      EXPECT_TRUE(plan->program(phase).copies.empty()) << "copies to what kernels reach";
  EXPECT_EQ(master_leaves(*plan), !plan->joint->ops(graph::kRepack).empty())
      << "weights that only packing reads";
}

// Parts of states of 8 bits are whole blocks but for the last one of a tensor, whatever a piece holds; and what pieces
// leave empty between them is in the account of the tier that they were given.
TEST(OffloadedState, BlocksAreNotCut) {
  const auto device = cpu();
  const Format& blocks = format(DType::kDynamic8);
  PlanOptions o = options_for({Tier::kHost}, 1);
  o.optimizer.name = "adamw8";
  o.forced.update_on_device = true;
  o.policy = Policy::kKeep;
  const int64_t least = smallest(o, *device);
  int64_t parts = 0;
  for (const int64_t more : {int64_t{0}, 4 * kPageBytes, 20 * kPageBytes, 60 * kPageBytes}) {
    o.budget_bytes = least + more;
    const auto plan = compile(heavy(), *device, o);
    int64_t counted = 0;
    for (const auto& [value, place] : plan->offloaded) {
      const TensorDesc& desc = plan->joint->values[static_cast<size_t>(value)].desc;
      int64_t at = 0;
      for (const OffloadedPlace::Extent& e : place.extents) {
        EXPECT_EQ(e.begin, at);
        EXPECT_EQ(e.tier_offset % kAlignment, 0);
        if (format(desc.dtype).block > 1) EXPECT_EQ(e.begin % blocks.block_bytes(), 0);
        at += e.bytes;
        ++parts;
      }
      EXPECT_EQ(at, desc.bytes());
      counted += desc.bytes() + desc.bytes() / 6 + 2 * kPageBytes;
    }
    EXPECT_LE(plan->offloaded_bytes[1], counted);
    parts -= static_cast<int64_t>(plan->offloaded.size());
  }
  EXPECT_GT(parts, 0) << "some state is in several parts";
}

TEST_P(OffloadedStateOn, AnyPartCanBeReadAndWritten) {
  const auto plan = tight();
  Session session(plan, device);
  for (const auto& [value, place] : plan->offloaded) {
    const int64_t bytes = plan->joint->values[static_cast<size_t>(value)].desc.bytes();
    std::vector<char> wanted(static_cast<size_t>(bytes), 0);
    EXPECT_EQ(bytes_of(session, value), wanted) << "state starts from zero";
    std::mt19937 random(static_cast<uint32_t>(value));
    for (int i = 0; i < 4; ++i) {
      const auto begin = static_cast<int64_t>(random()) % bytes;
      const int64_t count = static_cast<int64_t>(random()) % (bytes - begin) + 1;
      std::vector<char> part(static_cast<size_t>(count));
      for (char& c : part) c = static_cast<char>(random());
      session.write_at(value, begin, part.data(), count);
      std::copy(part.begin(), part.end(), wanted.begin() + begin);
      std::vector<char> back(part.size());
      session.read_at(value, begin, back.data(), count);
      EXPECT_EQ(back, part);
    }
    EXPECT_EQ(bytes_of(session, value), wanted);
    try {
      session.address(value);
      FAIL() << "an address on the device";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kUnsupported);
      EXPECT_NE(std::string(error.what()).find("lives in the"), std::string::npos) << error.what();
    }
    char c = 0;
    EXPECT_THROW(session.read_at(value, bytes, &c, 1), Error);
  }
  EXPECT_EQ(session.count(Tier::kDevice).live_bytes, plan->problem.persistent_bytes());
}

// A cancel for the next run does not hold back copies between runs, nor an update.
TEST_P(OffloadedStateOn, ACancelDoesNotReachStateOrUpdates) {
  const auto plan = tight();
  Session session(plan, device), other(plan, device);
  const double row[8] = {0.01, 0.9, 0.95, 1e-8, 0.1, 0.1, 0.05, 1.0};
  for (Session* s : {&session, &other}) {
    fill(*s);
    for (const graph::HyperBlock& hyper : plan->joint->hypers) s->write(hyper.value, row, sizeof row);
    s->run({1, 0, 0});
  }
  session.cancel();
  for (Session* s : {&session, &other}) s->update({});
  for (const auto& [value, place] : plan->offloaded)
    EXPECT_EQ(bytes_of(session, value), bytes_of(other, value));
  try {
    session.run({1, 1, 0});
    FAIL() << "the cancel was lost";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kCancelled);
  }
  for (Session* s : {&session, &other}) s->run({1, 1, 0});
  EXPECT_EQ(result(session), result(other));
  expect_exact_memory(other);
}

TEST_P(OffloadedStateOn, WeightsTheHostWritesAreSeenByTheNextRun) {
  const auto plan = tight();
  Session changed(plan, device), fresh(plan, device);
  fill(changed, 1);
  changed.run({0, 0, 0});
  const Result before = result(changed);
  fill(changed, 2);
  fill(fresh, 2);
  changed.run({0, 0, 0});
  fresh.run({0, 0, 0});
  EXPECT_EQ(result(changed), result(fresh));
  EXPECT_NE(result(changed), before);
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<Home, graph::AmpMode>>& test) {
  static constexpr const char* kHomes[] = {"reached", "host", "disk"};
  return std::string(kHomes[static_cast<size_t>(std::get<0>(test.param))]) +
         (std::get<1>(test.param) == graph::AmpMode::kOff ? "_f32" : "_bf16");
}

INSTANTIATE_TEST_SUITE_P(Tiers, OffloadedStateOn,
                         ::testing::Combine(::testing::Values(Home::kReached, Home::kHost, Home::kDisk),
                                            ::testing::Values(graph::AmpMode::kOff, graph::AmpMode::kBf16)),
                         name_of);

TEST(OffloadedState, AFullDiskIsAnErrorBeforeTheFirstStep) {
  device::DeviceOptions options;
  options.threads = 1;
  const auto device = device::open("cpu", options);
  PlanOptions o = options_for({Tier::kDisk}, 1);
  o.policy = Policy::kKeep;
  o.budget_bytes = smallest(o, *device);
  const auto plan = compile(heavy(), *device, o);
  options.disk_directory = "/proc";  // takes no file
  try {
    Session session(plan, device::open("cpu", options));
    FAIL() << "state without a place";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kIo);
    EXPECT_NE(std::string(error.what()).find("/proc"), std::string::npos) << error.what();
  }
  EXPECT_THROW(without_tier(*plan, Tier::kDisk), Error);
}

}  // namespace
}  // namespace cairn::engine
