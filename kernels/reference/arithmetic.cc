// The ops of arithmetic.def: element by element, operands repeated where shapes broadcast.
#include "kernels/reference/common.h"
#include "kernels/reference/rows.h"
#include "runtime/base/broadcast.h"

namespace cairn::kernels::reference {
namespace {

struct Parameters {
  double p, q;
};

// Functions of operands a, b and c, of which those that there are count.
#define FUNCTION(name, value) \
  double name##_of(double a, double b, double c, const Parameters& m) { return value; }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
FUNCTION(add, a + b)
FUNCTION(sub, a - b)
FUNCTION(mul, a* b)
FUNCTION(div, a / b)
FUNCTION(div_grad, -(a* b) / c)
// If a or b is NaN, so is the result.
FUNCTION(minimum, std::isnan(a) || a < b ? a : b)
FUNCTION(maximum, std::isnan(a) || a > b ? a : b)
FUNCTION(greater_grad, b > c ? a : b == c ? a / 2 : 0)
FUNCTION(less, a < b ? 1 : 0)
FUNCTION(less_equal, a <= b ? 1 : 0)
FUNCTION(greater, a > b ? 1 : 0)
FUNCTION(greater_equal, a >= b ? 1 : 0)
FUNCTION(equal, a == b ? 1 : 0)
FUNCTION(not_equal, a != b ? 1 : 0)
FUNCTION(where, a != 0 ? b : c)
FUNCTION(where_grad, (b != 0) == (m.p == 0) ? a : 0)
FUNCTION(clamp, a<m.p ? m.p : a> m.q ? m.q : a)
FUNCTION(clamp_grad, b<m.p || b> m.q ? 0 : a)
FUNCTION(softcap, m.p* std::tanh(a / m.p))
FUNCTION(softcap_grad, a*(1 - std::tanh(b / m.p) * std::tanh(b / m.p)))
FUNCTION(pow, std::pow(a, m.p))
FUNCTION(pow_grad, m.p == 0 ? 0 : a * m.p * std::pow(b, m.p - 1))
#pragma GCC diagnostic pop
#undef FUNCTION

struct Formula : ArithmeticRow {
  double (*function)(double, double, double, const Parameters&);
};
constexpr double kInfinity = ArithmeticRow::kInfinity;
constexpr Formula kFormulas[] = {
#define ARITHMETIC(op, operands, ...) {{#op, operands __VA_OPT__(, ) __VA_ARGS__}, op##_of},
#include "runtime/base/arithmetic.def"
};

class Arithmetic : public Kernel {
 public:
  Arithmetic(const Formula& row, const Signature& s)
      : row_(row), shape_(make_broadcast(s.out[0].shape, s.in)), m_{row.p.in(s.attrs), row.q.in(s.attrs)} {}

  void run(const Call& c) const override {
    std::array<int64_t, kMaxRank> index{};
    const int64_t n = c.out[0].desc.shape.elements();
    for (int64_t e = 0; e < n; ++e) {
      double x[kMostOperands] = {};
      for (size_t o = 0; o < c.in.size(); ++o) {
        int64_t place = 0;
        for (int i = 0; i < shape_.rank; ++i) place += index[static_cast<size_t>(i)] * shape_.strides[o][i];
        x[o] = at(c.in[o], place);
      }
      set(c.out[0], e, row_.function(x[0], x[1], x[2], m_));
      for (int i = shape_.rank - 1; i >= 0; --i) {
        if (++index[static_cast<size_t>(i)] < shape_.sizes[i]) break;
        index[static_cast<size_t>(i)] = 0;
      }
    }
  }

 private:
  const Formula& row_;
  Broadcast shape_;
  Parameters m_;
};

std::unique_ptr<Kernel> make_arithmetic(const Signature& s) {
  DType t = DType::kF32;
  for (const Formula& row : kFormulas)
    if (row.op == s.op &&
        fits(s, std::string_view("FFF").substr(0, static_cast<size_t>(row.operands)), "F", &t))
      return std::make_unique<Arithmetic>(row, s);
  return nullptr;
}

}  // namespace

#define ARITHMETIC(op, ...) \
  std::unique_ptr<Kernel> make_##op(const Signature& s) { return make_arithmetic(s); }
#include "runtime/base/arithmetic.def"

}  // namespace cairn::kernels::reference
