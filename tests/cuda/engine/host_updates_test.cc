// Updates by the processors beside an (emulated) GPU: the same bits as on it, recorded or not.
#include "runtime/engine/compile/update/host_updates.h"

#include "tests/runtime/engine/update_check.h"

namespace cairn::engine {
namespace {

using graph::AmpMode;
using Where = PlanOptions::Defer;

PlanOptions options_for(const char* optimizer, AmpMode amp, Where where) {
  PlanOptions o;
  o.optimizer.name = optimizer;
  o.amp = amp;
  o.host_updates = where;
  o.defer_updates = Where::kNever;
  o.tiers = {Tier::kHost};
  o.budget_share = 0.9;
  return o;
}

Result train(const std::shared_ptr<const CompiledPlan>& plan, const std::shared_ptr<device::Device>& device) {
  Session session(plan, device);
  fill(session);
  set_hyper(session);
  for (uint64_t i = 0; i < 4; ++i) step(session, i);
  expect_exact_memory(session);
  return trained(session);
}

TEST(CudaHostUpdates, HaveTheBitsOfTheDevices) {
  for (const char* optimizer : {"adamw", "adam", "lion", "sgd"})
    for (const AmpMode amp : {AmpMode::kOff, AmpMode::kBf16}) {
      SCOPED_TRACE(cat(optimizer, ' ', static_cast<int>(amp)));
      const auto device = device::open("cuda:0", {}), checked = device::checked(device);
      const auto resident = compile(layers(), *device, options_for(optimizer, amp, Where::kNever));
      const auto host = compile(layers(), *device, options_for(optimizer, amp, Where::kAlways));
      PlanOptions half = options_for(optimizer, amp, Where::kAlways);
      half.host_update_share = 0.5;
      ASSERT_EQ(resident->deferred_updates(), 0);
      ASSERT_EQ(host->update_at(), Tier::kHost);
      ASSERT_EQ(host->deferred_updates(), 4) << "the weights; biases are small";
      const Result expected = train(resident, device);
      EXPECT_EQ(train(host, device), expected) << "recorded";
      EXPECT_EQ(train(host, checked), expected);
      const auto both = compile(layers(), *device, half);
      EXPECT_EQ(both->deferred_updates(), 2);
      EXPECT_EQ(train(both, device), expected) << "the device streams the others meanwhile";
    }
}

// Nor for states of 8 bits, which a GPU rounds by steps of its own.
TEST(CudaHostUpdates, AreNotForWhatIsNoElementwiseUpdate) {
  const auto device = device::open("cuda:0", {});
  for (const char* optimizer : {"adafactor", "muon", "adamw8"}) {
    const auto plan = compile(layers(), *device, options_for(optimizer, AmpMode::kOff, Where::kAlways));
    for (const int32_t weight : plan->host_updated)
      EXPECT_LT(plan->joint->values[static_cast<size_t>(weight)].desc.shape.elements(), 4096);
  }
}

}  // namespace
}  // namespace cairn::engine
