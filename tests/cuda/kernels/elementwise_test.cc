// Sweeps over several blocks, operands that are repeated, outputs that lie on inputs or are left out.
#include "tests/cuda/kernels/direct.h"

namespace cairn::conformance {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kBF16};

TEST(CudaElementwise, AddAndMulRepeatTheSecondOperand) {
  for (const char* op : {"add", "mul"})
    for (const DType a : kTypes)
      for (const DType b : {a, DType::kF32})
        for (const int64_t row : {1, 7, 20, 64, 768, 5001, 6144}) {
          agree({op, {desc(a, {11, row}), desc(b, {row})}, {desc(a, {11, row})}, {}});
          agree({op, {desc(a, {row}), desc(b, {row})}, {desc(a, {row})}, {}});
        }
}

TEST(CudaElementwise, SeveralBlocksWithARest) {
  for (const DType t : kTypes)
    for (const int64_t n : {2048, 4096, 4099, 30011}) {
      const TensorDesc x = desc(t, {n});
      for (const char* op : {"gelu", "silu", "relu"}) {
        agree({op, {x}, {x}, {}});
        agree({cat(op, "_grad").c_str(), {x, x}, {x}, {}});
      }
      agree({"gelu", {x}, {x}, word("approximate", "erf")});
      agree({"gelu_grad", {x, x}, {x}, word("approximate", "erf")});
      agree({"swiglu", {x, x}, {x}, {}});
      agree({"swiglu_grad", {x, x, x}, {x, x}, {}});
      for (const GluRow& glu : kGlus) {
        agree({"glu", {x, x}, {x}, word("activation", std::string(glu.word))});
        agree({"glu_grad", {x, x, x}, {x, x}, word("activation", std::string(glu.word))});
      }
      agree({"scale", {x}, {x}, with("factor", 0.37)});
      agree({"accumulate", {x}, {desc(DType::kF32, {n})}, {}});
      for (const DType y : kTypes)
        agree({"cast", {x}, {desc(y, {n})}, word("dtype", std::string(dtype_name(y)))});
    }
}

TEST(CudaElementwise, FillWritesEveryFloatType) {
  for (const DType t : {DType::kF32, DType::kBF16, DType::kF64})
    for (const int64_t n : {1, 2, 5, 8191, 8192, 30011})
      agree({"fill",
             {},
             {desc(t, {n})},
             {{"shape", List{n}}, {"value", -0.3}, {"dtype", std::string(dtype_name(t))}}});
}

TEST(CudaElementwise, GradientsOfSwigluMayBeLeftOut) {
  const TensorDesc x = desc(DType::kBF16, {5003});
  const Direct d{"swiglu_grad", {x, x, x}, {x, x}, {}};
  const Ran both(d, [](Ran&, kernels::Call&) {});
  for (size_t left_out : {0, 1}) {
    const Ran one(d, [&](Ran& ran, kernels::Call&) { ran.out[left_out].data = nullptr; });
    EXPECT_EQ(one.bytes(1 - left_out), both.bytes(1 - left_out));
  }
}

// Every elementwise row with an input marked '=' in ops.def.
TEST(CudaElementwise, MarkedInputsMayBeWrittenOver) {
  int marked = 0;
  for (const ops::OpRow& row : ops::all())
    for (size_t over = 0; over < row.inputs.size(); ++over) {
      const bool elementwise =
          row.tolerance != ops::Tolerance::REDUCTION && row.tolerance != ops::Tolerance::GEMM;
      if (!row.inputs[over].in_place || !elementwise) continue;
      ++marked;
      for (const DType t : kTypes)
        for (const int64_t n : {1, 7, 64, 20003}) {
          const bool by_channel = row.code == ops::OpCode::k_normalize;
          const TensorDesc x = by_channel ? desc(t, {3, n}) : desc(t, {n});
          std::vector<TensorDesc> in(row.inputs.size(), by_channel ? desc(DType::kF32, {n}) : x);
          in[over] = x;
          const Direct d{row.name.data(),
                         in,
                         std::vector<TensorDesc>(row.outputs.size(), x),
                         {{"factor", 0.37},
                          {"eps", 8.0},
                          {"rate", 0.3},
                          {"rng", int64_t{5}},
                          {"dtype", std::string(dtype_name(t))},
                          {"exponent", 3.0}}};
          const Ran apart(d, [](Ran&, kernels::Call&) {});
          const Ran lying(d, [&](Ran& ran, kernels::Call& call) {
            ran.out[0].data = ran.in[over].data;
            call.in_place = 1u << over;
          });
          for (size_t o = 0; o < d.out.size(); ++o)
            EXPECT_EQ(lying.bytes(o), apart.bytes(o)) << name_of(d) << " over " << row.inputs[over].name;
        }
    }
  EXPECT_GE(marked, 15);
}

}  // namespace
}  // namespace cairn::conformance
