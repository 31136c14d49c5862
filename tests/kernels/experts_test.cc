// Products of rows that are grouped by expert: shares that are even although experts are not, and bits that do not
// depend on them.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "kernels/cpu/experts/grouped.h"
#include "kernels/registry.h"
#include "runtime/base/text/cat.h"

namespace cairn::kernels::cpu {
namespace {

// Sets the number of shares for a scope.
struct Threads {
  explicit Threads(int count) { set_thread_count(count); }
  ~Threads() { set_thread_count(1); }
};

std::vector<int32_t> starts_of(std::initializer_list<int32_t> rows) {
  std::vector<int32_t> starts = {0};
  for (const int32_t count : rows) starts.push_back(starts.back() + count);
  return starts;
}

Signature signature_of(const char* op, const std::vector<TensorDesc>& in, const std::vector<TensorDesc>& out,
                       const Attrs* attrs, int threads) {
  return {op, in, out, (1u << in.size()) - 1, (1u << out.size()) - 1, attrs, threads};
}

TEST(Experts, SharesCostAlike) {
  const std::vector<int32_t> starts = starts_of({700, 0, 3, 250, 0, 47});
  constexpr int64_t kBlocks = 16, kMore = 10;
  const Attrs attrs;
  const std::vector<TensorDesc> in = {{DType::kF32, {1000, 8}, 0}, {DType::kF32, {6, 8, 8}, 0}},
                                out = {{DType::kF32, {1000, 8}, 0}};
  const experts::Grouped z(signature_of("grouped_linear", in, out, &attrs, 1), in[1]);
  for (const int shares : {1, 2, 3, 7}) {
    const Threads threads(shares);
    std::vector<int64_t> cost(static_cast<size_t>(shares));
    std::vector<int> done(6 * kBlocks);
    for_experts(starts.data(), z, kBlocks, kMore, 0,
                [&](int64_t e, experts::Rows rows, int64_t b0, int64_t b1, int share) {
                  for (int64_t b = b0; b < b1; ++b) ++done[static_cast<size_t>(e * kBlocks + b)];
                  cost[static_cast<size_t>(share)] += (b1 - b0) * (rows.end - rows.begin + kMore);
                });
    for (int64_t e = 0; e < 6; ++e)
      for (int64_t b = 0; b < kBlocks; ++b)
        EXPECT_EQ(done[static_cast<size_t>(e * kBlocks + b)], e == 1 || e == 4 ? 0 : 1) << e << ' ' << b;
    const int64_t total = kBlocks * (1000 + 4 * kMore);
    for (const int64_t c : cost)
      EXPECT_NEAR(static_cast<double>(c), static_cast<double>(total) / shares, 700 + kMore);
  }
}

// Numbers that differ from element to element; integers are left as they are.
void fill(const Tensor& t, uint32_t seed) {
  for (int64_t i = 0; i < t.desc.shape.elements(); ++i) {
    seed = seed * 1664525u + 1013904223u;
    const float v = static_cast<float>(seed >> 8) * 0x1p-24f - 0.5f;
    if (t.desc.dtype == DType::kF32) t.as<float>()[i] = v;
    if (t.desc.dtype == DType::kBF16) t.as<bf16>()[i] = to_bf16(v);
  }
}

std::vector<std::string> run(const char* op, const std::vector<TensorDesc>& in,
                             const std::vector<TensorDesc>& out, const std::vector<int32_t>& starts,
                             int threads) {
  const Attrs attrs;
  const auto kernel = select(cpu_registry(), signature_of(op, in, out, &attrs, threads));
  struct alignas(64) Line {
    char bytes[64];
  };
  std::vector<std::vector<Line>> memory;
  const auto make = [&](const TensorDesc& d) {
    memory.emplace_back(static_cast<size_t>(d.bytes() / 64 + 2));
    const Tensor t{d, memory.back().data()};
    if (d.dtype == DType::kI32)
      std::memcpy(t.data, starts.data(), starts.size() * 4);
    else
      fill(t, static_cast<uint32_t>(memory.size()));
    return t;
  };
  std::vector<Tensor> from, to;
  for (const TensorDesc& d : in) from.push_back(make(d));
  for (const TensorDesc& d : out) to.push_back(make(d));
  std::vector<Line> workspace(static_cast<size_t>(kernel->workspace_bytes() / 64 + 2));
  const Threads count(threads);
  kernel->run({from, to, workspace.data(), 3, {}});
  std::vector<std::string> bytes;
  for (const Tensor& t : to)
    bytes.emplace_back(static_cast<const char*>(t.data), static_cast<size_t>(t.desc.bytes()));
  return bytes;
}

float number(const std::vector<std::string>& bytes, int64_t at) {
  float v;
  std::memcpy(&v, bytes[0].data() + at * 4, 4);
  return v;
}

// The numbers that fill() gives the operand at this place, inputs first.
std::vector<float> filled(int64_t count, uint32_t place) {
  std::vector<float> v(static_cast<size_t>(count));
  fill({{DType::kF32, {count}, 0}, v.data()}, place + 1);
  return v;
}

// An expert that is large enough for the AMX tiles, where there are some.
TEST(Experts, LargeOnesAreMultipliedAsOthers) {
  constexpr int64_t kRows = 1000, kN = 840, kK = 810;
  const std::vector<int32_t> starts = starts_of({980, 20});
  const TensorDesc at{DType::kI32, {3}, 0}, w{DType::kF32, {2, kN, kK}, 0}, x{DType::kF32, {kRows, kK}, 0},
      y{DType::kF32, {kRows, kN}, 0};
  const auto made = run("grouped_linear", {x, w, at}, {y}, starts, 1),
             dx = run("grouped_linear_grad_input", {y, w, at}, {x}, starts, 1),
             dw = run("grouped_linear_grad_weight", {x, y, at}, {w}, starts, 1);
  const auto of_x = filled(kRows * kK, 0), of_w = filled(2 * kN * kK, 1), dy = filled(kRows * kN, 0),
             right = filled(kRows * kN, 1), before = filled(2 * kN * kK, 3);
  const auto at_of = [](const std::vector<float>& v, int64_t i) {
    return static_cast<double>(v[static_cast<size_t>(i)]);
  };
  for (const auto& [r, n, k] :
       {std::array<int64_t, 3>{0, 0, 0}, {979, 839, 809}, {500, 37, 333}, {31, 800, 96}}) {
    double forward = 0, input = 0, weight = at_of(before, n * kK + k);
    for (int64_t i = 0; i < kK; ++i) forward += at_of(of_x, r * kK + i) * at_of(of_w, n * kK + i);
    for (int64_t i = 0; i < kN; ++i) input += at_of(dy, r * kN + i) * at_of(of_w, i * kK + k);
    for (int64_t i = 0; i < 980; ++i) weight += at_of(right, i * kN + n) * at_of(of_x, i * kK + k);
    EXPECT_NEAR(number(made, r * kN + n), forward, 2e-5);
    EXPECT_NEAR(number(dx, r * kK + k), input, 2e-5);
    EXPECT_NEAR(number(dw, n * kK + k), weight, 2e-5);
  }
}

// With experts large enough for tiles, and others.
TEST(Experts, BitsDoNotDependOnTheNumberOfThreads) {
  constexpr int64_t kRows = 1300, kN = 900, kK = 820;
  const std::vector<int32_t> starts = starts_of({900, 1, 0, 17, 382});
  const TensorDesc at{DType::kI32, {6}, 0}, w{DType::kF32, {5, kN, kK}, 0}, b{DType::kF32, {5, kN}, 0};
  for (const DType t : {DType::kF32, DType::kBF16}) {
    const TensorDesc x{t, {kRows, kK}, 0}, y{t, {kRows, kN}, 0};
    struct Call {
      const char* op;
      std::vector<TensorDesc> in, out;
    };
    for (const Call& c : {Call{"grouped_linear", {x, w, at, b}, {y}},
                          {"grouped_linear_grad_input", {y, w, at}, {x}},
                          {"grouped_linear_grad_weight", {x, y, at}, {w, b}}}) {
      const auto one = run(c.op, c.in, c.out, starts, 1);
      for (const int threads : {2, 3, 8})
        EXPECT_TRUE(run(c.op, c.in, c.out, starts, threads) == one)
            << c.op << ' ' << dtype_name(t) << ' ' << threads;
    }
  }
}

}  // namespace
}  // namespace cairn::kernels::cpu
