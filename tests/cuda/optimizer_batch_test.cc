// Many tensors in one launch: the bits of a kernel each; what is not taken.
#include "tests/cuda/batch_check.h"
#include "tests/cuda/direct.h"

namespace cairn::conformance {
namespace {

TEST(CudaOptimizerBatch, HasTheBitsOfAKernelEach) { check_batches(kernels::cuda_registry()); }

// Chunks of more than the least size, and more than one for each thread of the block that adds them up.
TEST(CudaOptimizerBatch, SumsOfALargeTensor) {
  expect_squares_alike(kernels::cuda_registry(), {300, 9000001, 12345}, true);
}

TEST(CudaOptimizerBatch, ASingleUpdateMayPackToo) {
  const int64_t n = 3001;
  const TensorDesc x = desc(DType::kF32, {1, n}), hyper = desc(DType::kF64, {8}), pack = pack_of(n);
  const Direct with{"adamw", {x, hyper}, {x, x, x, pack}, {}}, other{"adamw", {x, hyper}, {x, x, x, x}, {}};
  EXPECT_EQ(kernels::cuda_registry().find(signature_of(other)), nullptr) << "x is no pack";
  EXPECT_EQ(kernels::cpu_registry().find(signature_of(with)), nullptr);
  EXPECT_EQ(kernels::reference_registry().find(signature_of(with)), nullptr);
  Operands in, out;
  in.add(x, 1, -2, 2);
  in.add(hyper, 2, 0.1, 0.9);
  for (uint32_t i = 0; i < 3; ++i) out.add(x, 3 + i, 0.1, 1);
  out.add(pack, 0, 0, 0);
  run_kernel(kernels::cuda_registry().find(signature_of(with)).get(), in.tensors, out.tensors);
  for (int64_t i = 0; i < n; ++i)
    ASSERT_EQ(static_cast<const bf16*>(out.tensors[3].data)[i].bits,
              to_bf16(static_cast<const float*>(out.tensors[0].data)[i]).bits);
}

TEST(CudaOptimizerBatch, OthersAreLaunchedOneByOne) {
  const auto batch = [](const std::vector<Direct>& ops, uint32_t later_present) {
    std::vector<kernels::Signature> signatures;
    for (const Direct& d : ops) {
      signatures.push_back(signature_of(d));
      if (signatures.size() > 1) signatures.back().out_present = later_present;
    }
    return kernels::cuda_registry().batch(signatures);
  };
  const TensorDesc x = desc(DType::kF32, {64}), low = desc(DType::kBF16, {64}),
                   wide = desc(DType::kF64, {64}), hyper = desc(DType::kF64, {8}),
                   scalar = desc(DType::kF64, {});
  const Direct squares{"sum_squares", {x}, {scalar}, {}};
  const Direct update{"adamw", {x, hyper}, {x, x, x, pack_of(64)}, {}};
  EXPECT_NE(batch({squares, squares}, 0), nullptr);
  EXPECT_NE(batch({update, update}, 7), nullptr);
  EXPECT_EQ(batch({}, 0), nullptr);
  EXPECT_EQ(batch({squares, squares}, 1), nullptr) << "an output of its own";
  EXPECT_EQ(batch({squares, {"sum_squares", {low}, {scalar}, {}}}, 0), nullptr);
  EXPECT_EQ(batch({squares, update}, 0), nullptr);
  EXPECT_EQ(batch({update, squares}, 0), nullptr);
  EXPECT_EQ(batch({update, {"adamw", {x, hyper}, {x, x, x, pack_of(63)}, {}}}, 15), nullptr);
  EXPECT_EQ(batch({{"adamw", {x, hyper}, {x, x, x}, {}}}, 7), nullptr) << "an operand less than the row";
  EXPECT_EQ(batch({{"adamw", {wide, hyper}, {wide, wide, wide, pack_of(64)}, {}}}, 7), nullptr);
  EXPECT_EQ(batch({{"gelu", {x}, {x}, {}}}, 1), nullptr);
}

}  // namespace
}  // namespace cairn::conformance
