// Convolutions, transposed ones and the gradients of their weights against sums in double, for every feature of
// the op rows; and the same bits for every number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/registry.h"
#include "runtime/base/parallel.h"
#include "runtime/base/spatial.h"

namespace cairn::kernels {
namespace {

struct Case {
  const char* name;
  Shape x, w;
  Attrs attrs = {};
  bool bias = false;
};

std::vector<Case> cases() {
  using List = std::vector<int64_t>;
  const auto with = [](List stride, List padding, List dilation = {1}, int64_t groups = 1) {
    return Attrs{{"stride", stride}, {"padding", padding}, {"dilation", dilation}, {"groups", groups}};
  };
  return {
      {"1x1", {2, 7, 5, 32}, {48, 1, 1, 32}, {}, true},
      {"1x1, many pixels", {1, 23, 29, 64}, {33, 1, 1, 64}},
      {"1x1, stride 2", {2, 9, 8, 32}, {40, 1, 1, 32}, with({2}, {0})},
      {"1x1, odd channels", {3, 4, 5, 19}, {7, 1, 1, 19}, {}, true},
      {"3x3", {2, 14, 14, 32}, {64, 3, 3, 32}, with({1}, {1}), true},
      {"3x3, small pictures", {3, 7, 7, 64}, {32, 3, 3, 64}, with({1}, {1})},
      {"3x3, wide", {1, 6, 61, 32}, {32, 3, 3, 32}, with({1}, {1})},
      {"3x3, deep", {1, 5, 6, 256}, {24, 3, 3, 256}, with({1}, {1})},
      {"3x3, stride 2", {2, 15, 14, 32}, {40, 3, 3, 32}, with({2}, {1})},
      {"3x3, stride 2 by axis", {1, 16, 9, 32}, {32, 3, 3, 32}, with({2, 1}, {0, 1})},
      {"3x3, few channels", {2, 13, 12, 5}, {9, 3, 3, 5}, with({1}, {1}), true},
      {"3x3, 16 channels", {2, 8, 32, 16}, {16, 3, 3, 16}, with({1}, {1})},
      {"3x3, dilated", {2, 12, 11, 32}, {32, 3, 3, 32}, with({1}, {2}, {2})},
      {"3x3, dilated, few channels", {2, 12, 11, 6}, {10, 3, 3, 6}, with({1}, {2, 3}, {2, 3})},
      {"2x3, dilated, stride 3", {1, 17, 19, 10}, {12, 2, 3, 10}, with({3, 2}, {1}, {2})},
      {"5x3, one side padded", {1, 9, 10, 32}, {16, 5, 3, 32}, with({1}, {0, 3, 2, 0})},
      {"7x7, stride 2, pictures", {1, 37, 35, 3}, {64, 7, 7, 3}, with({2}, {3})},
      {"4x4 patches", {2, 16, 16, 3}, {48, 4, 4, 3}, with({4}, {0}), true},
      {"window beyond", {1, 3, 3, 8}, {8, 5, 5, 8}, with({1}, {2})},
      {"groups", {2, 9, 9, 64}, {64, 3, 3, 32}, with({1}, {1}, {1}, 2)},
      {"small groups", {2, 9, 9, 24}, {12, 3, 3, 4}, with({2}, {1}, {1}, 6), true},
      {"depthwise 7x7", {2, 11, 13, 40}, {40, 7, 7, 1}, with({1}, {3}, {1}, 40), true},
      {"depthwise 3x3, stride 2", {1, 12, 15, 33}, {33, 3, 3, 1}, with({2}, {1}, {1}, 33)},
      {"depthwise, dilated", {1, 12, 15, 16}, {16, 3, 3, 1}, with({1}, {2}, {2}, 16)},
      {"depthwise, two each", {1, 6, 7, 6}, {12, 3, 3, 1}, with({1}, {1}, {1}, 6)},
      {"sequence", {2, 50, 32}, {32, 5, 32}, with({1}, {2})},
      {"sequence, causal, dilated", {2, 30, 12}, {20, 3, 12}, with({1}, {4, 0}, {2}), true},
      {"sequence, stride 2", {2, 31, 80}, {64, 3, 80}, with({2}, {1})},
      {"sequence, depthwise, causal", {2, 40, 48}, {48, 4, 1}, with({1}, {3, 0}, {1}, 48)},
  };
}

std::vector<float> numbers(int64_t count, uint32_t seed, DType type) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> all(static_cast<size_t>(count));
  for (float& x : all)
    x = type == DType::kBF16  ? to_float(to_bf16(normal(random)))
        : type == DType::kF16 ? to_float(to_f16(normal(random)))
                              : normal(random);
  return all;
}

// Numbers of a type at an address that kernels take.
struct Data {
  TensorDesc desc;
  std::vector<char> bytes;
  explicit Data(const TensorDesc& d) : desc(d), bytes(static_cast<size_t>(d.bytes()) + 64) {}
  char* at() { return bytes.data() + (64 - reinterpret_cast<uintptr_t>(bytes.data()) % 64) % 64; }
  Tensor tensor() { return {desc, at()}; }
  void set(const std::vector<float>& from) {
    for (size_t i = 0; i < from.size(); ++i) {
      if (desc.dtype == DType::kF32) reinterpret_cast<float*>(at())[i] = from[i];
      if (desc.dtype == DType::kBF16) reinterpret_cast<bf16*>(at())[i] = to_bf16(from[i]);
      if (desc.dtype == DType::kF16) reinterpret_cast<f16*>(at())[i] = to_f16(from[i]);
    }
  }
  std::vector<double> get() {
    std::vector<double> all(static_cast<size_t>(desc.shape.elements()));
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = static_cast<double>(desc.dtype == DType::kF32    ? reinterpret_cast<float*>(at())[i]
                                   : desc.dtype == DType::kBF16 ? to_float(reinterpret_cast<bf16*>(at())[i])
                                                                : to_float(reinterpret_cast<f16*>(at())[i]));
    return all;
  }
};

// Calls use(x element, dy element, w element) for every product of the convolution.
template <class Use>
void each_product(const Case& c, const Use& use) {
  const Windows v = conv_windows(c.x, c.w, c.attrs);
  const int64_t outputs = c.w[0], depth = c.w.last(), groups = c.attrs.integer("groups", 1),
                per_group = outputs / groups;
  for (int64_t n = 0; n < v.n; ++n)
    for (int64_t i = 0; i < v.h.out; ++i)
      for (int64_t j = 0; j < v.w.out; ++j)
        for (int64_t ky = 0; ky < v.h.window; ++ky)
          for (int64_t kx = 0; kx < v.w.window; ++kx) {
            const int64_t y = v.h.at(i, ky), x = v.w.at(j, kx);
            if (!v.h.inside(y) || !v.w.inside(x)) continue;
            for (int64_t o = 0; o < outputs; ++o)
              for (int64_t k = 0; k < depth; ++k)
                use(((n * v.h.in + y) * v.w.in + x) * v.channels + o / per_group * depth + k,
                    ((n * v.h.out + i) * v.w.out + j) * outputs + o,
                    ((o * v.h.window + ky) * v.w.window + kx) * depth + k);
          }
}

Shape output_of(const Case& c) {
  const Windows v = conv_windows(c.x, c.w, c.attrs);
  return c.x.rank == 4 ? Shape{v.n, v.h.out, v.w.out, c.w[0]} : Shape{v.n, v.w.out, c.w[0]};
}

// Runs the kernel with 1, 2 and 3 threads; all must have the same bits. Returns how many rows of kernels.def took it.
void run(const Signature& given, std::vector<Tensor> in, std::vector<Data*> out, uint32_t accumulate,
         const std::string& what) {
  std::vector<std::vector<char>> first, before;
  for (Data* d : out) before.emplace_back(d->at(), d->at() + d->desc.bytes());
  for (const int threads : {1, 2, 3}) {
    Signature s = given;
    s.threads = threads;
    const auto kernel = cpu_registry().find(s);
    ASSERT_NE(kernel, nullptr) << what;
    std::vector<char> space(static_cast<size_t>(kernel->workspace_bytes()) + 128, '\xff');
    char* const aligned = space.data() + (64 - reinterpret_cast<uintptr_t>(space.data()) % 64) % 64;
    char* const end = aligned + kernel->workspace_bytes();
    std::memset(end, 0x5a, 32);
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < out.size(); ++i) {
      std::memcpy(out[i]->at(), before[i].data(), before[i].size());
      tensors.push_back(out[i]->tensor());
    }
    set_thread_count(threads);
    kernel->run({.in = in, .out = tensors, .workspace = aligned, .accumulate = accumulate});
    set_thread_count(1);
    for (int i = 0; i < 32; ++i) ASSERT_EQ(end[i], 0x5a) << what << ": wrote beyond its workspace";
    for (size_t i = 0; i < out.size(); ++i) {
      const std::vector<char> bytes(out[i]->at(), out[i]->at() + out[i]->desc.bytes());
      if (threads == 1)
        first.push_back(bytes);
      else
        EXPECT_TRUE(bytes == first[i]) << what << ": other bits with " << threads << " threads";
    }
  }
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want,
                 const std::vector<double>& sizes, DType type, const std::string& what) {
  const double rounding = type == DType::kF32 ? 0 : type == DType::kF16 ? 0x1p-11 : 0x1p-8;
  for (size_t i = 0; i < want.size(); ++i) {
    const double most = 2e-6 * sizes[i] + rounding * std::abs(want[i]) + 1e-6;
    ASSERT_NEAR(got[i], want[i], most) << what << ", element " << i;
  }
}

class Convolutions : public testing::TestWithParam<DType> {};

TEST_P(Convolutions, AreSumsOfProducts) {
  const DType type = GetParam();
  for (const Case& c : cases()) {
    const Shape y_shape = output_of(c);
    Data x({type, c.x}), dy({type, y_shape}), w({DType::kF32, c.w}), b({DType::kF32, {c.w[0]}});
    Data y({type, y_shape}), dx({type, c.x}), dw({DType::kF32, c.w}), db({DType::kF32, {c.w[0]}});
    // Tiles round a weight to the type of the activations.
    const auto xs = numbers(c.x.elements(), 1, type), dys = numbers(y_shape.elements(), 2, type),
               ws = numbers(c.w.elements(), 3, type), bs = numbers(c.w[0], 4, type);
    x.set(xs), dy.set(dys), w.set(ws), b.set(bs);
    std::vector<double> wants[4], sizes[4];
    for (int i = 0; i < 4; ++i) {
      const int64_t count = std::array{y_shape, c.x, c.w, Shape{c.w[0]}}[static_cast<size_t>(i)].elements();
      wants[i].resize(static_cast<size_t>(count)), sizes[i].resize(static_cast<size_t>(count));
    }
    const auto add = [&](int which, int64_t at, double value) {
      wants[which][static_cast<size_t>(at)] += value;
      sizes[which][static_cast<size_t>(at)] += std::abs(value);
    };
    each_product(c, [&](int64_t i, int64_t j, int64_t k) {
      const double xi = xs[static_cast<size_t>(i)], gj = dys[static_cast<size_t>(j)],
                   wk = ws[static_cast<size_t>(k)];
      add(0, j, xi * wk), add(1, i, gj * wk), add(2, k, xi * gj);
    });
    for (int64_t j = 0; j < y_shape.elements(); ++j) {
      add(3, j % c.w[0], dys[static_cast<size_t>(j)]);
      if (c.bias) add(0, j, bs[static_cast<size_t>(j % c.w[0])]);
    }
    const std::string name = std::string(c.name) + " " + std::string(dtype_name(type));

    std::vector<TensorDesc> in{x.desc, w.desc, b.desc}, out{y.desc};
    Signature s{.op = "conv", .in = in, .out = out, .in_present = c.bias ? 7u : 3u, .attrs = &c.attrs};
    run(s, {x.tensor(), w.tensor(), c.bias ? b.tensor() : Tensor{}}, {&y}, 0, name);
    expect_near(y.get(), wants[0], sizes[0], type, name);

    Attrs sized = c.attrs;
    sized.set("size", std::vector<int64_t>(c.x.span().begin() + 1, c.x.span().end() - 1));
    in = {dy.desc, w.desc}, out = {dx.desc};
    s = {.op = "conv_transpose", .in = in, .out = out, .attrs = &sized};
    run(s, {dy.tensor(), w.tensor()}, {&dx}, 0, name + " transposed");
    expect_near(dx.get(), wants[1], sizes[1], type, name + " transposed");

    Attrs kernel = c.attrs;
    kernel.set("kernel", std::vector<int64_t>(c.w.span().begin() + 1, c.w.span().end() - 1));
    in = {x.desc, dy.desc}, out = {dw.desc, db.desc};
    s = {.op = "conv_grad_weight", .in = in, .out = out, .attrs = &kernel};
    run(s, {x.tensor(), dy.tensor()}, {&dw, &db}, 0, name + " weight");
    expect_near(dw.get(), wants[2], sizes[2], DType::kF32, name + " weight");
    expect_near(db.get(), wants[3], sizes[3], DType::kF32, name + " bias");
    dw.set(ws), db.set(bs);
    run(s, {x.tensor(), dy.tensor()}, {&dw, &db}, 3, name + " added");
    for (size_t k = 0; k < ws.size(); ++k) wants[2][k] += ws[k];
    for (size_t k = 0; k < bs.size(); ++k) wants[3][k] += bs[k];
    expect_near(dw.get(), wants[2], sizes[2], DType::kF32, name + " weight, added");
    expect_near(db.get(), wants[3], sizes[3], DType::kF32, name + " bias, added");
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Convolutions, testing::Values(DType::kF32, DType::kBF16, DType::kF16),
                         [](const auto& type) { return std::string(dtype_name(type.param)); });

}  // namespace
}  // namespace cairn::kernels
