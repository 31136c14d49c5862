// Updates and sums of squares over several blocks; what closes the gate.
#include <limits>

#include "tests/cuda/direct.h"

namespace cairn::conformance {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = HUGE_VAL;
const TensorDesc kScalar = desc(DType::kF64, {}), kHyper = desc(DType::kF64, {8});

TEST(CudaOptimizer, SumsOfSquaresInChunks) {
  for (const DType t : {DType::kF32, DType::kBF16})
    for (const int64_t n : {8191, 8192, 8197, 100003}) agree({"sum_squares", {desc(t, {n})}, {kScalar}, {}});
}

TEST(CudaOptimizer, SumOfSquaresIsFiniteExactlyIfAllElementsAre) {
  const Direct d{"sum_squares", {desc(DType::kF32, {20001})}, {kScalar}, {}};
  for (const double value : {1e30, kInfinity, kNan})
    for (const int64_t at : {0, 9000, 20000}) {
      const Ran ran(d, [&](Ran& r, kernels::Call&) { set(r.in[0], at, value); });
      EXPECT_EQ(std::isfinite(get(ran.out[0], 0)), std::isfinite(value)) << value << " at " << at;
      if (std::isfinite(value)) EXPECT_NEAR(get(ran.out[0], 0) / 1e60, 1, 1e-6);
    }
}

Direct gated(int64_t n) {
  const TensorDesc x = desc(DType::kF32, {n});
  return {"adamw_gated", {x, kHyper, kScalar}, {x, x, x, kScalar}, {}};
}

void set_hyper(const Tensor& t) {
  const double hyper[] = {1e-2, 0.9, 0.95, 1e-8, 0.1, 1 - 0.9, 1 - 0.95, 0.5};
  for (int64_t i = 0; i < 8; ++i) set(t, i, hyper[i]);
}

TEST(CudaOptimizer, UpdatesSeveralBlocksWithARest) {
  for (const int64_t n : {1023, 1024, 1027, 50002}) {
    const TensorDesc x = desc(DType::kF32, {n});
    agree({"adamw", {x, kHyper}, {x, x, x}, {}});
    agree(gated(n));
  }
}

// The gate's factor stands for hyper's: the same bits.
TEST(CudaOptimizer, TheGateIsTheFactor) {
  const int64_t n = 3001;
  const TensorDesc x = desc(DType::kF32, {n});
  const Ran plain({"adamw", {x, kHyper}, {x, x, x}, {}}, [](Ran& r, kernels::Call&) { set_hyper(r.in[1]); });
  const Ran open(gated(n), [](Ran& r, kernels::Call&) {
    set_hyper(r.in[1]);
    set(r.in[1], 7, 123.0);
    set(r.out[3], 0, 0.5);
  });
  for (size_t o : {0, 1, 2}) EXPECT_EQ(open.bytes(o), plain.bytes(o)) << "output " << o;
  EXPECT_EQ(get(open.out[3], 0), 0.5);
}

TEST(CudaOptimizer, AClosedGateLeavesEverythingAsItIs) {
  struct Case {
    double total, gate;
    bool closes;
  };
  for (const Case& c :
       {Case{kNan, 0.5, true}, Case{kInfinity, 0.5, true}, Case{1, kNan, true}, Case{1, 0.5, false}}) {
    std::vector<std::string> before(3);
    const Ran ran(gated(3001), [&](Ran& r, kernels::Call&) {
      set_hyper(r.in[1]);
      set(r.in[2], 0, c.total);
      set(r.out[3], 0, c.gate);
      for (size_t o : {0, 1, 2}) before[o] = r.bytes(o);
    });
    for (size_t o : {0, 1, 2}) EXPECT_EQ(ran.bytes(o) == before[o], c.closes) << "output " << o;
    EXPECT_EQ(std::isnan(get(ran.out[3], 0)), c.closes);
  }
}

TEST(CudaOptimizer, UpdateGateIsOneOverTheWeight) {
  struct Case {
    double loss, weight, gate;
  };
  for (const Case& c : {Case{3, 4, 0.25}, Case{3, 0, 1}, Case{kNan, 4, kNan}, Case{3, kInfinity, kNan}}) {
    const Ran ran({"update_gate", {kScalar, kScalar}, {kScalar}, {}}, [&](Ran& r, kernels::Call&) {
      set(r.in[0], 0, c.loss);
      set(r.in[1], 0, c.weight);
    });
    const double gate = get(ran.out[0], 0);
    EXPECT_TRUE(gate == c.gate || (std::isnan(gate) && std::isnan(c.gate)))
        << gate << " for weight " << c.weight;
  }
  const Ran alone({"update_gate", {kScalar, kScalar}, {kScalar}, {}},
                  [&](Ran& r, kernels::Call&) { r.in[1].data = nullptr; });
  EXPECT_EQ(get(alone.out[0], 0), 1.0);
}

}  // namespace
}  // namespace cairn::conformance
