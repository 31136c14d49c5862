// Kernels with parts to choose: what is listed, what a choice changes, and what a choice that nobody knows
// does.
#include "kernels/cuda/attention/library.h"
#include "kernels/registry.h"
#include "tests/cuda/emulated/runtime.h"
#include "tests/cuda/kernels/direct.h"
#include "tests/cuda/kernels/rows_check.h"

namespace cairn::conformance {
namespace {

namespace emulated = kernels::cuda::emulated;

// An op's operands, and what its kernel leaves under a choice.
struct Op {
  Direct direct;
  kernels::Options options_of(std::string_view row) const {
    kernels::Options options;
    kernels::Signature s = signature_of(direct);
    s.choice = row;
    s.options = &options;
    EXPECT_NE(kernels::cuda_registry().find(s), nullptr);
    return options;
  }
  int64_t workspace(std::string_view choice) const {
    kernels::Signature s = signature_of(direct);
    s.choice = choice;
    return kernels::cuda_registry().find(s)->workspace_bytes();
  }
  // Bytes of all outputs, compared with the reference's on the way.
  std::string bytes(std::string_view choice) const {
    kernels::Signature s = signature_of(direct);
    std::vector<Buffer> buffers;
    std::vector<Tensor> in;
    for (size_t i = 0; i < direct.in.size(); ++i) {
      buffers.emplace_back(direct.in[i].bytes());
      in.push_back({direct.in[i], buffers.back().data()});
      fill(in[i], 50 + i, T({}, -2, 2));
    }
    Outputs expected(s, 0), value(s, 0);
    run_into(*kernels::select(kernels::reference_registry(), s), in, expected, 0, {}, "reference");
    s.choice = choice;
    run_into(*kernels::cuda_registry().find(s), in, value, 0, {}, std::string(choice));
    EXPECT_LE(worst_error(s, expected, value, bound(ops::Tolerance::GEMM, coarsest(s)), std::string(choice)),
              1.0)
        << choice;
    std::string all;
    for (const Tensor& t : value.tensors)
      all.append(static_cast<const char*>(t.data), static_cast<size_t>(t.desc.bytes()));
    return all;
  }
};

Op weight_gradient() {
  return {{"linear_grad_weight",
           {desc(DType::kF32, {300, 24}), desc(DType::kF32, {300, 16})},
           {desc(DType::kF32, {16, 24}), desc(DType::kF32, {16})},
           {}}};
}

class CudaChoice : public ::testing::Test {
 protected:
  void SetUp() override { emulated::reset(); }
  void TearDown() override { emulated::reset(); }
};

TEST_F(CudaChoice, ListsTheAlgorithmsAndBothWaysToSumABias) {
  const kernels::Options options = weight_gradient().options_of("cublaslt");
  const std::vector<std::string> all{"sums loops0",    "sums loops1",    "sums loops2",
                                     "columns loops0", "columns loops1", "columns loops2"};
  ASSERT_EQ(options.size(), 1u);
  EXPECT_EQ(options[0], all);
}

TEST_F(CudaChoice, EveryWayIsWithinTheOpsTolerance) {
  const Op op = weight_gradient();
  std::set<std::string> different;
  const kernels::Options options = op.options_of("cublaslt");
  for (const std::string& word : options[0]) different.insert(op.bytes("cublaslt|" + word));
  EXPECT_GE(different.size(), 4u) << "the emulated algorithms add up in different orders";
  EXPECT_TRUE(different.contains(op.bytes("")));
}

TEST_F(CudaChoice, TheSameChoiceGivesTheSameBits) {
  const Op op = weight_gradient();
  for (const char* choice : {"", "cublaslt|columns loops2", "cublaslt|sums loops1"}) {
    const std::string first = op.bytes(choice);
    emulated::libraries().first_algorithm_slow = emulated::libraries().sums_slow = true;
    EXPECT_EQ(op.bytes(choice), first) << "how fast things are matters to nobody but a profile";
    emulated::libraries() = {};
  }
}

TEST_F(CudaChoice, WhatIsNotKnownIsTheBackendsOwn) {
  const Op op = weight_gradient();
  const std::string own = op.bytes("");
  for (const char* choice :
       {"cublaslt", "cublaslt|", "cublaslt|sums", "cublaslt|sums loops9", "cublaslt|columns", "||||",
        "nothing|x", "cublaslt|sums loops0|and more|parts", "cublaslt|\x01\xff"})
    EXPECT_EQ(op.bytes(choice), own) << choice;
  EXPECT_NE(op.workspace("cublaslt|sums loops2"), op.workspace(""));  // planned with what is chosen
}

TEST_F(CudaChoice, EachProductOfTheFusedLossIsAPart) {
  kernels::Signature s;
  const std::vector<TensorDesc> in{desc(DType::kF32, {40, 16}), desc(DType::kF32, {48, 16}),
                                   desc(DType::kI32, {40})};
  const std::vector<TensorDesc> out{desc(DType::kF64, {}), desc(DType::kF64, {}), in[0], in[1]};
  const Attrs attrs{{"chunk", int64_t{16}}};
  s = {"linear_cross_entropy_grad", in, out, 7, 15, &attrs, 1};
  kernels::Options options;
  s.options = &options;
  ASSERT_NE(kernels::cuda_registry().find(s), nullptr);
  EXPECT_EQ(options.size(), 6u);  // logits, dx and dw, of whole chunks and of the rest
  for (const auto& part : options) EXPECT_EQ(part.size(), 3u);
}

// ---- attention

kernels::Signature attention_gradient(int64_t length, std::vector<TensorDesc>& in,
                                      std::vector<TensorDesc>& out, const Attrs& attrs) {
  const TensorDesc qkv = desc(DType::kBF16, {2, length, 3 * 64}), y = desc(DType::kBF16, {2, length, 64}),
                   lse = desc(DType::kF32, {2, 1, length});
  in = {y, qkv, {}, {}, y, lse};
  out = {qkv, {}, {}};
  return {"attention_grad", in, out, 0b110011, 1, &attrs, 1};
}
// Which row makes the gradient at this length: by the workspace that tells them apart.
bool by_library(int64_t length) {
  const Attrs attrs{
      {"heads", int64_t{1}}, {"kv_heads", int64_t{1}}, {"causal", int64_t{1}}, {"scale", 0.125}};
  std::vector<TensorDesc> in, out;
  const kernels::Signature s = attention_gradient(length, in, out, attrs);
  kernels::Signature library = s;
  library.choice = "cudnn";
  for (const kernels::KernelRow& row : kernels::cuda_registry().rows)
    if (row.op == s.op && row.name == "cudnn") {
      const auto kernel = row.make(s);
      const auto taken = kernels::cuda_registry().find(s);
      if (kernel != nullptr) EXPECT_EQ(taken->workspace_bytes(), kernel->workspace_bytes());
      EXPECT_LT(taken->workspace_bytes(),
                std::max<int64_t>(int64_t{1} << 20, 2 * 2 * 2 * length * 8 * 64) + 1);
      return kernel != nullptr;
    }
  return false;
}

TEST_F(CudaChoice, ALibrarysQuadraticGradientIsLeftToCairnsOwn) {
  EXPECT_TRUE(by_library(256));
  EXPECT_TRUE(by_library(16384)) << "linear in the length from 9.25 on";
  emulated::libraries().attention = 91200;
  EXPECT_TRUE(by_library(256)) << "little, whatever its order";
  EXPECT_FALSE(by_library(16384));
  emulated::libraries().attention = 0;
  EXPECT_FALSE(by_library(256));
}

TEST_F(CudaChoice, SaysWhoComputesAttention) {
  using kernels::cuda::attention_row;
  EXPECT_EQ(attention_row(), "attention by cuDNN 9.25.0");
  emulated::libraries().attention = 91301;
  EXPECT_EQ(attention_row(),
            "attention by cuDNN 9.13.1, gradients of very long sequences by cairn (before 9.25)");
  emulated::libraries().attention = 0;
  EXPECT_EQ(attention_row(), "attention by cairn's own kernels: libcudnn.so.9 cannot be opened");
}

}  // namespace
}  // namespace cairn::conformance
