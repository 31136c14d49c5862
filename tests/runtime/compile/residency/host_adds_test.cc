// Gradients that the host's processors add up: their bits, what crosses the link, when they are chosen.
#include "runtime/compile/residency/host_adds.h"

#include "runtime/exec/measure.h"
#include "tests/runtime/compile/update/card.h"

namespace cairn::engine {
namespace {

using When = ForcedChoices::When;

PlanOptions options_for(When adds, When updates, uint32_t micro_steps) {
  PlanOptions o;
  o.forced.host_adds = adds;
  o.forced.host_updates = updates;
  o.forced.defer_updates = When::kNever;
  o.forced.update_on_device = true;
  o.tiers = {Tier::kHost};
  o.budget_share = 0.6;
  o.micro_steps = micro_steps;
  return o;
}

// Losses and squares of three steps, and what they leave.
struct Trained {
  std::vector<double> squares;
  Result result;
};
Trained trained_with(const PlanOptions& options, const std::shared_ptr<device::Device>& device,
                     const std::shared_ptr<const CompiledPlan>& plan) {
  Session session(plan, device);
  fill(session);
  set_hyper(session);
  Trained all;
  for (uint64_t i = 0; i < 3; ++i) {
    for (uint32_t micro = 0; micro < options.micro_steps; ++micro) session.run({7, i, micro});
    all.squares.push_back(session.gradient_squares());
    session.update({});
  }
  expect_exact_memory(session);
  all.result = trained(session);
  return all;
}

// Linear layers whose gradients are worth a launch on the host.
std::shared_ptr<Graph> wide_layers() {
  auto g = std::make_shared<Graph>();
  ValueId x = g->input("x", {DType::kF32, {64, 512}});
  const ValueId t = g->input("t", {DType::kF32, {64, 512}});
  for (const char* name : {"a", "b", "c", "d"})
    x = g->op("gelu", {g->op("linear", {x, parameter(*g, name, {512, 512})})[0]})[0];
  const auto loss = g->op("mse", {x, t});
  g->freeze(loss[0], loss[1], {});
  return g;
}
// On a card that takes about as long for a layer as its link for the weight.
PlanOptions wide_options(double host_memory, When adds, uint32_t micro_steps,
                         int64_t host_bytes = int64_t{1} << 40) {
  costs::Table table = *card(1e9, host_memory, host_bytes);
  table.model->f32_flops_per_second = 3e10;
  PlanOptions o = tight_options(std::make_shared<const costs::Table>(table), When::kNever);
  o.forced.host_adds = adds;
  o.micro_steps = micro_steps;
  o.budget_bytes = 4 << 20;
  return o;
}

int64_t later_only(const CompiledPlan& plan, Tier to) {
  const std::vector<CopyJob>& copies = plan.program().copies;
  return std::count_if(copies.begin(), copies.end(),
                       [&](const CopyJob& job) { return job.micro == Micro::kLater && job.to == to; });
}

TEST(HostAdds, ChangeNoBit) {
  const auto device = device::checked(device::open("cpu", {.threads = 1}));
  for (const When updates : {When::kNever, When::kAlways})
    for (const double more : {0.0, 0.15}) {
      PlanOptions with = options_for(When::kAlways, updates, 3);
      with.budget_share = (updates == When::kAlways ? 0.6 : 0.3) + more;
      PlanOptions without = with;
      without.forced.host_adds = When::kNever;
      const auto host = compile(layers(), *device, with), fetched = compile(layers(), *device, without);
      ASSERT_FALSE(host->host_added.empty());
      ASSERT_TRUE(fetched->host_added.empty());
      const Trained one = trained_with(with, device, host), other = trained_with(without, device, fetched);
      EXPECT_EQ(one.result, other.result);
      EXPECT_EQ(one.squares, other.squares);
    }
}

TEST(HostAdds, BringNothingBackToBeAddedTo) {
  const auto device = device::open("cpu", {.threads = 1});
  const auto host = compile(layers(), *device, options_for(When::kAlways, When::kAlways, 3));
  const auto fetched = compile(layers(), *device, options_for(When::kNever, When::kAlways, 3));
  const auto added = static_cast<int64_t>(host->host_added.size());
  EXPECT_EQ(added, 4) << "the weights'; biases are small";
  EXPECT_EQ(later_only(*host, Tier::kHost), added);
  EXPECT_EQ(later_only(*fetched, Tier::kHost), 0);
  EXPECT_EQ(later_only(*fetched, Tier::kDevice), added);
  for (const auto& [gradient, add] : host->host_added) {
    EXPECT_EQ(host->where(gradient, Point::kBetween).tier, Tier::kHost);
    EXPECT_EQ(add.squares >= 0, host->joint->squares_in_backward);
  }
  EXPECT_GE(host->add_ring, 0);
  EXPECT_LE(host->add_ring + host->add_ring_bytes, host->offloaded_bytes[1]);
}

TEST(HostAdds, AreSpansOfTheHostsLane) {
  const auto device = device::open("cpu", {.threads = 1});
  const auto plan = compile(layers(), *device, options_for(When::kAlways, When::kAlways, 2));
  Session session(plan, device);
  fill(session);
  set_hyper(session);
  std::set<std::string> names;
  for (const uint32_t micro : {0u, 1u}) {
    session.trace(true);
    session.run({7, 0, micro});
    for (const Span& span : session.spans())
      if (span.lane == device::Lane::kHost) names.insert(span_name(*plan, span));
    if (micro == 0) EXPECT_TRUE(names.empty()) << "the first one writes";
  }
  EXPECT_EQ(names, (std::set<std::string>{"l0.down/gradient", "l0.up/gradient", "l1.down/gradient",
                                          "l1.up/gradient"}));
}

TEST(HostAdds, AreMadeWhereTheHostHasTimeForThem) {
  const auto device = device::open("cpu", {.threads = 1});
  const auto plan_with = [&](double host_memory, When adds, uint32_t micro_steps) {
    return compile(wide_layers(), *device, wide_options(host_memory, adds, micro_steps));
  };
  const auto fast = plan_with(1e11, When::kWhereFaster, 4), never = plan_with(1e11, When::kNever, 4);
  EXPECT_FALSE(fast->host_added.empty());
  EXPECT_TRUE(never->host_added.empty());
  EXPECT_LT(fast->plan.predicted_seconds, never->plan.predicted_seconds);
  EXPECT_TRUE(plan_with(1e11, When::kWhereFaster, 1)->host_added.empty()) << "there is nothing to add to";
  EXPECT_TRUE(plan_with(0, When::kWhereFaster, 4)->host_added.empty()) << "nothing is known of the host";
  EXPECT_TRUE(plan_with(1e6, When::kWhereFaster, 4)->host_added.empty()) << "the host takes too long";
}

// What waits in the ring is added before something else comes there.
TEST(HostAdds, WaitInARingThatIsSmallerThanAllOfThem) {
  const auto device = device::open("cpu", {.threads = 1});
  const auto plan = compile(layers(4), *device, options_for(When::kAlways, When::kAlways, 2));
  ASSERT_EQ(plan->host_added.size(), 8u);
  EXPECT_EQ(plan->add_ring_bytes, 2 * 96 * 256 * 4);
  for (const CopyJob& job : plan->program().copies) {
    if (job.micro != Micro::kLater || job.to != Tier::kHost) continue;
    EXPECT_GE(job.to_offset, plan->add_ring);
    EXPECT_LE(job.to_offset + job.bytes, plan->add_ring + plan->add_ring_bytes);
  }
}

TEST(HostAdds, NeedRoomOnTheHost) {
  const auto device = device::open("cpu", {.threads = 1});
  const PlanOptions o = wide_options(1e11, When::kWhereFaster, 4, 17 << 20);
  const auto plan = compile(wide_layers(), *device, o);
  EXPECT_LE(plan->resident_bytes(Tier::kHost), 17 << 20);
  EXPECT_EQ(plan::violation(plan->problem, plan->plan), "");
}

}  // namespace
}  // namespace cairn::engine
