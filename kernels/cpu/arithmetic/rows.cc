// Rows that are functions of several operands, element by element, and repeat operands where shapes broadcast. Operands that are
// not float32, or are repeated, are read in strips that fit the cache.
#include "kernels/cpu/rows.h"

#include <algorithm>

#include "kernels/cpu/arithmetic/functions.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/support.h"

namespace cairn::kernels::cpu {
namespace {

constexpr int64_t kStrip = 512;

struct Formula : ArithmeticRow {
  Arithmetic function;
};
constexpr double kInfinity = ArithmeticRow::kInfinity;
constexpr Formula kFormulas[] = {
#define ARITHMETIC(op, operands, ...) {{#op, operands __VA_OPT__(, ) __VA_ARGS__}, Arithmetic::k_##op},
#include "runtime/base/arithmetic.def"
};

// What a strip reads and writes: `step` 0 repeats one number.
struct Operand {
  DType type;
  int64_t bytes, step;
};

class Strips {
 public:
  Strips(const Formula& row, const Signature& s)
      : function_(row.function),
        m_{static_cast<float>(row.p.in(s.attrs)), static_cast<float>(row.q.in(s.attrs))},
        shape_(make_broadcast(s.out[0].shape, s.in)),
        operands_(row.operands),
        type_(s.out[0].dtype) {
    for (int o = 0; o < operands_; ++o) {
      const DType type = s.in[static_cast<size_t>(o)].dtype;
      in_[o] = {type, dtype_bytes(type), shape_.strides[o][shape_.rank - 1]};
    }
  }

  // Elements [begin, end) of y.
  void run(const Call& call, int64_t begin, int64_t end) const {
    const int64_t row = shape_.sizes[shape_.rank - 1];
    while (begin < end) {
      const int64_t n = std::min({end - begin, row - begin % row, kStrip});
      strip(call, begin, n);
      begin += n;
    }
  }

 private:
  void strip(const Call& call, int64_t at, int64_t n) const {
    float space[kMostOperands + 1][kStrip];
    const float* x[kMostOperands] = {};
    for (int o = 0; o < operands_; ++o) {
      const Operand& in = in_[o];
      const char* from = input<const char>(call, static_cast<size_t>(o)) + place(shape_, o, at) * in.bytes;
      x[o] = space[o];
      if (in.type == DType::kF32 && in.step == 1) {
        x[o] = reinterpret_cast<const float*>(from);
        continue;
      }
      convert(in.type, DType::kF32, false, from, space[o], in.step == 1 ? n : 1);
      if (in.step == 0) std::fill(space[o] + 1, space[o] + n, space[o][0]);
    }
    char* to = output<char>(call, 0) + at * dtype_bytes(type_);
    float* y = type_ == DType::kF32 ? reinterpret_cast<float*>(to) : space[kMostOperands];
    calculate(function_, x, y, n, m_);
    if (type_ != DType::kF32) convert(DType::kF32, type_, false, y, to, n);
  }

  Arithmetic function_;
  Parameters m_;
  Broadcast shape_;
  int operands_;
  DType type_;
  Operand in_[kMostOperands] = {};
};

std::unique_ptr<Kernel> make_arithmetic(const Signature& s, std::string_view op) {
  const Formula& row =
      *std::find_if(std::begin(kFormulas), std::end(kFormulas), [&](const Formula& r) { return r.op == op; });
  if (!fast_float(s.out[0])) return nullptr;
  for (const TensorDesc& in : s.in)
    if (!fast_float(in)) return nullptr;
  const int64_t count = s.out[0].shape.elements();
  return make_kernel([strips = Strips(row, s), count](const Call& call) {
    parallel_for(count, kGrain, [&](int64_t b, int64_t e, int) { strips.run(call, b, e); });
  });
}

}  // namespace

#define ARITHMETIC(op, ...) \
  std::unique_ptr<Kernel> make_##op##_broadcast(const Signature& s) { return make_arithmetic(s, #op); }
#include "runtime/base/arithmetic.def"

}  // namespace cairn::kernels::cpu
