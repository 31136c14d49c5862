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

// What a kernel leaves: a table's gradient, or looked-up rows.
std::vector<float> left(const char* op, const std::vector<Tensor>& in, const TensorDesc& out,
                        const Attrs& attrs) {
  std::vector<TensorDesc> descs;
  for (const Tensor& t : in) descs.push_back(t.desc);
  const auto kernel =
      kernels::cuda_registry().find({op, descs, {&out, 1}, (1u << in.size()) - 1, 1, &attrs, 1});
  Buffer buffer(out.bytes()), workspace(kernel->workspace_bytes());
  const Tensor y{out, buffer.data()};
  kernel->run({in, {&y, 1}, workspace.data(), 0, {}});
  return {y.as<float>(), y.as<float>() + out.shape.elements()};
}

// Tokens of one id over many windows, which parts cut as the whole table does.
TEST(CudaEmbedding, PartsHaveTheBitsOfTheWhole) {
  constexpr int64_t kVocab = 300, kTokens = 4200, kFirsts[] = {0, 104, 150, kVocab};
  for (const int64_t columns : {5, 8}) {
    Buffer id_bytes(kTokens * 4), dy_bytes(kTokens * columns * 4), table_bytes(kVocab * columns * 4);
    const Tensor ids{{DType::kI32, Shape{kTokens}, 0}, id_bytes.data()},
        dy{f32({kTokens, columns}), dy_bytes.data()}, table{f32({kVocab, columns}), table_bytes.data()};
    fill(ids, 1, {'I', {}, 0, kVocab});
    fill(dy, 2, T({}));
    fill(table, 3, T({}));
    const std::vector<Tensor> one = {ids};
    skew(one, kVocab);
    const auto whole = left("embedding_grad", {ids, dy}, table.desc, {{"vocab", kVocab}});
    const auto rows = left("embedding", {table, ids}, dy.desc, {});
    std::vector<float> parts, looked_up;
    for (size_t k = 0; k + 1 < std::size(kFirsts); ++k) {
      const int64_t first = kFirsts[k], count = kFirsts[k + 1] - first;
      const auto part =
          left("embedding_part_grad", {ids, dy}, f32({count, columns}), {{"first", first}, {"rows", count}});
      parts.insert(parts.end(), part.begin(), part.end());
      std::vector<float> own(table.as<float>() + first * columns,
                             table.as<float>() + (first + count) * columns);
      std::vector<Tensor> in = {{f32({count, columns}), own.data()}, ids};
      std::vector<float> before = looked_up;
      if (k > 0) in.push_back({dy.desc, before.data()});
      looked_up = left("embedding_part", in, dy.desc, {{"first", first}, {"vocab", kVocab}});
    }
    EXPECT_EQ(parts, whole) << columns;
    EXPECT_EQ(looked_up, rows) << columns;
  }
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
