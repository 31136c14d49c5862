// The bits of a kernel follow from its inputs: not from the order in which blocks, warps and threads run, nor
// from when asynchronous copies land. A barrier or a wait too few shows here under some seed.
#include "kernels/registry.h"
#include "tests/cuda/emulated/runtime.h"
#include "tests/cuda/kernels/direct.h"
#include "tests/support/campaign.h"

namespace cairn::conformance {
namespace {

constexpr int kSeeds = 40, kOneIn = 10;

std::vector<Direct> cases() {
  std::vector<Direct> list;
  for (const DType t : {DType::kF32, DType::kBF16}) {
    const TensorDesc x = desc(t, {70, 72}), row = desc(DType::kF32, {72}), stat = desc(DType::kF32, {70});
    list.push_back({"layernorm", {x, row, row}, {x, stat, stat}, {{"eps", 1e-5}}});
    list.push_back({"layernorm_grad", {x, x, row, stat, stat}, {x, row, row}, {}});
    list.push_back({"rmsnorm", {x, row}, {x, stat}, {{"eps", 1e-5}}});
    list.push_back({"softmax", {x}, {x}, {}});
    list.push_back({"softmax_grad", {x, x}, {x}, {}});
    list.push_back({"transpose", {x}, {desc(t, {72, 70})}, {{"perm", std::vector<int64_t>{1, 0}}}});
    list.push_back(
        {"linear", {x, desc(DType::kF32, {33, 72}), desc(DType::kF32, {33})}, {desc(t, {70, 33})}, {}});
    list.push_back({"linear_grad_weight",
                    {x, desc(t, {70, 33})},
                    {desc(DType::kF32, {33, 72}), desc(DType::kF32, {33})},
                    {}});
    // Rows of two units, and of a part with as many.
    const TensorDesc few = desc(t, {3, 8}), head = desc(DType::kF32, {17000, 8}),
                     ids = desc(DType::kI32, {3}), scalar = desc(DType::kF64, {}),
                     sums = desc(DType::kF64, {3});
    list.push_back({"linear_cross_entropy_grad", {few, head, ids}, {scalar, scalar, few, head}, {}});
    list.push_back({"linear_cross_entropy_sum",
                    {few, head, desc(DType::kF32, {3, 4})},
                    {sums},
                    {{"first", int64_t{0}}, {"vocab", int64_t{40000}}}});
    const TensorDesc picture = desc(t, {2, 9, 8, 16}), filter = desc(DType::kF32, {24, 3, 3, 16}),
                     windows = desc(t, {2, 5, 4, 24}), outputs = desc(DType::kF32, {24}),
                     channels = desc(DType::kF32, {16}), groups = desc(DType::kF32, {2, 4}),
                     places = desc(DType::kI32, {2, 5, 4, 16});
    const Attrs strided{
        {"stride", List{2}}, {"padding", List{1}}, {"size", List{9, 8}}, {"kernel", List{3, 3}}};
    list.push_back({"conv", {picture, filter, outputs}, {windows}, strided});
    list.push_back({"conv_transpose", {windows, filter}, {picture}, strided});
    list.push_back({"conv_grad_weight", {picture, windows}, {filter, outputs}, strided});
    list.push_back({"conv_grad_weight",
                    {picture, desc(t, {2, 9, 8, 16})},
                    {desc(DType::kF32, {16, 1, 1, 1}), channels},
                    {{"groups", int64_t{16}}, {"kernel", List{1, 1}}}});
    list.push_back({"max_pool_grad", {desc(t, {2, 5, 4, 16}), places}, {picture}, {{"input", List{9, 8}}}});
    list.push_back({"batchnorm", {picture, channels, channels}, {picture, channels, channels}, {}});
    list.push_back({"batchnorm_grad",
                    {picture, picture, channels, channels, channels},
                    {picture, channels, channels},
                    {}});
    list.push_back(
        {"groupnorm", {picture, channels, channels}, {picture, groups, groups}, with("groups", int64_t{4})});
    list.push_back({"groupnorm_grad",
                    {picture, picture, channels, groups, groups},
                    {picture, channels, channels},
                    with("groups", int64_t{4})});
    const TensorDesc one = desc(DType::kF32, {1});
    list.push_back({"pair_loss_grad",
                    {x, x, one, one},
                    {scalar, scalar, x, x, one, one},
                    {{"kind", std::string("triplet")}}});
    for (const int64_t dim : {64, 40})
      for (const int64_t causal : {0, 1}) {
        const TensorDesc q = desc(t, {1, 90, 2 * dim}), kv = desc(t, {1, 90, dim}),
                         lse = desc(DType::kF32, {1, 2, 90});
        const Attrs attrs{
            {"heads", int64_t{2}}, {"kv_heads", int64_t{1}}, {"causal", causal}, {"scale", 0.2}};
        list.push_back({"attention", {q, kv, kv}, {q, lse}, attrs});
        list.push_back({"attention_grad", {q, q, kv, kv, q, lse}, {q, kv, kv}, attrs});
      }
  }
  return list;
}

// What one row leaves, as bytes.
std::string bytes(const kernels::Kernel& kernel, const Direct& d) {
  std::vector<Buffer> buffers;
  std::vector<Tensor> in, out;
  for (const auto* list : {&d.in, &d.out})
    for (const TensorDesc& t : *list) buffers.emplace_back(t.bytes());
  for (size_t i = 0; i < d.in.size(); ++i) {
    in.push_back({d.in[i], buffers[i].data()});
    fill(in[i], 50 + i, T({}, 0.2, 2));
  }
  for (size_t i = 0; i < d.out.size(); ++i) out.push_back({d.out[i], buffers[d.in.size() + i].data()});
  Buffer workspace(kernel.workspace_bytes());
  kernel.run({in, out, workspace.data(), 0, {}});
  std::string all;
  for (const Tensor& t : out)
    all.append(static_cast<const char*>(t.data), static_cast<size_t>(t.desc.bytes()));
  return all;
}

TEST(CudaSeeds, NoKernelsBitsDependOnTheOrderOfItsThreads) {
  int rows = 0;
  for (const Direct& d : cases()) {
    const kernels::Signature s = signature_of(d);
    for (const kernels::KernelRow& row : kernels::cuda_registry().rows) {
      if (row.op != s.op) continue;
      const auto kernel = row.make(s);
      if (kernel == nullptr) continue;
      ++rows;
      kernels::cuda::emulated::seed(1);
      const std::string first = bytes(*kernel, d);
      for (int seed = 2; seed <= kSeeds; ++seed) {
        if (!support::taken(seed, kOneIn)) continue;
        kernels::cuda::emulated::seed(static_cast<uint64_t>(seed));
        EXPECT_TRUE(bytes(*kernel, d) == first) << name_of(d) << ", row " << row.name << ", seed " << seed;
      }
    }
  }
  kernels::cuda::emulated::seed(1);
  EXPECT_GE(rows, 69);
}

}  // namespace
}  // namespace cairn::conformance
