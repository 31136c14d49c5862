// Dropout's bits: those of the reference over several blocks; the key of a lane.
#include "tests/cuda/kernels/direct.h"

namespace cairn::conformance {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kBF16};

Direct dropout(DType t, int64_t n, double rate) {
  return {"dropout", {desc(t, {n})}, {desc(t, {n})}, {{"rate", rate}, {"rng", int64_t{9}}}};
}

TEST(CudaDropout, DrawsTheBitsOfTheReference) {
  for (const DType t : kTypes)
    for (const int64_t n : {3, 4096, 4097, 30014, 30015})
      for (const double rate : {0.0, 0.1, 0.5}) agree(dropout(t, n, rate));
}

// seed, step and micro-batch from the lane, the op from the attribute.
TEST(CudaDropout, ReadsTheKeyOfItsLane) {
  const RandomKey key{77, 5, 2, 1}, other{78, 6, 3, 1};
  kernels::cuda::StreamContext lane;
  lane.key = &key;
  for (const DType t : kTypes) {
    const Direct d = dropout(t, 5003, 0.4);
    const auto with_key = [&](const RandomKey& of_call, const void* of_lane) {
      return Ran(d,
                 [&](Ran&, kernels::Call& call) {
                   call.key = of_call;
                   call.lane = of_lane;
                 })
          .bytes(0);
    };
    EXPECT_EQ(with_key(other, &lane), with_key(key, nullptr));
    EXPECT_NE(with_key(other, nullptr), with_key(key, nullptr));
  }
}

}  // namespace
}  // namespace cairn::conformance
