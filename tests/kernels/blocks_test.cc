// Weights in blocks: what an op gives that reads them is, to the bit, what it gives for the values that `dequantise` makes of
// them, in every format, whatever the number of rows.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "kernels/cpu/simd/isa.h"
#include "kernels/registry.h"
#include "runtime/base/parallel.h"
#include "runtime/formats/codecs.h"

namespace cairn {
namespace {

constexpr int kThreads = 2;
constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

struct Value {
  TensorDesc desc;
  std::vector<double> space;  // aligned
  explicit Value(const TensorDesc& d) : desc(d), space(static_cast<size_t>(d.bytes() / 8 + 17)) {}
  void* data() {
    const auto at = reinterpret_cast<uintptr_t>(space.data());
    return reinterpret_cast<void*>((at + 63) / 64 * 64);
  }
};

std::vector<DType> formats_in_blocks() {
  std::vector<DType> list;
  for (const DType type : kDTypes)
    if (format(type).read == Read::kDequantised) list.push_back(type);
  return list;
}

Value drawn(const TensorDesc& desc, uint32_t seed) {
  Value value(desc);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.5f);
  const int64_t count = desc.shape.elements();
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& x : numbers) x = normal(random);
  const formats::Codec& codec = formats::codec(desc.dtype);
  EXPECT_TRUE(codec.encode(numbers.data(), count, value.data())) << dtype_name(desc.dtype);
  return value;
}
Value numbered(std::vector<int32_t> numbers) {
  Value value({DType::kI32, {static_cast<int64_t>(numbers.size())}, 0});
  std::memcpy(value.data(), numbers.data(), numbers.size() * 4);
  return value;
}

// What every row of the CPU's table gives for the op, one after the other.
using Bits = std::vector<std::vector<char>>;
Bits all_results(const char* op, std::vector<Value*> in, const std::vector<TensorDesc>& out,
                 const Attrs& attrs) {
  std::vector<TensorDesc> descs;
  std::vector<Tensor> operands;
  uint32_t present = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    descs.push_back(in[i] != nullptr ? in[i]->desc : TensorDesc{});
    operands.push_back({descs[i], in[i] != nullptr ? in[i]->data() : nullptr});
    if (in[i] != nullptr) present |= 1u << i;
  }
  const kernels::Signature s{op, descs, out, present, (1u << out.size()) - 1, &attrs, kThreads};
  Bits bits;
  const auto run = [&](const kernels::Kernel& kernel) {
    Value workspace({DType::kU8, {kernel.workspace_bytes() + 1}, 0});
    std::vector<Value> made(out.begin(), out.end());
    std::vector<Tensor> results;
    for (Value& value : made) results.push_back({value.desc, value.data()});
    kernel.run({operands, results, workspace.data(), 0, {}});
    for (Value& value : made) {
      const char* const from = static_cast<const char*>(value.data());
      bits.emplace_back(from, from + value.desc.bytes());
    }
  };
  for (const kernels::KernelRow& row : kernels::cpu_registry().rows)
    if (row.op == op)
      if (const auto kernel = row.make(s)) run(*kernel);
  if (bits.empty()) ADD_FAILURE() << "no kernel of " << op << " takes " << to_string(descs[1]);
  return bits;
}

// The values as an op of `compute` reads them.
Value dequantised(Value& blocks, DType compute) {
  const DType type = compute == DType::kBF16 ? DType::kBF16 : DType::kF32;
  Value value({type, blocks.desc.shape, 0});
  std::vector<float> numbers(static_cast<size_t>(blocks.desc.shape.elements()));
  formats::codec(blocks.desc.dtype).decode(blocks.data(), blocks.desc.shape.elements(), numbers.data());
  formats::codec(type).encode(numbers.data(), blocks.desc.shape.elements(), value.data());
  return value;
}

class Blocks : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override { set_thread_count(kThreads); }
  // The op with weight `at` in blocks and decoded.
  void compare(const char* op, size_t at, std::vector<Value*> in, const std::vector<TensorDesc>& out,
               DType compute, const Attrs& attrs = {}) {
    Value decoded = dequantised(*in[at], compute);
    const Bits direct = all_results(op, in, out, attrs);
    const std::string what = cat(op, ' ', to_string(in[at]->desc), " to ", to_string(out[0]));
    in[at] = &decoded;
    EXPECT_TRUE(direct == all_results(op, in, out, attrs)) << what;
  }
};

TEST_P(Blocks, ProductsAreThoseOfTheDecodedWeight) {
  const int64_t row = format(GetParam()).row;
  struct Case {
    int64_t m, n, k;
  };
  for (const DType type : kTypes)
    for (const auto& [m, n, k] :
         {Case{1, 97, 3 * row}, Case{3, 33, row}, Case{8, 64, 512}, Case{9, 70, 5 * row},
          Case{17, 130, 2 * row}, Case{131, 300, 256}, Case{257, 256, 768}}) {
      Value x = drawn({type, {m, k}, 0}, 1), w = drawn({GetParam(), {n, k}, 0}, 2),
            bias = drawn({DType::kF32, {n}, 0}, 3), dy = drawn({type, {m, n}, 0}, 4);
      compare("linear", 1, {&x, &w, &bias}, {dy.desc}, type);
      compare("linear", 1, {&x, &w}, {dy.desc, dy.desc}, type, {{"activation", std::string("gelu_tanh")}});
      compare("linear_grad_input", 1, {&dy, &w}, {x.desc}, type);
      compare("linear_grad_input", 1, {&dy, &w, &x}, {x.desc}, type,
              {{"activation", std::string("gelu_tanh")}});
    }
}

TEST_P(Blocks, LookupsDecodeTheirRows) {
  const int64_t columns = 3 * format(GetParam()).row;
  Value ids = numbered({3, 0, 11, -1, 12, 3, 7});
  for (const DType type : kTypes) {
    Value table = drawn({GetParam(), {12, columns}, 0}, 5);
    const TensorDesc y{type, {7, columns}, 0};
    const std::string word(dtype_name(type));
    compare("embedding", 0, {&table, &ids}, {y}, DType::kF32, {{"dtype", word}});
    compare("embedding_part", 0, {&table, &ids}, {y}, DType::kF32,
            {{"dtype", word}, {"first", int64_t{2}}, {"vocab", int64_t{40}}});
  }
}

TEST_P(Blocks, HeadsReadThem) {
  const int64_t width = 2 * format(GetParam()).row;
  for (const DType type : kTypes)
    for (const int64_t m : {1, 40}) {
      constexpr int64_t kClasses = 67;
      Value x = drawn({type, {m, width}, 0}, 6), w = drawn({GetParam(), {kClasses, width}, 0}, 7);
      std::vector<int32_t> numbers(static_cast<size_t>(m));
      for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int32_t>(i * 5 % kClasses);
      Value targets = numbered(numbers);
      const TensorDesc one{DType::kF64, Shape{}, 0}, dw{DType::kF32, w.desc.shape, 0},
          seen{DType::kF32, {m, 4}, 0}, sum{DType::kF64, {m}, 0}, wide{DType::kF32, x.desc.shape, 0};
      compare("linear_cross_entropy", 1, {&x, &w, &targets}, {one, one}, type, {{"chunk", int64_t{32}}});
      compare("linear_cross_entropy_grad", 1, {&x, &w, &targets, nullptr, nullptr, nullptr},
              {one, one, x.desc, dw}, type, {{"chunk", int64_t{32}}});
      const Attrs part{{"first", int64_t{0}}, {"vocab", kClasses}};
      compare("linear_cross_entropy_max", 1, {&x, &w, &targets}, {seen}, type, part);
      Value before = drawn(seen, 8);
      std::memset(before.data(), 0, static_cast<size_t>(seen.bytes()));
      compare("linear_cross_entropy_sum", 1, {&x, &w, &before}, {sum}, type, part);
      Value total(sum);
      std::fill_n(static_cast<double*>(total.data()), m, 40.0);
      compare("linear_cross_entropy_part", 1, {&x, &w, &targets, nullptr, &before, &total}, {wide, dw}, type,
              part);
    }
}

TEST_P(Blocks, ExpertsReadThem) {
  const int64_t n = format(GetParam()).row, k = 2 * n, m = 90;
  Value starts = numbered({0, 3, 3, 90});
  for (const DType type : kTypes)
    for (const int64_t transposed : {0, 1}) {
      Value x = drawn({type, {m, k}, 0}, 8), dy = drawn({type, {m, n}, 0}, 9);
      Value w = drawn({GetParam(), transposed != 0 ? Shape{3, k, n} : Shape{3, n, k}, 0}, 10);
      const Attrs attrs{{"transposed", transposed}};
      compare("grouped_linear", 1, {&x, &w, &starts}, {dy.desc}, type, attrs);
      compare("grouped_linear_grad_input", 1, {&dy, &w, &starts}, {x.desc}, type, attrs);
    }
}

TEST_P(Blocks, APackedWeightIsThatOfTheDecodedOne) {
  const int64_t row = format(GetParam()).row;
  for (const char* use : {"forward", "input_grad"}) {
    Value w = drawn({GetParam(), {70, 3 * row}, 0}, 11);
    TensorDesc packed{DType::kOpaque, w.desc.shape, 0};
    packed.packed_bytes = kernels::cpu_registry().packed_bytes(w.desc, use, 40, DType::kBF16, kThreads);
    if (packed.packed_bytes == 0) GTEST_SKIP() << "nothing is packed on this processor";
    const Attrs attrs{{"use", std::string(use)}, {"m", int64_t{40}}, {"dtype", std::string("bf16")}};
    const int64_t count = w.desc.shape.elements();
    if (packed.packed_bytes != 4 * count) {
      compare("pack_weight", 0, {&w, nullptr}, {packed}, DType::kBF16, attrs);
      continue;
    }
    // Nothing multiplies bfloat16 here: the values in float32, as they lie.
    Value values = dequantised(w, DType::kBF16);
    std::vector<float> expected(static_cast<size_t>(count));
    formats::codec(DType::kBF16).decode(values.data(), count, expected.data());
    for (const std::vector<char>& bits : all_results("pack_weight", {&w, nullptr}, {packed}, attrs))
      EXPECT_EQ(std::memcmp(bits.data(), expected.data(), static_cast<size_t>(4 * count)), 0) << use;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Blocks, testing::ValuesIn(formats_in_blocks()),
                         [](const auto& of) { return std::string(dtype_name(of.param)); });

}  // namespace
}  // namespace cairn
