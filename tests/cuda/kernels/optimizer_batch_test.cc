// Many tensors in one launch: the bits of a kernel each; what is not taken.
#include "kernels/registry.h"
#include "tests/cuda/kernels/batch_check.h"
#include "tests/cuda/kernels/direct.h"

namespace cairn::conformance {
namespace {

TEST(CudaOptimizerBatch, HasTheBitsOfAKernelEach) { check_batches(kernels::cuda_registry()); }

// Chunks of more than the least size, and more than one for each thread of the block that adds them up.
TEST(CudaOptimizerBatch, SumsOfALargeTensor) {
  expect_squares_alike(kernels::cuda_registry(), {300, 9000001, 12345}, true);
}

TEST(CudaOptimizerBatch, ASingleUpdateMayPackToo) {
  const int64_t n = 3001;
  const TensorDesc x = desc(DType::kF32, {1, n});
  for (const UpdateKind& kind : elementwise_kinds()) {
    if (!kind.plain()) continue;
    const Direct with = update_call(kind, x, false, pack_of(n)), other = update_call(kind, x, false, x),
                 scaled = update_call(kind, x, true, pack_of(n));
    EXPECT_EQ(kernels::cuda_registry().find(signature_of(other)), nullptr) << "x is no pack";
    EXPECT_EQ(kernels::cuda_registry().find(signature_of(scaled)), nullptr);
    EXPECT_EQ(kernels::reference_registry().find(signature_of(with)), nullptr);
    const Ran ran(with, [](Ran&, kernels::Call&) {});
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(static_cast<const bf16*>(ran.out[kPackedAt].data)[i].bits,
                to_bf16(static_cast<const float*>(ran.out[0].data)[i]).bits);
  }
}

TEST(CudaOptimizerBatch, OthersAreLaunchedOneByOne) {
  const auto batch = [](const std::vector<Direct>& ops, bool own_totals = false) {
    std::vector<kernels::Signature> signatures;
    for (const Direct& d : ops) {
      signatures.push_back(signature_of(d));
      if (std::string_view(d.op) == "sum_squares" && signatures.size() > 1 && !own_totals)
        signatures.back().out_present = 0;
    }
    return kernels::cuda_registry().batch(signatures);
  };
  for (const UpdateKind& each : update_kinds())
    if (!each.row->is(ops::UPDATE_ELEMENTWISE))
      EXPECT_EQ(batch({update_call(each, each.parameter(64), false)}), nullptr) << each.name();
  const TensorDesc x = desc(DType::kF32, {64}), low = desc(DType::kBF16, {64}),
                   wide = desc(DType::kF64, {64}), scalar = desc(DType::kF64, {});
  const Direct squares{"sum_squares", {x}, {scalar}, {}};
  const UpdateKind kind = update_kinds().front();
  const Direct update = update_call(kind, x, false, pack_of(64)), plain = update_call(kind, x, false);
  EXPECT_NE(batch({squares, squares}), nullptr);
  EXPECT_NE(batch({update, plain}), nullptr);
  EXPECT_EQ(batch({}), nullptr);
  EXPECT_EQ(batch({squares, squares}, true), nullptr) << "an output of its own";
  EXPECT_EQ(batch({squares, {"sum_squares", {low}, {scalar}, {}}}), nullptr);
  EXPECT_EQ(batch({squares, update}), nullptr);
  EXPECT_EQ(batch({update, squares}), nullptr);
  EXPECT_EQ(batch({update, update_call(kind, x, false, pack_of(63))}), nullptr);
  EXPECT_EQ(batch({update, update_call(kind, x, true)}), nullptr) << "it has a gradient scale";
  EXPECT_EQ(batch({update_call(kind, wide, false)}), nullptr);
  Direct shorter = plain, unknown = plain;
  shorter.out.pop_back();
  EXPECT_EQ(batch({shorter}), nullptr) << "an operand less than the row";
  unknown.attrs.set("optimizer", std::string("adamax"));
  EXPECT_EQ(batch({plain, unknown}), nullptr);
  EXPECT_EQ(batch({{"gelu", {x}, {x}, {}}}), nullptr);
}

}  // namespace
}  // namespace cairn::conformance
