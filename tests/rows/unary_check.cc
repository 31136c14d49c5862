// Does an elementwise op do what its row says, in every backend? Compiled by op_test.py with the kernels'
// sources as they are after its edits; OP is the op's name.
#include <cmath>
#include <cstdio>
#include <vector>

#include "kernels/cpu/rows.h"
#include "kernels/cuda/rows.h"
#include "kernels/reference/rows.h"

namespace {

using namespace cairn;
using kernels::Kernel;
using kernels::Signature;

constexpr int64_t kCount = 131;
constexpr double kStep = 1e-5;

double at(int64_t i) { return (static_cast<double>(i) - 65.25) / 12; }

// What the kernel makes of operands of type T.
template <class T>
std::vector<double> run(kernels::MakeKernel make, const char* op, DType type,
                        const std::vector<std::vector<double>>& operands) {
  const TensorDesc desc{type, {kCount}, 0};
  std::vector<std::vector<T>> data;
  std::vector<Tensor> in;
  const auto narrow = [](double v) {
    if constexpr (sizeof(T) == 2)
      return to_bf16(static_cast<float>(v));
    else
      return static_cast<T>(v);
  };
  for (const std::vector<double>& values : operands) {
    data.emplace_back();
    for (const double v : values) data.back().push_back(narrow(v));
  }
  for (std::vector<T>& values : data) in.push_back({desc, values.data()});
  const std::vector<TensorDesc> descs(in.size(), desc);
  const Attrs attrs;
  const auto kernel = make({op, descs, {&desc, 1}, ~0u, ~0u, &attrs, 1});
  std::vector<double> result;
  if (kernel == nullptr) return result;
  std::vector<T> y(kCount);
  const Tensor out{desc, y.data()};
  kernel->run({in, {&out, 1}});
  for (const T v : y) {
    if constexpr (sizeof(T) == 2)
      result.push_back(to_float(v));
    else
      result.push_back(v);
  }
  return result;
}

bool near(const char* what, const std::vector<double>& expected, const std::vector<double>& value,
          double bound) {
  if (value.size() != expected.size()) return std::printf("%s: no kernel takes the call\n", what), false;
  for (size_t i = 0; i < value.size(); ++i)
    if (!(std::fabs(value[i] - expected[i]) <= bound * (1 + std::fabs(expected[i]))))
      return std::printf("%s: at %g it is %g, not %g\n", what, at(static_cast<int64_t>(i)), value[i],
                         expected[i]),
             false;
  std::printf("%s: agrees\n", what);
  return true;
}

#define NAME_(x) #x
#define NAME(x) NAME_(x)
#define JOIN_(a, b, c) a##b##c
#define JOIN(a, b, c) JOIN_(a, b, c)
#define MAKE JOIN(make_, OP, )
#define MAKE_GRAD JOIN(make_, OP, _grad)

}  // namespace

int main() {
  std::vector<double> x, above, below, dy;
  for (int64_t i = 0; i < kCount; ++i) {
    // Numbers that bfloat16 holds.
    x.push_back(to_float(to_bf16(static_cast<float>(at(i)))));
    dy.push_back(to_float(to_bf16(static_cast<float>(1 + i % 7 * 0.25))));
    above.push_back(x.back() + kStep);
    below.push_back(x.back() - kStep);
  }
  namespace reference = kernels::reference;
  const std::vector<double> y = run<double>(reference::MAKE, NAME(OP), DType::kF64, {x});
  const std::vector<double> high = run<double>(reference::MAKE, NAME(OP), DType::kF64, {above});
  const std::vector<double> low = run<double>(reference::MAKE, NAME(OP), DType::kF64, {below});
  if (y.empty() || high.empty() || low.empty()) return std::printf("the reference takes no float64\n"), 1;
  std::vector<double> derivative;
  for (size_t i = 0; i < y.size(); ++i) derivative.push_back(dy[i] * (high[i] - low[i]) / (2 * kStep));
  const std::vector<double>& second = READS_Y ? y : x;
  bool good = near("reference, gradient", derivative,
                   run<double>(reference::MAKE_GRAD, NAME(OP), DType::kF64, {dy, second}), 1e-8);
  const auto backend = [&](const char* name, kernels::MakeKernel make, kernels::MakeKernel gradient) {
    std::printf("%s\n", name);
    good = near("  f32", y, run<float>(make, NAME(OP), DType::kF32, {x}), 2e-6) && good;
    good = near("  bf16", y, run<bf16>(make, NAME(OP), DType::kBF16, {x}), 8e-3) && good;
    good = near("  f32, gradient", derivative, run<float>(gradient, NAME(OP), DType::kF32, {dy, second}),
                2e-6) &&
           good;
    good = near("  bf16, gradient", derivative, run<bf16>(gradient, NAME(OP), DType::kBF16, {dy, second}),
                8e-3) &&
           good;
  };
  backend("reference", reference::MAKE, reference::MAKE_GRAD);
  backend("cpu", kernels::cpu::MAKE, kernels::cpu::MAKE_GRAD);
  backend("cuda", kernels::cuda::MAKE, kernels::cuda::MAKE_GRAD);
  return good ? 0 : 1;
}
