// embedding and its gradient: tokens of one id over many windows, many ranges of table rows, ids outside the
// table.
#include "tests/cuda/kernels/rows_check.h"

namespace cairn::conformance {
namespace {

// Most tokens are of few ids; some are outside.
void skew(std::span<const Tensor> in, int64_t vocab) {
  auto* ids = in[0].as<int32_t>();
  const int64_t tokens = in[0].desc.shape.elements();
  for (int64_t i = 0; i < tokens; ++i) {
    if (i % 3 == 0) ids[i] = static_cast<int32_t>(vocab / 2);
    if (i % 5 == 0) ids[i] = 0;
    if (i % 7 == 0) ids[i] = static_cast<int32_t>(vocab - 1);
    if (i % 97 == 0) ids[i] = static_cast<int32_t>(i % 2 == 0 ? vocab : -1);
  }
}

TEST(CudaEmbedding, Gradient) {
  struct Size {
    int64_t vocab, columns, tokens;
  };
  const auto check = [](const Size& z, DType t, bool skewed) {
    RowCase c{"embedding_grad",
              {integers({z.tokens}, 0, static_cast<double>(z.vocab)), floats(t, {z.tokens, z.columns})},
              {f32({z.vocab, z.columns})},
              {{"vocab", z.vocab}}};
    if (skewed) c.edit = [&](std::span<const Tensor> in) { skew(in, z.vocab); };
    check_rows(c);
  };
  for (const DType t : kTypes)
    for (const Size& z : {Size{1, 4, 300}, Size{5, 3, 1000}, Size{3, 1100, 150}, Size{20, 4, 1}}) {
      check(z, t, false);
      check(z, t, true);
    }
  check({300, 5, 4200}, DType::kBF16,
        true);  // several rows per range, and more tokens than are looked at at once
}

TEST(CudaEmbedding, NoTokenIsOfTheTable) {
  RowCase c{"embedding_grad",
            {integers({200}, 0, 5), floats(DType::kF32, {200, 8})},
            {f32({5, 8})},
            {{"vocab", int64_t{5}}}};
  c.edit = [](std::span<const Tensor> in) { std::fill_n(in[0].as<int32_t>(), 200, 5); };
  check_rows(c);
}

TEST(CudaEmbedding, Lookup) {
  for (const DType t : kTypes)
    for (const int64_t columns : {1, 4, 33, 260}) {
      const TensorDesc y{t, Shape{3, 100, columns}, 0};
      check_rows({"embedding",
                  {floats(DType::kF32, {50, columns}), integers({3, 100}, -1, 53)},
                  {y},
                  {{"dtype", std::string(dtype_name(t))}}});
    }
}

}  // namespace
}  // namespace cairn::conformance
