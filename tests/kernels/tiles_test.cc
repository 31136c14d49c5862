// Ops whose rows come in tiles of Registry::tile_rows: the bits are those of all rows at once.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "kernels/registry.h"
#include "runtime/base/parallel.h"

namespace cairn::kernels {
namespace {

// An operand is rows of so many columns, or what all rows share. Sums are float32.
struct Operand {
  enum Kind { kRows, kShared, kSum } kind;
  std::vector<int64_t> shape;  // without the rows
  bool wide = false;           // float32 whatever the others are
};
struct Case {
  const char* op;
  std::vector<Operand> in, out;
  Attrs attrs;
};

const Case kCases[] = {
    {"linear", {{Operand::kRows, {96}}, {Operand::kShared, {80, 96}}}, {{Operand::kRows, {80}}}, {}},
    {"linear", {{Operand::kRows, {320}}, {Operand::kShared, {288, 320}}}, {{Operand::kRows, {288}}}, {}},
    {"linear", {{Operand::kRows, {320}}, {Operand::kShared, {8, 320}}}, {{Operand::kRows, {8}}}, {}},
    {"linear",
     {{Operand::kRows, {96}}, {Operand::kShared, {80, 96}}, {Operand::kShared, {80}, true}},
     {{Operand::kRows, {80}}, {Operand::kRows, {80}}},
     {{"activation", std::string("gelu_tanh")}}},
    {"linear_grad_input",
     {{Operand::kRows, {80}}, {Operand::kShared, {80, 96}}},
     {{Operand::kRows, {96}}},
     {}},
    {"linear_grad_input",
     {{Operand::kRows, {288}}, {Operand::kShared, {288, 320}}},
     {{Operand::kRows, {320}}},
     {}},
    {"linear_grad_weight", {{Operand::kRows, {96}}, {Operand::kRows, {80}}}, {{Operand::kSum, {80, 96}}}, {}},
    {"linear_grad_weight", {{Operand::kRows, {20}}, {Operand::kRows, {80}}}, {{Operand::kSum, {80, 20}}}, {}},
    {"linear_grad_weight", {{Operand::kRows, {320}}, {Operand::kRows, {8}}}, {{Operand::kSum, {8, 320}}}, {}},
    {"linear_grad_weight",
     {{Operand::kRows, {333}}, {Operand::kRows, {300}}},
     {{Operand::kSum, {300, 333}}},
     {}},
    {"linear_grad_weight",
     {{Operand::kRows, {96}}, {Operand::kRows, {80}}},
     {{Operand::kSum, {80, 96}}, {Operand::kSum, {80}}},
     {}},
    {"rmsnorm",
     {{Operand::kRows, {77}}, {Operand::kShared, {77}, true}},
     {{Operand::kRows, {77}}, {Operand::kRows, {}, true}},
     {}},
    {"layernorm",
     {{Operand::kRows, {77}}, {Operand::kShared, {77}, true}, {Operand::kShared, {77}, true}},
     {{Operand::kRows, {77}}, {Operand::kRows, {}, true}, {Operand::kRows, {}, true}},
     {}},
    {"rmsnorm_grad",
     {{Operand::kRows, {77}},
      {Operand::kRows, {77}},
      {Operand::kShared, {77}, true},
      {Operand::kRows, {}, true}},
     {{Operand::kRows, {77}}},
     {}},
    {"gelu", {{Operand::kRows, {37}}}, {{Operand::kRows, {37}}}, {}},
    {"swiglu_grad",
     {{Operand::kRows, {37}}, {Operand::kRows, {37}}, {Operand::kRows, {37}}},
     {{Operand::kRows, {37}}, {Operand::kRows, {37}}},
     {}},
    {"add", {{Operand::kRows, {37}}, {Operand::kRows, {37}}}, {{Operand::kRows, {37}}}, {}},
    {"softmax", {{Operand::kRows, {37}}}, {{Operand::kRows, {37}}}, {}},
    {"dropout", {{Operand::kRows, {37}}}, {{Operand::kRows, {37}}}, {{"rate", 0.3}, {"rng", int64_t{5}}}},
};

class Tiles : public ::testing::TestWithParam<std::tuple<DType, size_t, int64_t>> {
 protected:
  const DType type = std::get<0>(GetParam());
  const Case& of = kCases[std::get<1>(GetParam())];

  TensorDesc desc(const Operand& o, int64_t rows) const {
    Shape shape;
    if (o.kind == Operand::kRows) shape.dims[static_cast<size_t>(shape.rank++)] = rows;
    for (const int64_t n : o.shape) shape.dims[static_cast<size_t>(shape.rank++)] = n;
    return {o.wide || o.kind == Operand::kSum ? DType::kF32 : type, shape};
  }
  std::vector<TensorDesc> descs(const std::vector<Operand>& list, int64_t rows) const {
    std::vector<TensorDesc> made;
    for (const Operand& o : list) made.push_back(desc(o, rows));
    return made;
  }
  static std::vector<std::vector<char>> storage(const std::vector<TensorDesc>& list, uint32_t seed) {
    std::vector<std::vector<char>> all;
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (const TensorDesc& d : list) {
      std::vector<char> bytes(static_cast<size_t>(d.bytes()));
      for (int64_t i = 0; i < d.shape.elements(); ++i) {
        const float x = normal(random);
        const bf16 half = to_bf16(x);
        if (d.dtype == DType::kF32) std::memcpy(bytes.data() + i * 4, &x, 4);
        if (d.dtype == DType::kBF16) std::memcpy(bytes.data() + i * 2, &half, 2);
      }
      all.push_back(std::move(bytes));
    }
    return all;
  }
  // Rows [first, first + rows) of what stands in `in` and `out`.
  void run(int64_t first, int64_t rows, int64_t whole, bool adds, std::vector<std::vector<char>>& in,
           std::vector<std::vector<char>>& out) const {
    const std::vector<TensorDesc> read = descs(of.in, rows), made = descs(of.out, rows);
    Attrs attrs = of.attrs;
    if (rows < whole && std::string_view(of.op) == "linear_grad_weight") attrs.set("rows", whole);
    if (first > 0 && std::string_view(of.op) == "dropout") attrs.set("first", first * of.in[0].shape[0]);
    const auto kernel = select(cpu_registry(), {.op = of.op, .in = read, .out = made, .attrs = &attrs});
    const auto tensors = [&](const std::vector<Operand>& list, const std::vector<TensorDesc>& descs,
                             std::vector<std::vector<char>>& data) {
      std::vector<Tensor> all;
      for (size_t i = 0; i < list.size(); ++i) {
        const int64_t skip = list[i].kind == Operand::kRows ? descs[i].bytes() / rows * first : 0;
        all.push_back({descs[i], data[i].data() + skip});
      }
      return all;
    };
    std::vector<Tensor> from = tensors(of.in, read, in), to = tensors(of.out, made, out);
    std::vector<char> space(static_cast<size_t>(kernel->workspace_bytes()) + 64);
    Call call{.in = from, .out = to};
    call.workspace = space.data() + (64 - reinterpret_cast<uintptr_t>(space.data()) % 64) % 64;
    call.key = {.seed = 3, .step = 4};
    for (size_t i = 0; i < of.out.size(); ++i)
      if (of.out[i].kind == Operand::kSum && adds) call.accumulate |= 1u << i;
    set_thread_count(1);
    kernel->run(call);
  }
};

TEST_P(Tiles, HaveTheBitsOfAllRowsAtOnce) {
  const int64_t rows = std::get<2>(GetParam());
  const std::vector<TensorDesc> read = descs(of.in, rows), made = descs(of.out, rows);
  const int64_t unit = cpu_registry().tile_rows({.op = of.op, .in = read, .out = made, .attrs = &of.attrs});
  ASSERT_GT(unit, 0);
  std::vector<std::vector<char>> in = storage(read, 1), before = storage(made, 2);
  for (const bool adds : {false, true}) {
    std::vector<std::vector<char>> expected = before;
    run(0, rows, rows, adds, in, expected);
    for (const int64_t units : {1, 3}) {
      const int64_t tile = unit * units;
      if (2 * tile > rows) continue;
      std::vector<std::vector<char>> tiled = before;
      for (int64_t first = 0; first < rows;) {
        const int64_t left = rows - first, now = left < tile + unit ? left : tile;
        run(first, now, rows, adds || first > 0, in, tiled);
        first += now;
      }
      EXPECT_EQ(tiled, expected) << of.op << " in tiles of " << tile << " rows of " << rows;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, Tiles,
                         ::testing::Combine(::testing::Values(DType::kF32, DType::kBF16),
                                            ::testing::Range(size_t{0}, std::size(kCases)),
                                            ::testing::Values(700, 2083)),
                         [](const auto& row) {
                           return std::string(dtype_name(std::get<0>(row.param))) + "_" +
                                  kCases[std::get<1>(row.param)].op + "_" +
                                  std::to_string(std::get<1>(row.param)) + "_" +
                                  std::to_string(std::get<2>(row.param));
                         });

}  // namespace
}  // namespace cairn::kernels
