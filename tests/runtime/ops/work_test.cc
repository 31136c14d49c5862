// The analytic cost model's inputs: exact for products.
#include <gtest/gtest.h>

#include "tests/runtime/ops/descs.h"

namespace cairn::ops {
namespace {

Work of(std::string_view op, const std::vector<TensorDesc>& in, const Attrs& attrs = {}) {
  const std::vector<TensorDesc> out = infer(op, in, attrs);
  return work(*find(op), in, out, &attrs);
}

TEST(Work, ProductsAreExact) {
  EXPECT_EQ(of("linear", {f32({2, 3, 4}), f32({5, 4})}).flops, 2.0 * 6 * 5 * 4);
  EXPECT_EQ(of("linear_grad_input", {f32({6, 5}), f32({5, 4})}).flops, 2.0 * 6 * 5 * 4);
  const Attrs relu{{"activation", std::string("relu")}};
  EXPECT_EQ(of("linear_grad_input", {f32({6, 5}), f32({5, 4}), f32({6, 4})}, relu).flops,
            2.0 * 6 * 5 * 4 + 8 * 6 * 4);
  EXPECT_EQ(of("linear_grad_input", {f32({6, 5}), f32({5, 4}), f32({6, 4})}, relu).bytes,
            4.0 * (30 + 20 + 24 + 24));
  EXPECT_EQ(of("linear_grad_weight", {f32({6, 4}), f32({6, 5})}).flops, 2.0 * 6 * 5 * 4 + 6 * 5);
  EXPECT_EQ(of("linear_cross_entropy", {f32({6, 4}), f32({7, 4}), i32({6})}).flops, 2.0 * 6 * 7 * 4);
  EXPECT_EQ(of("linear_cross_entropy_grad", {f32({6, 4}), f32({7, 4}), i32({6})}).flops, 6.0 * 6 * 7 * 4);
  EXPECT_EQ(of("linear", {f32({6, 4}), f32({5, 4})}).bytes, 4.0 * (24 + 20 + 30));
}

// Every row meets the weights of one expert, and the weights of all are read.
TEST(Work, GroupedProductsAreExact) {
  EXPECT_EQ(of("grouped_linear", {f32({6, 4}), f32({3, 5, 4}), i32({4}), f32({3, 5})}).flops,
            2.0 * 6 * 5 * 4);
  EXPECT_EQ(of("grouped_linear", {f32({6, 4}), f32({3, 5, 4}), i32({4})}).bytes, 4.0 * (24 + 60 + 4 + 30));
  EXPECT_EQ(of("grouped_linear_grad_input", {f32({6, 5}), f32({3, 5, 4}), i32({4})}).flops, 2.0 * 6 * 5 * 4);
  EXPECT_EQ(of("grouped_linear_grad_weight", {f32({6, 4}), f32({6, 5}), i32({4})}).flops,
            2.0 * 6 * 5 * 4 + 6 * 5);
}

TEST(Work, AttentionCountsWhatACausalMaskLeaves) {
  Attrs attrs{{"heads", int64_t{2}}};
  const double b = 3, t = 5, width = 8;
  EXPECT_EQ(of("attention", {f32({3, 5, 24})}, attrs).flops, 4 * b * t * (t + 1) / 2 * width);
  attrs.set("causal", int64_t{0});
  EXPECT_EQ(of("attention", {f32({3, 5, 24})}, attrs).flops, 4 * b * t * t * width);
  EXPECT_EQ(of("attention_grad",
               {f32({3, 5, 8}), f32({3, 5, 24}), none(), none(), f32({3, 5, 8}), f32({3, 2, 5})}, attrs)
                .flops,
            10 * b * t * t * width);
}

TEST(Work, AttentionCountsWhatAWindowLeaves) {
  for (const int64_t t : {1, 3, 7})
    for (const int64_t w : {1, 2, 3, 7, 100})
      for (const int64_t causal : {0, 1}) {
        double pairs = 0;
        for (int64_t row = 0; row < t; ++row)
          for (int64_t key = 0; key < t; ++key)
            pairs += row - key < w && key - row < w && (causal == 0 || key <= row);
        const Attrs attrs{{"heads", int64_t{2}}, {"causal", causal}, {"window", w}};
        EXPECT_EQ(of("attention", {f32({3, t, 24})}, attrs).flops, 4 * 3 * pairs * 8) << t << ' ' << w;
      }
  // Where rows stand among a cache's keys is not known.
  Attrs attrs{{"heads", int64_t{2}}};
  const std::vector<TensorDesc> cached = {f32({3, 2, 8}), f32({3, 50, 8}), f32({3, 50, 8}), none(),
                                          none(),         none(),          i32({3})};
  EXPECT_EQ(of("attention", cached, attrs).flops, 4.0 * 3 * 2 * 50 * 8);
  attrs.set("window", int64_t{10});
  EXPECT_EQ(of("attention", cached, attrs).flops, 4.0 * 3 * 2 * 10 * 8);
}

TEST(Work, TheRestIsBoundByBytes) {
  EXPECT_EQ(of("add", {bf({10, 4}), f32({4})}).bytes, 80 + 16 + 80);
  EXPECT_EQ(of("reshape", {f32({10, 4})}, {{"shape", List{40}}}).bytes, 0);
  EXPECT_EQ(of("transpose", {f32({10, 4})}, {{"perm", List{1, 0}}}).flops, 0);
  // The parameter and its states are read and written.
  const Attrs adamw{{"optimizer", std::string("adamw")}}, lion{{"optimizer", std::string("lion")}};
  EXPECT_EQ(of("update", {f32({10}), f64({8})}, adamw).bytes, 40 + 64 + 2 * 3 * 40);
  EXPECT_EQ(of("update", {f32({10}), f64({8})}, lion).bytes, 40 + 64 + 2 * 2 * 40);
  EXPECT_EQ(of("update", {f32({10}), f64({8})}, adamw).flops, 160);
  const Attrs muon{{"optimizer", std::string("muon")}, {"ns_steps", int64_t{3}}};
  for (const Shape& shape : {Shape{4, 6}, Shape{6, 4}})
    EXPECT_EQ(of("update", {{DType::kF32, shape, 0}, f64({8})}, muon).flops,
              16 * 24 + 3 * (2 * 2 * 4 * 4 * 6 + 2 * 4 * 4 * 4));
  // A packed weight is written, not read; so may grad_scale be.
  const std::vector<TensorDesc> in = {f32({10}), f64({8}), f64({})};
  const TensorDesc absent = {}, pack{DType::kOpaque, Shape{10}, 20};
  const std::vector<TensorDesc> out = {f32({10}), f32({10}), f32({10}), absent, absent, pack, f64({})};
  EXPECT_EQ(work(*find("update"), in, out, nullptr).bytes,
            40 + 64 + 8 + 2 * 3 * 40 + 20 + 8 + static_cast<double>(2 * absent.bytes()));
  // A lookup reads the rows it takes, not the table.
  EXPECT_EQ(of("embedding", {f32({50000, 4}), i32({3})}).bytes, 12 + 2 * 48);
  EXPECT_GT(of("gelu", {f32({10})}).flops, 0);
}

}  // namespace
}  // namespace cairn::ops
