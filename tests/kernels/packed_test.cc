// Every op that takes a packed weight runs without the packed weight as well, and then makes the same bits:
// the planner may give packed weights up.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "kernels/registry.h"
#include "runtime/base/kernel.h"
#include "runtime/base/parallel.h"

namespace cairn::kernels {
namespace {

struct Memory {
  explicit Memory(int64_t bytes) : bytes_(static_cast<size_t>(bytes) + 64, std::byte{0x5a}), size(bytes) {}
  std::byte* data() {
    std::byte* p = bytes_.data();
    return p + (64 - reinterpret_cast<uintptr_t>(p) % 64) % 64;
  }
  std::vector<std::byte> copy() { return {data(), data() + size}; }

 private:
  std::vector<std::byte> bytes_;

 public:
  int64_t size;
};

struct Operands {
  std::vector<TensorDesc> descs;
  std::vector<Memory> memory;
  Tensor add(const TensorDesc& desc) {
    descs.push_back(desc);
    memory.emplace_back(desc.bytes());
    return {desc, memory.back().data()};
  }
};

void fill(const Tensor& t, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < t.desc.shape.elements(); ++i) {
    if (t.desc.dtype == DType::kI32)
      t.as<int32_t>()[i] = static_cast<int32_t>(random() % 37);
    else if (t.desc.dtype == DType::kBF16)
      t.as<bf16>()[i] = to_bf16(normal(random));
    else
      t.as<float>()[i] = normal(random);
  }
}

struct Case {
  std::string op, attrs_word;
  int64_t rows, n, k;  // of the weight [n, k]
  int64_t chunk = 0;
};

// Where a packed weight goes, and for which use.
struct Use {
  std::string_view op;
  size_t into;
  const char* use;
};
constexpr Use kUses[] = {{"linear", 1, "forward"},
                         {"linear_grad_input", 1, "input_grad"},
                         {"linear_cross_entropy", 1, "forward"},
                         {"linear_cross_entropy_grad", 4, "input_grad"},
                         {"linear_cross_entropy_grad", 1, "forward"}};

class Packed : public ::testing::TestWithParam<Case> {
 protected:
  // The bytes of all outputs. packed: which of the op's uses come packed.
  std::vector<std::vector<std::byte>> run(DType dtype, int threads, unsigned packs) {
    const Case& c = GetParam();
    const bool loss = c.op.starts_with("linear_cross"), gradient = c.op.ends_with("grad");
    Operands in, out;
    in.memory.reserve(8);
    out.memory.reserve(8);
    std::vector<Tensor> from, to;
    const int64_t width = c.op == "linear_grad_input" ? c.n : c.k;
    from.push_back(in.add({dtype, {c.rows, width}, 0}));
    from.push_back(in.add({DType::kF32, {c.n, c.k}, 0}));
    Attrs attrs;
    if (loss) {
      from.push_back(in.add({DType::kI32, {c.rows}, 0}));
      from.push_back({});
      in.descs.push_back({});
      if (gradient) {
        from.push_back({});
        in.descs.push_back({});
      }
      attrs = {{"chunk", c.chunk}};
      for (int i = 0; i < 2; ++i) to.push_back(out.add({DType::kF64, Shape{}, 0}));
      if (gradient) {
        to.push_back(out.add({dtype, {c.rows, c.k}, 0}));
        to.push_back(out.add({DType::kF32, {c.n, c.k}, 0}));
      }
    } else if (c.op == "linear") {
      from.push_back(in.add({DType::kF32, {c.n}, 0}));
      to.push_back(out.add({dtype, {c.rows, c.n}, 0}));
      if (!c.attrs_word.empty()) {
        attrs = {{"activation", c.attrs_word}};
        to.push_back(out.add({dtype, {c.rows, c.n}, 0}));
      }
    } else {
      to.push_back(out.add({dtype, {c.rows, c.k}, 0}));
      if (!c.attrs_word.empty()) {
        attrs = {{"activation", c.attrs_word}};
        from.push_back(in.add({dtype, {c.rows, c.k}, 0}));
      }
    }
    for (size_t i = 0; i < from.size(); ++i)
      if (from[i].data != nullptr) fill(from[i], static_cast<uint32_t>(i) + 1);
    set_thread_count(threads);
    const Tensor weight = from[1];
    unsigned bit = 0;
    for (const Use& use : kUses) {
      if (use.op != c.op || (packs >> bit++ & 1u) == 0) continue;
      const int64_t bytes = cpu_registry().packed_bytes(weight.desc, use.use, c.rows, dtype, threads);
      EXPECT_GT(bytes, 0);
      TensorDesc desc = weight.desc;
      desc.dtype = DType::kOpaque;
      desc.packed_bytes = bytes;
      in.memory.emplace_back(bytes);
      const Tensor pack{desc, in.memory.back().data()};
      const Attrs how{
          {"use", std::string(use.use)}, {"m", c.rows}, {"dtype", std::string(dtype_name(dtype))}};
      launch("pack_weight", {weight.desc}, {desc}, {weight}, {pack}, how, threads);
      from[use.into] = pack;
      in.descs[use.into] = desc;
    }
    launch(c.op, in.descs, out.descs, from, to, attrs, threads);
    set_thread_count(1);
    std::vector<std::vector<std::byte>> bytes;
    for (Memory& m : out.memory) bytes.push_back(m.copy());
    return bytes;
  }

 private:
  static void launch(std::string_view op, const std::vector<TensorDesc>& in_descs,
                     const std::vector<TensorDesc>& out_descs, const std::vector<Tensor>& in,
                     const std::vector<Tensor>& out, const Attrs& attrs, int threads) {
    Signature s{op, in_descs, out_descs, 0, (1u << out.size()) - 1, &attrs, threads};
    for (size_t i = 0; i < in.size(); ++i) s.in_present |= (in[i].data != nullptr ? 1u : 0u) << i;
    const auto kernel = cpu_registry().find(s);
    ASSERT_NE(kernel, nullptr) << op;
    Memory workspace(kernel->workspace_bytes());
    kernel->run({in, out, workspace.data(), 0, {}});
  }
};

TEST_P(Packed, OrNotTheBitsAreTheSame) {
  const TensorDesc weight{DType::kF32, {GetParam().n, GetParam().k}, 0};
  if (cpu_registry().packed_bytes(weight, "forward", GetParam().rows, DType::kBF16, 1) == 0)
    GTEST_SKIP() << "needs amx";
  // float32 weights of float32 products are read as they are: there is nothing to give up.
  EXPECT_EQ(cpu_registry().packed_bytes(weight, "forward", GetParam().rows, DType::kF32, 1), 0);
  const bool both = GetParam().op == "linear_cross_entropy_grad";
  for (const int threads : {1, 2}) {
    const auto plain = run(DType::kBF16, threads, 0);
    EXPECT_EQ(run(DType::kBF16, threads, 1), plain);
    if (both) {
      EXPECT_EQ(run(DType::kBF16, threads, 3), plain);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ops, Packed,
    ::testing::Values(
        Case{"linear", "", 40, 48, 64}, Case{"linear", "", 300, 70, 33},
        Case{"linear", "gelu_tanh", 129, 96, 100}, Case{"linear", "relu", 5, 33, 31},
        Case{"linear", "gelu_tanh", 300, 1070, 40}, Case{"linear", "", 140, 1070, 33},
        Case{"linear_grad_input", "", 40, 48, 64}, Case{"linear_grad_input", "", 300, 33, 70},
        Case{"linear_grad_input", "gelu_tanh", 129, 100, 96}, Case{"linear_grad_input", "relu", 5, 31, 33},
        Case{"linear_grad_input", "gelu_tanh", 300, 40, 1070}, Case{"linear_grad_input", "", 140, 33, 1070},
        Case{"linear_cross_entropy", "", 70, 100, 48, 32}, Case{"linear_cross_entropy", "", 33, 90, 40, 0},
        Case{"linear_cross_entropy_grad", "", 70, 100, 48, 32},
        Case{"linear_cross_entropy_grad", "", 200, 90, 40, 0}),
    [](const auto& made) {
      const Case& c = made.param;
      return c.op + "_" + std::to_string(made.index);
    });

}  // namespace
}  // namespace cairn::kernels
