// Quick searches of chains whose link is what everything waits for: as near to the bound as where there is room.
#include <gtest/gtest.h>

#include "bench/plan/tape.h"
#include "runtime/plan/cache.h"

namespace cairn::plan {
namespace {

// Blocks as a llama's, of `rows` tokens: many values per block, which differ in what they take to be made again.
Problem llama(int layers, int64_t rows, int64_t width, int64_t hidden) {
  bench::Tape tape;
  int32_t region = -1;
  const auto add = [&](const std::string& name, std::vector<int32_t> in, int64_t columns, double flops,
                       bench::Reads reads) {
    const int64_t bytes = rows * columns * 2;
    const double moved = static_cast<double>(rows) * static_cast<double>(columns) * 4;
    bench::Forward f{.name = name, .inputs = std::move(in), .bytes = bytes};
    f.seconds = bench::roofline(flops, moved);
    f.back_seconds = bench::roofline(2 * flops, 2 * moved);
    f.reads = reads;
    f.region = region;
    return tape.add(std::move(f));
  };
  const auto linear = [&](const std::string& name, int32_t x, int64_t inner, int64_t outer) {
    return add(name, {x}, outer, 2.0 * static_cast<double>(rows * inner) * static_cast<double>(outer),
               {.input = true});
  };
  int32_t x = add("embedding", {tape.value("tokens", 8 * rows, true)}, width, 0, {});
  for (int i = 0; i < layers; ++i) {
    const std::string h = "h" + std::to_string(i) + ".";
    region = tape.region("h" + std::to_string(i));
    const int32_t norm = add(h + "norm1", {x}, width, 0, {.input = true});
    const int32_t q = add(h + "rope_q", {linear(h + "q", norm, width, width)}, width, 0, {});
    const int32_t k = add(h + "rope_k", {linear(h + "k", norm, width, width)}, width, 0, {});
    const int32_t v = linear(h + "v", norm, width, width);
    const int32_t mixed = add(h + "attention", {q, k, v}, width,
                              2.0 * static_cast<double>(rows) * 1024 * static_cast<double>(width),
                              {.input = true, .output = true});
    x = add(h + "add1", {x, linear(h + "o", mixed, width, width)}, width, 0, {.only_passes_on = true});
    const int32_t norm2 = add(h + "norm2", {x}, width, 0, {.input = true});
    const int32_t gate = linear(h + "gate", norm2, width, hidden),
                  up = linear(h + "up", norm2, width, hidden);
    const int32_t both = add(h + "swiglu", {gate, up}, hidden, 0, {.input = true});
    x = add(h + "add2", {x, linear(h + "down", both, hidden, width)}, width, 0, {.only_passes_on = true});
  }
  add("loss", {x}, 1, 0, {.input = true});
  return tape.finish();
}

TEST(ScarceLink, QuickSearchesComeNearTheBound) {
  Problem p = llama(40, 8192, 4096, 11008);
  double made = 0, seconds = 0;
  for (const Value& v : p.values) made += v.persistent ? 0 : static_cast<double>(v.bytes);
  for (const Op& op : p.ops) seconds += op.seconds;
  // About a third of what forward makes can leave while it runs.
  p.links.push_back({"host", 1e-5, made / 2 / seconds, made / 2 / seconds, 0.7, int64_t{1} << 50});
  for (const double share : {0.06, 0.08, 0.1, 0.12}) {
    const int64_t budget = p.persistent_bytes() + static_cast<int64_t>(share * made / 2);
    SolverCache cache;
    const std::optional<Plan> plan = cache.solve_roughly(p, budget);
    ASSERT_TRUE(plan) << share;
    EXPECT_LT(plan->gap, 0.01) << share;
  }
}

}  // namespace
}  // namespace cairn::plan
