#include "runtime/exec/rate_probe.h"

#include <set>

#include "runtime/costs/model.h"
#include "tests/runtime/compile/support.h"

namespace cairn::engine {
namespace {

// Whatever else the machine does: how long things took is no verdict.
TEST(RateProbe, MeasuresEveryKindOfOpInBothPrecisions) {
  const auto device = cpu();
  const device::TierCount before = device->ledger().count(Tier::kDevice);
  const std::optional<costs::Rates> rates = measure_rates(device->info(), kAnyWaiting);
  ASSERT_TRUE(rates.has_value());
  EXPECT_EQ(device->ledger().count(Tier::kDevice).peak_reserved_bytes, before.peak_reserved_bytes);
  std::set<std::pair<std::string, std::string>> names;
  for (const costs::ClassRate& c : rates->classes) {
    EXPECT_GT(c.seconds, 0) << c.op;
    EXPECT_GT(c.modelled_seconds, 0) << c.op;
    EXPECT_GT(c.count, 0) << c.op;
    names.insert({c.op, c.dtype});
  }
  for (const char* op :
       {"linear", "linear_grad_input", "linear_grad_weight", "attention", "attention_grad", "add", "gelu",
        "swiglu", "layernorm", "rmsnorm", "rope", "linear_cross_entropy_grad"})
    for (const char* dtype : {"f32", "bf16"}) EXPECT_TRUE(names.contains({op, dtype})) << op << ' ' << dtype;
  EXPECT_TRUE(names.contains({std::string(costs::kOptimizerOp), "f32"}));
  ASSERT_TRUE(rates->host.has_value());
  EXPECT_EQ(rates->host->tier, "host");
  EXPECT_GT(rates->host->busy_factor, 0);
  EXPECT_LE(rates->host->busy_factor, 1);
  EXPECT_GT(rates->measuring_seconds, 0);
  EXPECT_EQ(costs::to_json(costs::rates_from_json(costs::to_json(*rates))), costs::to_json(*rates));
}

// Threads that waited for longer than none at all: somebody else had the processors.
TEST(RateProbe, DisturbedItGivesNothing) { EXPECT_FALSE(measure_rates(cpu()->info(), -1).has_value()); }

}  // namespace
}  // namespace cairn::engine
