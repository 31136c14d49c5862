// What the conformance suite does not see of attention on the CPU: bits that do not depend on threads, keys that are left
// out and not multiplied by zero.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>
#include <random>
#include <vector>

#include "kernels/registry.h"
#include "runtime/base/kernel.h"
#include "runtime/base/parallel.h"

namespace cairn::kernels {
namespace {

constexpr int64_t kBatch = 2, kHeads = 4, kGroups = 2, kDim = 32;

struct Given {
  int64_t rows, keys;
  Attrs attrs;
  std::vector<float> sinks;
  std::vector<int32_t> sequences, lengths, position;
  bool distances = false;
};

// Attention and its gradient on operands of one's own.
class Problem {
 public:
  Problem(DType type, const Given& given) : type_(type), given_(given) {
    given_.attrs.set("heads", kHeads);
    given_.attrs.set("kv_heads", kGroups);
    const TensorDesc q{type, {kBatch, given.rows, kHeads * kDim}, 0},
        kv{type, {kBatch, given.keys, kGroups * kDim}, 0}, lse{DType::kF32, {kBatch, kHeads, given.rows}, 0};
    for (const TensorDesc& d : {q, q, kv, kv, q, lse}) add(d);
    std::mt19937 generator(3);
    std::normal_distribution<float> normal;
    for (int64_t which : {0, 1, 2, 3})
      for (int64_t i = 0; i < in[which].desc.shape.elements(); ++i) set(which, i, normal(generator));
    add_numbers(DType::kF32, given_.sinks, {kHeads});
    add_numbers(DType::kI32, given_.sequences, {kBatch, given.rows});
    add_numbers(DType::kI32, given_.lengths, {kBatch});
    add_numbers(DType::kI32, given_.position, {kBatch});
    const int64_t apart = given.rows + given.keys - 1;
    for (int64_t i = 0; given.distances && i < kHeads * apart; ++i) distances_.push_back(normal(generator));
    add_numbers(DType::kF32, distances_, {kHeads, apart});
  }
  void set(int64_t which, int64_t i, float v) {
    const Tensor& t = in[static_cast<size_t>(which)];
    if (type_ == DType::kF32)
      t.as<float>()[i] = v;
    else
      t.as<bf16>()[i] = to_bf16(v);
  }
  // Key s of all sequences: k and v become NaN.
  void spoil(int64_t s) {
    for (int64_t which : {2, 3})
      for (int64_t b = 0; b < kBatch; ++b)
        for (int64_t c = 0; c < kGroups * kDim; ++c)
          set(which, (b * given_.keys + s) * kGroups * kDim + c, std::numeric_limits<float>::quiet_NaN());
  }
  // Forward, which fills y and lse, then the gradients.
  std::vector<std::vector<std::byte>> run(int threads, bool gradients = true) {
    std::vector<Tensor> forward(in.begin() + 1, in.begin() + 4);
    forward.insert(forward.end(), in.begin() + 6, in.end());
    const std::vector<Tensor> made(in.begin() + 4, in.begin() + 6);
    launch("attention", forward, made, threads);
    std::vector<std::vector<std::byte>> bytes;
    const auto keep = [&](const Tensor& t) {
      const auto* data = static_cast<const std::byte*>(t.data);
      bytes.emplace_back(data, data + t.desc.bytes());
    };
    for (const Tensor& t : made) keep(t);
    if (!gradients) return bytes;
    std::vector<std::vector<std::byte>> space;
    std::vector<Tensor> out;
    for (size_t which : {1, 2, 3, 6, 10}) {
      space.emplace_back(static_cast<size_t>(in[which].desc.bytes()));
      out.push_back({in[which].desc, in[which].data == nullptr ? nullptr : space.back().data()});
    }
    launch("attention_grad", in, out, threads);
    for (const Tensor& t : out)
      if (t) keep(t);
    return bytes;
  }
  bool finite_row(int64_t b, int64_t t) const {
    for (int64_t c = 0; c < kHeads * kDim; ++c) {
      const int64_t i = (b * given_.rows + t) * kHeads * kDim + c;
      if (!std::isfinite(type_ == DType::kF32 ? in[4].as<float>()[i] : to_float(in[4].as<bf16>()[i])))
        return false;
    }
    return true;
  }
  std::vector<Tensor> in;  // of the gradient: dy q k v y lse sinks sequences lengths position distances

 private:
  void add(const TensorDesc& d) {
    storage_.emplace_back(static_cast<size_t>(d.bytes()));
    in.push_back({d, storage_.back().data()});
  }
  template <class T>
  void add_numbers(DType type, std::vector<T>& numbers, const Shape& shape) {
    in.push_back({{type, shape, 0}, numbers.empty() ? nullptr : numbers.data()});
  }
  void launch(std::string_view op, const std::vector<Tensor>& from, const std::vector<Tensor>& to,
              int threads) {
    std::vector<TensorDesc> in_desc, out_desc;
    uint32_t in_present = 0, out_present = 0;
    for (const Tensor& t : from) in_present |= (t ? 1u : 0u) << in_desc.size(), in_desc.push_back(t.desc);
    for (const Tensor& t : to) out_present |= (t ? 1u : 0u) << out_desc.size(), out_desc.push_back(t.desc);
    const auto kernel =
        cpu_registry().find({op, in_desc, out_desc, in_present, out_present, &given_.attrs, threads});
    ASSERT_NE(kernel, nullptr) << op;
    set_thread_count(threads);
    std::vector<std::byte> workspace(static_cast<size_t>(kernel->workspace_bytes()) + 64);
    auto* at = workspace.data() + (64 - reinterpret_cast<uintptr_t>(workspace.data()) % 64) % 64;
    kernel->run({from, to, at, 0, {}});
    set_thread_count(1);
  }

  DType type_;
  Given given_;
  std::vector<float> distances_;
  std::deque<std::vector<std::byte>> storage_;
};

std::vector<int32_t> samples(int64_t rows, int32_t count) {
  std::vector<int32_t> ids;
  for (int64_t b = 0; b < kBatch; ++b)
    for (int64_t t = 0; t < rows; ++t) ids.push_back(static_cast<int32_t>(t * count / rows));
  return ids;
}

TEST(Attention, BitsDoNotDependOnThreads) {
  const Attrs window{{"window", int64_t{50}}, {"softcap", 3.0}};
  const Given given[] = {{150, 150, window, {0.5, -1, 2, 0}, samples(150, 3), {150, 97}, {}},
                         {40, 200, {}, {}, {}, {}, {13, 160}},
                         {150, 90, {{"causal", int64_t{0}}}, {0.5, -1, 2, 0}, {}, {90, 41}, {}, true},
                         {1, 1500, {}, {0.5, -1, 2, 0}, {}, {1400, 1500}, {700, 1499}}};
  for (const Given& g : given)
    for (const DType type : {DType::kF32, DType::kBF16}) {
      Problem problem(type, g);
      const auto first = problem.run(1);
      for (const int threads : {2, 3, 5}) EXPECT_EQ(problem.run(threads), first) << g.rows << ' ' << threads;
    }
}

// What is not seen may be anything, so that rows are not multiplied by zero but left out.
TEST(Attention, KeysThatNoRowOfABlockSeesAreSkipped) {
  for (const DType type : {DType::kF32, DType::kBF16}) {
    Problem window(type, {400, 400, {{"window", int64_t{32}}}, {}, {}, {}, {}});
    Problem sequences(type, {400, 400, {{"causal", int64_t{0}}}, {}, samples(400, 2), {}, {}});
    for (int64_t s = 0; s < 100; ++s) window.spoil(s), sequences.spoil(s);
    window.run(1, false);
    sequences.run(1, false);
    for (int64_t t = 256; t < 400; ++t)
      EXPECT_TRUE(window.finite_row(1, t) && sequences.finite_row(1, t)) << t;
    for (const int64_t rows : {1, 70}) {
      Problem cached(type, {rows, 500, {}, {}, {}, {}, {10, 200}});
      for (int64_t s = 200 + rows; s < 500; ++s) cached.spoil(s);
      cached.run(1, false);
      for (int64_t t = 0; t < rows; ++t) EXPECT_TRUE(cached.finite_row(1, t)) << t;
    }
  }
}

TEST(Attention, RowsThatSeeNothingAreZeroAndHaveNoGradient) {
  for (const DType type : {DType::kF32, DType::kBF16})
    for (const bool sinks : {false, true}) {
      Given given{70, 70, {}, {}, samples(70, 3), {0, 70}, {}};
      for (int64_t t = 60; t < 70; ++t) given.sequences[static_cast<size_t>(70 + t)] = -1;
      if (sinks) given.sinks = {1, 2, 3, 4};
      Problem problem(type, given);
      const auto bytes = problem.run(1);
      const auto zeros = [&](size_t which, int64_t begin, int64_t end) {
        const int64_t row = static_cast<int64_t>(bytes[which].size()) / 140;
        for (int64_t i = begin * row; i < end * row; ++i)
          if (bytes[which][static_cast<size_t>(i)] != std::byte{0}) return false;
        return true;
      };
      for (const size_t which : {0, 2, 3, 4})
        EXPECT_TRUE(zeros(which, 0, 70) && zeros(which, 130, 140)) << which;
      const float* lse = problem.in[5].as<float>();
      EXPECT_EQ(lse[0], -std::numeric_limits<float>::infinity());
      EXPECT_EQ(lse[kHeads * 70 + 65], -std::numeric_limits<float>::infinity());
      EXPECT_TRUE(std::isfinite(lse[kHeads * 70 + 59]));
    }
}

}  // namespace
}  // namespace cairn::kernels
