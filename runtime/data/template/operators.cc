// Arithmetic with Python's rules.
#include <cmath>
#include <limits>

#include "runtime/data/template/run.h"

namespace cairn::templates {
namespace {

[[noreturn]] void too_large() { fail(Code::kUnsupported, "a number is beyond 64 bits"); }

[[noreturn]] void no_operation(std::string_view op, const Value& a, const Value& b) {
  for (const Value* value : {&a, &b})
    if (value->undefined()) wrong(value->text());
  wrong("'", op, "' is not possible between values of the types ", type_name(a), " and ", type_name(b));
}

Value whole_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) wrong("zero cannot be raised to a negative power");
    return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t made = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(made, base, &made)) too_large();
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) {
      too_large();
    }
  }
  return Value::integer(made);
}

Value of_whole(std::string_view op, int64_t a, int64_t b) {
  int64_t made = 0;
  if (op == "**") return whole_power(a, b);
  if (op == "+" || op == "-" || op == "*") {
    const bool over = op == "+"   ? __builtin_add_overflow(a, b, &made)
                      : op == "-" ? __builtin_sub_overflow(a, b, &made)
                                  : __builtin_mul_overflow(a, b, &made);
    if (over) too_large();
    return Value::integer(made);
  }
  if (b == 0) wrong("division by zero");
  if (op == "/") return Value::real(static_cast<double>(a) / static_cast<double>(b));
  if (b == -1) {
    if (a == std::numeric_limits<int64_t>::min() && op == "//") too_large();
    return Value::integer(op == "//" ? -a : 0);
  }
  const int64_t quotient = a / b, rest = a % b;
  const bool below = rest != 0 && (rest < 0) != (b < 0);
  return Value::integer(op == "//" ? quotient - (below ? 1 : 0) : rest + (below ? b : 0));
}

Value of_real(std::string_view op, double a, double b) {
  if (op == "+") return Value::real(a + b);
  if (op == "-") return Value::real(a - b);
  if (op == "*") return Value::real(a * b);
  if (op == "**") {
    if (a == 0 && b < 0) wrong("zero cannot be raised to a negative power");
    if (a < 0 && std::isfinite(b) && b != std::floor(b))
      fail(Code::kUnsupported, "a power is a complex number");
    const double made = std::pow(a, b);
    if (std::isinf(made) && std::isfinite(a) && std::isfinite(b)) wrong("a power is too large");
    return Value::real(made);
  }
  if (b == 0) wrong("division by zero");
  if (op == "/") return Value::real(a / b);
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0) {
    if ((b < 0) != (rest < 0)) {
      rest += b;
      quotient -= 1;
    }
  } else {
    rest = std::copysign(0.0, b);
  }
  if (op == "%") return Value::real(rest);
  if (quotient == 0) return Value::real(std::copysign(0.0, a / b));
  const double floored = std::floor(quotient);
  return Value::real(quotient - floored > 0.5 ? floored + 1 : floored);
}

Value added(Run& run, const Value& a, const Value& b) {
  if (a.is_text() && b.is_text()) {
    const bool safe = a.safe() || b.safe();
    const auto part = [&](const Value& v) { return safe && !v.safe() ? html_escaped(v.text()) : v.text(); };
    return run.text(safe ? part(a) + part(b) : a.text() + b.text(), safe);
  }
  const bool lists = a.kind() == b.kind() && (a.is(Kind::kList) || a.is(Kind::kTuple));
  if (!lists) no_operation("+", a, b);
  std::vector<Value> all = a.items();
  all.insert(all.end(), b.items().begin(), b.items().end());
  run.meter.step(all.size() / 8);
  return a.is(Kind::kList) ? run.list(std::move(all)) : run.tuple(std::move(all));
}

Value repeated(Run& run, const Value& what, int64_t count) {
  count = std::max<int64_t>(count, 0);
  const uint64_t size = what.is_text() ? what.text().size() : what.items().size() * sizeof(Value);
  require(size == 0 || static_cast<uint64_t>(count) <= Meter::kMostBytes / size, Code::kUnsupported,
          "a value of ", size, " bytes is repeated ", count, " times");
  if (size == 0) count = 0;
  if (what.is_text()) {
    std::string text;
    text.reserve(size * static_cast<uint64_t>(count));
    for (int64_t i = 0; i < count; ++i) text += what.text();
    run.meter.step(static_cast<uint64_t>(count));
    return run.text(std::move(text), what.safe());
  }
  std::vector<Value> all;
  run.meter.step(static_cast<uint64_t>(count) * what.items().size());
  for (int64_t i = 0; i < count; ++i) all.insert(all.end(), what.items().begin(), what.items().end());
  return what.is(Kind::kList) ? run.list(std::move(all)) : run.tuple(std::move(all));
}

bool repeatable(const Value& value) {
  return value.is_text() || value.is(Kind::kList) || value.is(Kind::kTuple);
}

}  // namespace

Value arithmetic(Run& run, std::string_view op, const Value& a, const Value& b) {
  if (op == "%" && a.is_text()) return percent(run, a, b);
  if (a.number() && b.number())
    return a.whole() && b.whole() ? of_whole(op, a.integer(), b.integer()) : of_real(op, a.real(), b.real());
  if (op == "+") return added(run, a, b);
  if (op == "*" && repeatable(a) && b.whole()) return repeated(run, a, b.integer());
  if (op == "*" && repeatable(b) && a.whole()) return repeated(run, b, a.integer());
  no_operation(op, a, b);
}

Value negated(const Value& value, bool minus) {
  if (value.undefined()) wrong(value.text());
  if (!value.number()) wrong("a value of the type ", type_name(value), " has no sign");
  if (!value.whole()) return Value::real(minus ? -value.real() : value.real());
  return minus ? of_whole("-", 0, value.integer()) : Value::integer(value.integer());
}

}  // namespace cairn::templates
