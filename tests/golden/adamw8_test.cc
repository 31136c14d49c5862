// The dynamic 8-bit formats and 50 steps of adamw8 against bitsandbytes (make_adamw8.py).
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>

#include "kernels/registry.h"
#include "runtime/formats/dynamic8.h"
#include "runtime/ops/optimizers.h"
#include "tests/golden/fixture.h"

namespace cairn::golden {
namespace {

std::vector<FixtureCase> cases_of(std::string_view op) {
  std::vector<FixtureCase> found;
  for (FixtureCase& c : read_fixture(cat(CAIRN_SOURCE_DIR, "/tests/golden/data/adamw8.txt")))
    if (c.op == op) found.push_back(std::move(c));
  return found;
}

const DynamicMap* const kMaps[] = {&kDynamicMap, &kUnsignedDynamicMap};

TEST(Adamw8, MapsAreBitsandbytesToTheBit) {
  const std::vector<FixtureCase> cases = cases_of("map");
  ASSERT_EQ(cases.size(), 2u);
  for (size_t c = 0; c < 2; ++c) {
    const std::vector<double>& values = cases[c].all("values").at(0)->values;
    ASSERT_EQ(values.size(), 256u);
    for (size_t code = 0; code < 256; ++code) EXPECT_EQ(kMaps[c]->values[code], values[code]) << code;
  }
}

TEST(Adamw8, BlocksAreQuantizedAsBitsandbytesDoes) {
  const std::vector<FixtureCase> cases = cases_of("quantized");
  ASSERT_EQ(cases.size(), 2u);
  for (size_t c = 0; c < 2; ++c) {
    const std::vector<double>&numbers = cases[c].all("numbers").at(0)->values,
          &codes = cases[c].all("codes").at(0)->values, &scales = cases[c].all("scales").at(0)->values;
    int negative = 0;
    for (size_t b = 0; b < scales.size(); ++b) {
      std::array<float, kDynamicBlock> from;
      for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(numbers[b * from.size() + i]);
      DynamicBlock block;
      encode_dynamic(*kMaps[c], from.data(), kDynamicBlock, block);
      EXPECT_EQ(block.scale, scales[b]);
      for (size_t i = 0; i < from.size(); ++i) {
        // Its optimizer keeps the sign of a negative number, its quantize_blockwise does not.
        const double theirs = codes[b * from.size() + i];
        const bool kept = from[i] < 0 && theirs == kMaps[c]->zero;
        EXPECT_EQ(block.codes[i], kept ? theirs - 1 : theirs) << "map " << c << " number " << from[i];
        negative += kept ? 1 : 0;
      }
    }
    EXPECT_EQ(negative > 0, c == 0);
  }
}

// As the maker of the fixture draws them.
float gradient(uint32_t i, uint32_t step) {
  uint32_t h = i * 2654435761u + step * 2246822519u;
  h = (h ^ h >> 15) * 2654435761u;
  h ^= h >> 13;
  return i == 0 ? 0.0f
                : std::ldexp(static_cast<float>(h >> 8) * 0x1p-24f - 0.5f, -3 * static_cast<int>(i % 6));
}

// A state's codes and scales against the fixture's: a number that lies between two may be rounded to either.
// Returns how many were.
int compare_state(const DynamicBlock* blocks, const Item& codes, const Item& scales) {
  int apart = 0;
  for (size_t i = 0; i < codes.values.size(); ++i) {
    const int by =
        std::abs(blocks[i / kDynamicBlock].codes[i % kDynamicBlock] - static_cast<int>(codes.values[i]));
    EXPECT_LE(by, 1) << "element " << i;
    apart += by;
  }
  for (size_t b = 0; b < scales.values.size(); ++b)
    EXPECT_NEAR(blocks[b].scale, scales.values[b], 5e-6 * scales.values[b]);
  return apart;
}

// The case's steps by one backend's kernel, over states of 8 bits although the tensor is small.
template <class T>
void check_steps(const FixtureCase& c, const kernels::Registry& registry, DType dtype) {
  const ops::OptimizerRow& row = ops::optimizer("adamw8");
  std::vector<double> values = c.all("hyper").at(0)->values;
  const double rate = std::exchange(values[0], 1);
  const std::vector<double>& start = c.all("start").at(0)->values;
  const auto count = static_cast<int64_t>(start.size());
  const TensorDesc x{dtype, Shape{count}}, hyper_desc{DType::kF64, Shape{update_op::kHyperSlots}};
  const TensorDesc in_desc[] = {x, hyper_desc},
                   out_desc[] = {x, {DType::kDynamic8, Shape{count}}, {DType::kUDynamic8, Shape{count}}};
  std::vector<T> p(start.begin(), start.end()), grad(start.size());
  DynamicBlock m[2] = {}, v[2] = {};  // all bits 0: numbers of 0, as a run begins
  std::array<double, update_op::kHyperSlots> hyper{};
  const Tensor in[] = {{x, grad.data()}, {hyper_desc, hyper.data()}};
  const Tensor out[] = {{x, p.data()}, {out_desc[1], m}, {out_desc[2], v}};
  const Attrs attrs{{"optimizer", std::string("adamw8")}};
  const auto kernel = registry.find({"update", in_desc, out_desc, 3, 7, &attrs, 1});
  ASSERT_NE(kernel, nullptr);
  uint32_t t = 0;
  int apart = 0, shown = 0;
  const std::vector<const Item*> results = c.all("result");
  for (const Item* after : c.all("after")) {
    while (t < static_cast<uint32_t>(after->values.at(0))) {
      ++t;
      for (size_t i = 0; i < grad.size(); ++i) grad[i] = 2 * gradient(static_cast<uint32_t>(i), t);
      row.rule(values, {.rate = rate, .t = t}, hyper.data());
      hyper[update_op::kFactorSlot] = 0.5;
      kernel->run({in, out, nullptr, 0, {}});
    }
    const auto result = [&](size_t k) -> const Item& {
      return *results.at(static_cast<size_t>(shown) * 5 + k);
    };
    for (size_t i = 0; i < p.size(); ++i)
      EXPECT_NEAR(p[i], result(0).values[i], t * rate * 1e-3) << "step " << t << " element " << i;
    apart += compare_state(m, result(1), result(2)) + compare_state(v, result(3), result(4));
    for (size_t i = static_cast<size_t>(count); i < 2 * kDynamicBlock; ++i) {
      EXPECT_EQ(m[1].codes[i % kDynamicBlock], kDynamicMap.zero) << "behind the last element";
      EXPECT_EQ(v[1].codes[i % kDynamicBlock], 0) << "behind the last element";
    }
    ++shown;
  }
  EXPECT_EQ(t, 50u);
  EXPECT_EQ(shown, 5);
  EXPECT_LE(apart, 5) << "codes of " << 2 * shown * count;
}

TEST(Adamw8, FiftyStepsAreBitsandbytes) {
  const std::vector<FixtureCase> cases = cases_of("adamw8");
  ASSERT_EQ(cases.size(), 2u);
  for (const FixtureCase& c : cases) {
    check_steps<double>(c, kernels::reference_registry(), DType::kF64);
    check_steps<float>(c, kernels::reference_registry(), DType::kF32);
    check_steps<float>(c, kernels::cpu_registry(), DType::kF32);
  }
}

}  // namespace
}  // namespace cairn::golden
