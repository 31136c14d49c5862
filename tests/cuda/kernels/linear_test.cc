// linear and its gradients where the conformance cases do not reach: wide rows, several blocks of rows, every
// way of adding bias and activation, outputs left out.
#include "kernels/registry.h"
#include "tests/cuda/kernels/rows_check.h"

namespace cairn::conformance {
namespace {

TEST(CudaLinear, BiasAndActivation) {
  for (const DType t : kTypes)
    for (const int64_t n : {264, 36, 33})
      for (const char* act : {"", "gelu_tanh", "gelu_erf", "relu", "silu"})
        for (const bool bias : {true, false})
          for (const uint32_t present : {1u, 3u}) {
            const bool has_pre = *act != '\0' && std::string_view(act) != "relu";
            if (present == 3 && !has_pre) continue;
            const Argument x = floats(t, {2, 21, 40}), w = floats(DType::kF32, {n, 40}),
                           b = floats(DType::kF32, {n});
            const TensorDesc y{t, Shape{2, 21, n}, 0};
            std::vector<TensorDesc> out{y};
            if (has_pre) out.push_back(y);
            check_rows(
                {"linear", {x, w, bias ? b : kLeftOut}, out, {{"activation", std::string(act)}}, present});
          }
}

TEST(CudaLinear, NaNsStay) {
  for (const char* act : {"", "gelu_tanh", "gelu_erf", "relu", "silu"}) {
    RowCase c{"linear",
              {floats(DType::kF32, {4, 8}), floats(DType::kF32, {16, 8}), floats(DType::kF32, {16})},
              {f32({4, 16})},
              {{"activation", std::string(act)}}};
    c.edit = [](std::span<const Tensor> in) { set(in[0], 9, std::nan("")); };
    check_rows(c);
  }
}

// With the library's derivative of gelu and with a pass: rows of 36 and 33 are none of the library's.
TEST(CudaLinear, InputGradientThroughAnActivation) {
  for (const DType t : kTypes)
    for (const int64_t k : {264, 36, 33, 2400})
      for (const char* act : {"gelu_tanh", "gelu_erf", "relu", "silu"}) {
        const Argument dy = floats(t, {2, 21, 40}), w = floats(DType::kF32, {40, k}),
                       pre = floats(t, {2, 21, k}, -4, 4);
        check_rows({"linear_grad_input", {dy, w, pre}, {like(pre)}, {{"activation", std::string(act)}}});
      }
}

// relu's derivative chooses: where it is 0 there is no NaN.
TEST(CudaLinear, ReluCutsNaNsOff) {
  RowCase c{"linear_grad_input",
            {floats(DType::kF32, {4, 8}), floats(DType::kF32, {8, 16}), floats(DType::kF32, {4, 16})},
            {f32({4, 16})},
            {{"activation", std::string("relu")}}};
  c.edit = [](std::span<const Tensor> in) {
    set(in[0], 9, std::nan(""));
    set(in[2], 5, std::nan(""));
  };
  check_rows(c);
}

TEST(CudaLinear, WeightGradient) {
  for (const DType t : kTypes)
    for (const int64_t n : {520, 64, 33, 1}) {
      const int64_t rows = n == 520 ? 100 : 1500;
      const Argument x = floats(t, {rows, 12}), dy = floats(t, {rows, n});
      for (const uint32_t present : {1u, 3u})
        check_rows({"linear_grad_weight", {x, dy}, {f32({n, 12}), f32({n})}, {}, present});
    }
}

TEST(CudaLinear, PacksUnderBFloat16Only) {
  const TensorDesc w = f32({33, 7});
  const auto& registry = kernels::cuda_registry();
  for (const char* use : {"forward", "input_grad"}) {
    EXPECT_EQ(registry.packed_bytes(w, use, 8, DType::kBF16, 1), 33 * 7 * 2);
    EXPECT_EQ(registry.packed_bytes(w, use, 8, DType::kF32, 1), 0);
  }
}

}  // namespace
}  // namespace cairn::conformance
