// What the conformance suite does not see of the kernels of pictures: the same bits whatever the threads, small
// deviations around a large mean, NaN, losses of pairs over several tiles.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/registry.h"
#include "runtime/base/parallel.h"

namespace cairn::kernels {
namespace {

using Sizes = std::vector<int64_t>;
constexpr DType kF = DType::kF32, kD = DType::kF64, kI = DType::kI32;
const float kNan = std::numeric_limits<float>::quiet_NaN();

TensorDesc of(DType type, const Sizes& sizes) { return {type, Shape{std::span<const int64_t>(sizes)}, 0}; }

struct Memory {
  std::vector<std::byte> bytes;
  explicit Memory(int64_t n) : bytes(static_cast<size_t>(n) + 128) {}
  void* data() { return bytes.data() + (64 - reinterpret_cast<uintptr_t>(bytes.data()) % 64) % 64; }
};

// An op whose operands are drawn: numbers around `mean`, integers below 4.
struct Drawn {
  std::vector<Memory> storage;
  std::vector<Tensor> in, out;
  int64_t workspace = 0;

  Drawn(const std::vector<TensorDesc>& inputs, const std::vector<TensorDesc>& outputs, float mean = 0,
        float deviation = 1) {
    std::mt19937 generator(7);
    std::normal_distribution<float> normal(mean, deviation);
    for (const TensorDesc& d : inputs) {
      in.push_back(place(d));
      for (int64_t i = 0; i < d.shape.elements(); ++i) {
        const float drawn = normal(generator);
        if (d.dtype == kF) in.back().as<float>()[i] = drawn;
        if (d.dtype == DType::kBF16) in.back().as<bf16>()[i] = round_to<bf16>(drawn);
        if (d.dtype == kD) in.back().as<double>()[i] = drawn;
        if (d.dtype == kI) in.back().as<int32_t>()[i] = static_cast<int32_t>(i % 4);
      }
    }
    for (const TensorDesc& d : outputs) out.push_back(place(d));
  }
  Tensor place(const TensorDesc& d) {
    storage.emplace_back(d.bytes());
    return {d, storage.back().data()};
  }
  float* x(size_t i) { return in[i].as<float>(); }
  float* y(size_t i) { return out[i].as<float>(); }
  double sum(size_t i) { return *out[i].as<double>(); }

  void operator()(std::string_view op, const Attrs& attrs, int threads = 1) {
    std::vector<TensorDesc> inputs, outputs;
    for (const Tensor& t : in) inputs.push_back(t.desc);
    for (const Tensor& t : out) outputs.push_back(t.desc);
    const auto kernel = cpu_registry().find({op, inputs, outputs, ~0u, ~0u, &attrs, threads});
    ASSERT_NE(kernel, nullptr) << op;
    workspace = kernel->workspace_bytes();
    Memory space(workspace);
    std::memset(space.data(), 0xff, static_cast<size_t>(workspace));  // NaN
    set_thread_count(threads);
    kernel->run({in, out, space.data(), 0, {}});
    set_thread_count(1);
  }
};

TEST(Pictures, HaveTheSameBitsWhateverTheThreads) {
  for (const DType t : {kF, DType::kBF16}) {
    const TensorDesc x = of(t, {6, 38, 36, 40}), c = of(kF, {40}), g = of(kF, {6, 4}),
                     half = of(t, {6, 19, 18, 40}), places = of(kI, {6, 19, 18, 40}),
                     patches = of(t, {6, 38, 36, 360}), rows = of(t, {300, 64}), one = of(kF, {1}),
                     sum = of(kD, {1});
    const Attrs window{{"kernel", Sizes{2}}}, taps{{"kernel", Sizes{3}}, {"padding", Sizes{1}}};
    const auto with_input = [](Attrs attrs) {
      attrs.set("input", Sizes{38, 36});
      return attrs;
    };
    struct Case {
      const char* op;
      std::vector<TensorDesc> in, out;
      Attrs attrs;
    };
    for (const Case& k :
         std::vector<Case>{{"batchnorm", {x, c, c}, {x, c, c}, {}},
                           {"batchnorm_grad", {x, x, c, c, c}, {x, c, c}, {{"eps", 9.0}}},
                           {"groupnorm", {x, c, c}, {x, g, g}, {{"groups", int64_t{4}}}},
                           {"groupnorm_grad", {x, x, c, g, g}, {x, c, c}, {{"groups", int64_t{4}}}},
                           {"max_pool", {x}, {half, places}, window},
                           {"max_pool_grad", {half, places}, {x}, with_input({})},
                           {"average_pool_grad", {half}, {x}, with_input(window)},
                           {"resize_grad", {half}, {x}, with_input({{"mode", std::string("bilinear")}})},
                           {"patches", {x}, {patches}, taps},
                           {"patches_grad", {patches}, {x}, with_input(taps)},
                           {"pair_loss_grad",
                            {rows, rows, one, one, sum},
                            {sum, sum, rows, rows, one, one},
                            {{"kind", std::string("sigmoid")}}},
                           {"pair_loss_grad",
                            {rows, rows, one, one, sum},
                            {sum, sum, rows, rows, one, one},
                            {{"kind", std::string("triplet")}}}}) {
      Drawn once(k.in, k.out);
      once(k.op, k.attrs);
      for (const int threads : {2, 3, 5}) {
        Drawn again(k.in, k.out);
        again(k.op, k.attrs, threads);
        for (size_t o = 0; o < k.out.size(); ++o)
          EXPECT_EQ(std::memcmp(once.out[o].data, again.out[o].data, static_cast<size_t>(k.out[o].bytes())),
                    0)
              << k.op << ' ' << dtype_name(t) << ", output " << o << ", threads " << threads;
      }
    }
  }
}

// A mean of 1000 as a float32 is off by up to 3e-5, a deviation of 0.1 by far less: y does not lose what the mean does.
TEST(Pictures, BatchnormKeepsSmallDeviationsAroundALargeMean) {
  const int64_t rows = 20011, channels = 19;
  Drawn run({of(kF, {rows, channels})}, {of(kF, {rows, channels}), of(kF, {channels}), of(kF, {channels})},
            1000, 0.1f);
  run.x(0)[0] = 1200;  // the first of its rows is like none of the others
  run("batchnorm", {});
  for (int64_t c = 0; c < channels; ++c) {
    const auto x = [&](int64_t r) { return static_cast<double>(run.x(0)[r * channels + c]); };
    double mean = 0, var = 0, worst = 0;
    for (int64_t r = 0; r < rows; ++r) mean += x(r) / rows;
    for (int64_t r = 0; r < rows; ++r) var += (x(r) - mean) * (x(r) - mean) / rows;
    for (int64_t r = 0; r < rows; ++r) {
      const double y = (x(r) - mean) / std::sqrt(var + 1e-5);
      worst = std::max(worst, std::fabs(run.y(0)[r * channels + c] - y) / std::max(1.0, std::fabs(y)));
    }
    EXPECT_EQ(run.y(1)[c], static_cast<float>(mean)) << c;
    EXPECT_NEAR(run.y(2)[c] / var, 1, 2e-6) << c;
    EXPECT_LT(worst, 2e-6) << c;
  }
}

TEST(Pictures, ANanConcernsItsChannelAlone) {
  Drawn run({of(kF, {100, 18})}, {of(kF, {100, 18}), of(kF, {18}), of(kF, {18})});
  run.x(0)[37 * 18 + 17] = kNan;
  run("batchnorm", {});
  for (int64_t i = 0; i < 1800; ++i) EXPECT_EQ(std::isnan(run.y(0)[i]), i % 18 == 17) << i;
}

TEST(Pictures, ANanIsTheLargestOfItsWindows) {
  Drawn run({of(kF, {1, 4, 17})}, {of(kF, {1, 2, 17}), of(kI, {1, 2, 17})});
  run.x(0)[0 * 17 + 16] = 5, run.x(0)[1 * 17 + 16] = kNan;
  run.x(0)[2 * 17 + 3] = run.x(0)[3 * 17 + 3] = kNan;
  run("max_pool", {{"kernel", Sizes{2}}});
  EXPECT_TRUE(std::isnan(run.y(0)[16]) && std::isnan(run.y(0)[17 + 3]));
  EXPECT_EQ(run.out[1].as<int32_t>()[16], 1);
  EXPECT_EQ(run.out[1].as<int32_t>()[17 + 3], 2);  // the first of both
}

TEST(Pictures, ATargetIsAmongTheLargestBehindEqualOnesInFrontOfIt) {
  for (const auto& [top, hits] : {std::pair{1, 0.0}, {2, 0.0}, {3, 1.0}, {1000, 1.0}}) {
    Drawn run({of(kF, {2, 600}), of(kI, {2})}, {of(kD, {1}), of(kD, {1})}, -9, 0.1f);
    run.x(0)[2] = 1, run.x(0)[5] = 1, run.x(0)[590] = 2;  // 1 in front of the target, 2 far after it
    run.in[1].as<int32_t>()[0] = 5;
    run.x(0)[600 + 599] = kNan;  // no hit
    run("accuracy", {{"top", int64_t{top}}});
    EXPECT_EQ(run.sum(0), hits) << top;
    EXPECT_EQ(run.sum(1), 2) << top;
  }
}

// More rows and columns than a tile has, with some left over, against sums in float64.
TEST(Pictures, LossesOfPairsOverSeveralTilesAreThoseOfAllPairs) {
  const int64_t n = 1100, d = 8;
  const TensorDesc rows = of(kF, {n, d}), one = of(kF, {1}), sum = of(kD, {1});
  for (const bool triplet : {false, true}) {
    Drawn run({rows, rows, one, one, sum}, {sum, sum, rows, rows, one, one}, 0, 0.4f);
    *run.x(2) = 1.5f, *run.x(3) = -0.5f, *run.in[4].as<double>() = 0.25;
    run("pair_loss_grad", {{"kind", std::string(triplet ? "triplet" : "sigmoid")}, {"margin", 0.3}});
    EXPECT_LT(run.workspace, n * n * 4) << "the matrix is in memory";
    const auto nd = static_cast<size_t>(n * d);
    std::vector<double> da(nd), db(nd), p(static_cast<size_t>(n));
    double loss = 0, dscale = 0, dbias = 0;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        p[static_cast<size_t>(j)] = 0;
        for (int64_t k = 0; k < d; ++k)
          p[static_cast<size_t>(j)] += static_cast<double>(run.x(0)[i * d + k]) * run.x(1)[j * d + k];
      }
      const auto push = [&](int64_t j, double ds) {
        dscale += 0.25 * ds * p[static_cast<size_t>(j)], dbias += 0.25 * ds;
        for (int64_t k = 0; k < d; ++k) {
          da[static_cast<size_t>(i * d + k)] += 0.25 * 1.5 * ds * run.x(1)[j * d + k];
          db[static_cast<size_t>(j * d + k)] += 0.25 * 1.5 * ds * run.x(0)[i * d + k];
        }
      };
      for (int64_t j = 0; j < n; ++j) {
        const double s = 1.5 * p[static_cast<size_t>(j)] - 0.5, sign = i == j ? 1 : -1;
        const double over = 0.3 + 1.5 * (p[static_cast<size_t>(j)] - p[static_cast<size_t>(i)]);
        if (!triplet) {
          loss += std::log1p(std::exp(-sign * s));
          push(j, -sign / (1 + std::exp(sign * s)));
        } else if (i != j && over > 0) {
          loss += over;
          push(j, 1);
          push(i, -1);
        }
      }
    }
    EXPECT_NEAR(run.sum(0) / loss, 1, 1e-6);
    EXPECT_EQ(run.sum(1), static_cast<double>(triplet ? n * (n - 1) : n));
    double largest = 0, worst = 0;
    for (size_t i = 0; i < nd; ++i) {
      largest = std::max({largest, std::fabs(da[i]), std::fabs(db[i])});
      worst = std::max({worst, std::fabs(da[i] - run.y(2)[i]), std::fabs(db[i] - run.y(3)[i])});
    }
    EXPECT_LT(worst, 1e-5 * largest) << (triplet ? "triplet" : "sigmoid");
    EXPECT_NEAR(*run.y(4), dscale, 1e-5 * std::fabs(loss));
    EXPECT_NEAR(*run.y(5), dbias, 1e-5 * std::fabs(loss));
  }
}

}  // namespace
}  // namespace cairn::kernels
