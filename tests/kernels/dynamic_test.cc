// States of 8 bits as the CPU's kernels round them, number by number: with betas of 0 m is the gradient and v its square.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/registry.h"
#include "runtime/base/optimizers/update_operands.h"
#include "runtime/formats/dynamic8.h"

namespace cairn::kernels {
namespace {

// Numbers of blocks whose first is 1, so that the scale is 1.
struct States {
  std::vector<DynamicBlock> m, v;

  explicit States(std::vector<float> gradient) : m((gradient.size() + 255) / 256), v(m.size()) {
    const auto count = static_cast<int64_t>(gradient.size());
    std::vector<float> p(gradient.size(), 1.0f);
    double hyper[update_op::kHyperSlots] = {};
    hyper[5] = hyper[6] = hyper[update_op::kFactorSlot] = 1;
    const TensorDesc x{DType::kF32, Shape{count}}, numbers{DType::kF64, Shape{update_op::kHyperSlots}};
    const TensorDesc in_desc[] = {x, numbers},
                     out_desc[] = {x, {DType::kDynamic8, Shape{count}}, {DType::kUDynamic8, Shape{count}}};
    const Tensor in[] = {{x, gradient.data()}, {numbers, hyper}};
    const Tensor out[] = {{x, p.data()}, {out_desc[1], m.data()}, {out_desc[2], v.data()}};
    const Attrs attrs{{"optimizer", std::string("adamw8")}};
    const auto kernel = cpu_registry().find({"update", in_desc, out_desc, 3, 7, &attrs, 1});
    if (kernel == nullptr) throw std::runtime_error("no kernel");
    kernel->run({in, out, nullptr, 0, {}});
  }
};

// The nearest, or one of two that are equally near but for a part in a million.
void expect_nearest(const DynamicMap& map, float x, int code) {
  const int nearest = nearest_code(map, x);
  if (code == nearest) return;
  const float low = std::fabs(map.values[std::min(code, nearest)]),
              high = std::fabs(map.values[std::max(code, nearest)]);
  EXPECT_EQ(std::abs(code - nearest), 1) << x;
  EXPECT_NEAR(std::fabs(x), (low + high) / 2, 1e-6f * std::fabs(x)) << x << " is not in the middle";
}

TEST(DynamicStates, EveryNumberGetsTheNearestCode) {
  std::vector<float> magnitudes;
  for (double x = 1e-8; x <= 1; x *= 1.0002) magnitudes.push_back(static_cast<float>(x));
  for (const DynamicMap* map : {&kDynamicMap, &kUnsignedDynamicMap})
    for (int place = 0; place < map->most; ++place)
      for (const float x : {map->values[map->zero + place], map->middles[place]})
        for (const float by : {0.99999f, 1.0f, 1.00001f}) magnitudes.push_back(x * by);
  magnitudes.push_back(std::nextafter(1.0f, 0.0f));
  std::vector<float> gradient;
  for (const float x : magnitudes)
    for (const float g : {x, -x, std::sqrt(x)}) {
      if (gradient.size() % 256 == 0) gradient.push_back(1.0f);
      gradient.push_back(std::min(g, 1.0f));
    }
  const States states(gradient);
  for (size_t i = 0; i < gradient.size(); ++i) {
    const DynamicBlock &m = states.m[i / 256], &v = states.v[i / 256];
    ASSERT_EQ(m.scale, 1.0f);
    ASSERT_EQ(v.scale, 1.0f);
    expect_nearest(kDynamicMap, gradient[i], m.codes[i % 256]);
    expect_nearest(kUnsignedDynamicMap, gradient[i] * gradient[i], v.codes[i % 256]);
  }
}

TEST(DynamicStates, SignsAndZerosAreKept) {
  const States states({1.0f, 1e-9f, -1e-9f, 0.0f, -0.0f, -1.0f, 0.5f});
  const uint8_t* const m = states.m[0].codes;
  EXPECT_EQ(m[0], 255);
  EXPECT_EQ(m[1], 127) << "to 0";
  EXPECT_EQ(m[2], 126) << "not to 0";
  EXPECT_EQ(m[3], 127);
  EXPECT_EQ(m[4], 127);
  EXPECT_EQ(m[5], 0) << "-1 has no code";
  EXPECT_EQ(states.v[0].codes[3], 0);
  for (int i = 7; i < 256; ++i) {
    EXPECT_EQ(m[i], 127) << "behind the last element";
    EXPECT_EQ(states.v[0].codes[i], 0);
  }
}

// Every code as a state and a gradient of 0: with betas of 1 / 2 the states halve, and their scales are half of the
// largest number, whose code all others keep.
TEST(DynamicStates, EveryCodeIsReadAsItsNumber) {
  for (int code = 0; code < kDynamicCodes; ++code) {
    float p = 1, grad = 0;
    double hyper[update_op::kHyperSlots] = {0, 0.5, 0.5, 0, 0, 1, 1, 1};
    DynamicBlock m, v;
    std::fill(std::begin(m.codes), std::end(m.codes), static_cast<uint8_t>(kDynamicMap.zero));
    std::fill(std::begin(v.codes), std::end(v.codes), uint8_t{0});
    m.codes[0] = v.codes[0] = static_cast<uint8_t>(code);
    m.scale = v.scale = 3;
    const TensorDesc x{DType::kF32, Shape{1}}, numbers{DType::kF64, Shape{update_op::kHyperSlots}};
    const TensorDesc in_desc[] = {x, numbers},
                     out_desc[] = {x, {DType::kDynamic8, Shape{1}}, {DType::kUDynamic8, Shape{1}}};
    const Tensor in[] = {{x, &grad}, {numbers, hyper}};
    const Tensor out[] = {{x, &p}, {out_desc[1], &m}, {out_desc[2], &v}};
    const Attrs attrs{{"optimizer", std::string("adamw8")}};
    const auto kernel = cpu_registry().find({"update", in_desc, out_desc, 3, 7, &attrs, 1});
    ASSERT_NE(kernel, nullptr);
    kernel->run({in, out, nullptr, 0, {}});
    const float of_m = std::fabs(kDynamicMap.values[code]) * 1.5f,
                of_v = kUnsignedDynamicMap.values[code] * 1.5f;
    EXPECT_NEAR(m.scale, of_m, 3e-7f * of_m) << code;
    EXPECT_NEAR(v.scale, of_v, 3e-7f * of_v) << code;
    EXPECT_EQ(m.codes[0], code < kDynamicMap.zero ? 0 : code == kDynamicMap.zero ? code : 255);
    EXPECT_EQ(v.codes[0], code == 0 ? 0 : 255);
  }
}

// 1 / scale is infinite for scales next to nothing.
TEST(DynamicStates, SmallAndLargeScales) {
  for (const float scale : {1e-44f, 1e-39f, 1e-36f, 1e-31f, 1e-20f, 1e18f}) {
    const States states({scale, -scale / 2, scale / 100, 0.0f});
    const DynamicBlock& m = states.m[0];
    EXPECT_EQ(m.scale, scale);
    EXPECT_EQ(m.codes[0], 255) << scale;
    EXPECT_EQ(m.codes[3], 127) << scale;
    EXPECT_NEAR(kDynamicMap.values[m.codes[1]], -0.5, scale < 1e-43f ? 0.1 : 0.01) << scale;
  }
  const States none({0.0f, -0.0f});
  EXPECT_EQ(none.m[0].scale, 0);
  for (const uint8_t code : none.m[0].codes) EXPECT_EQ(code, 127);
}

}  // namespace
}  // namespace cairn::kernels
