// Functions of elementwise.def and swiglu over all of float32: every sign, exponent and upper mantissa.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/registry.h"
#include "runtime/base/kernel.h"

namespace cairn::kernels {
namespace {

constexpr int64_t kCount = 65536;

struct Function {
  std::string op, choice;  // of the attribute `approximate`
};
const std::vector<Function> kFunctions = {{"gelu", "tanh"}, {"gelu", "erf"}, {"silu", ""}, {"relu", ""},
                                          {"swiglu", ""},   {"sigmoid", ""}, {"tanh", ""}, {"softplus", ""},
                                          {"exp", ""},      {"log", ""},     {"sqrt", ""}, {"abs", ""}};

std::vector<float> all_floats() {
  std::vector<float> x(kCount);
  for (uint32_t high = 0; high < kCount; ++high)
    x[high] = std::bit_cast<float>(high << 16 | (high * 0x9e37u & 0xffffu));
  return x;
}

std::vector<float> run(const Registry& registry, const Function& f, bool gradient, std::vector<float> x) {
  std::vector<float> one(x.size(), 1.0f), y(x.size()), other(x.size());
  const TensorDesc d{DType::kF32, {static_cast<int64_t>(x.size())}, 0};
  std::vector<Tensor> in{{d, x.data()}}, out{{d, y.data()}};
  if (gradient) in.insert(in.begin(), {d, one.data()});
  if (f.op == "swiglu") {
    in.push_back({d, one.data()});
    if (gradient) out.push_back({d, other.data()});
  }
  const std::vector<TensorDesc> in_desc(in.size(), d), out_desc(out.size(), d);
  Attrs attrs;
  if (!f.choice.empty()) attrs = Attrs{{"approximate", f.choice}};
  const auto kernel =
      registry.find({f.op + (gradient ? "_grad" : ""), in_desc, out_desc, ~0u, ~0u, &attrs, 1});
  EXPECT_NE(kernel, nullptr) << f.op;
  if (kernel != nullptr) kernel->run({in, out, nullptr, 0, {}});
  return y;
}

// The far ends, too: a sigmoid that ends above 0 would be thousands there, and squares that are infinite NaN.
TEST(Activations, AreRightForEveryFloat) {
  const std::vector<float> x = all_floats();
  for (const Function& f : kFunctions)
    for (const bool gradient : {false, true}) {
      const auto found = run(cpu_registry(), f, gradient, x),
                 exact = run(reference_registry(), f, gradient, x);
      SCOPED_TRACE(f.op + " " + f.choice + (gradient ? ", gradient" : ""));
      const double slack = gradient ? 1e-6 : 1e-7;  // beside what rounds: 1 - s loses digits
      for (size_t i = 0; i < x.size(); ++i) {
        if (std::isnan(exact[i]) || std::isinf(exact[i])) {
          ASSERT_EQ(std::isnan(found[i]), std::isnan(exact[i])) << x[i];
          if (std::isinf(exact[i])) ASSERT_EQ(found[i], exact[i]) << x[i];
        } else {
          ASSERT_LE(std::abs(found[i] - exact[i]), slack + 2e-6 * std::abs(exact[i])) << x[i];
        }
      }
    }
}

// As PyTorch's: where a NaN went in, a loss cannot look right, and its gradient does not stop.
TEST(Activations, TheGradientOfReluPassesWhereItsArgumentIsNotANumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Registry* registry : {&cpu_registry(), &reference_registry()})
    EXPECT_EQ(run(*registry, {"relu", ""}, true, {nan, 0.0f, -0.0f, 1e-45f, -1e-45f, -nan}),
              (std::vector<float>{1, 0, 0, 1, 0, 1}));
}

}  // namespace
}  // namespace cairn::kernels
