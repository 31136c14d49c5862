// The tests that follow `is`.
#include <algorithm>

#include "runtime/data/template/characters.h"
#include "runtime/data/template/run.h"

namespace cairn::templates {
namespace {

using Check = bool (*)(Run& run, const Value& value, Given& given);

template <Check kCheck>
Value checked(Run& run, const Value& value, Given& given) {
  return Value::boolean(kCheck(run, value, given));
}

template <Kind... kKinds>
bool of_kind(Run&, const Value& value, Given&) {
  return (value.is(kKinds) || ...);
}

bool rest_is(Run& run, const Value& value, const Value& by, int64_t wanted) {
  return equal(arithmetic(run, "%", value, by), Value::integer(wanted));
}
bool odd(Run& run, const Value& value, Given&) { return rest_is(run, value, Value::integer(2), 1); }
bool even(Run& run, const Value& value, Given&) { return rest_is(run, value, Value::integer(2), 0); }
bool divisible(Run& run, const Value& value, Given& given) { return rest_is(run, value, given[0], 0); }
bool defined(Run&, const Value& value, Given&) { return !value.undefined(); }
bool truth(Run&, const Value& value, Given&) { return value.is(Kind::kBool) && value.truth(); }
bool falsehood(Run&, const Value& value, Given&) { return value.is(Kind::kBool) && !value.truth(); }
bool sequence(Run&, const Value& value, Given&) {
  return value.undefined() || value.is_text() || value.is(Kind::kList) || value.is(Kind::kTuple) ||
         value.is(Kind::kDict) || value.is(Kind::kRange);
}
bool iterable(Run& run, const Value& value, Given& given) {
  return sequence(run, value, given) || value.is(Kind::kView) || value.is(Kind::kIterator) ||
         value.is(Kind::kLoop);
}
bool callable(Run&, const Value& value, Given&) {
  return value.is(Kind::kFunction) || value.is(Kind::kLoop) || value.undefined();
}
bool same(Run&, const Value& value, Given& given) {
  if (value.kind() != given[0].kind()) return false;
  if (value.is(Kind::kInt))
    return value.integer() == given[0].integer() && value.integer() >= -5 && value.integer() <= 256;
  return value.object() != nullptr ? value.object() == given[0].object() : equal(value, given[0]);
}
bool escaped(Run&, const Value& value, Given&) { return value.safe(); }
bool in_order(Run& run, const Value& a, const Value& b, bool less, bool same) {
  const int order = run.order(a, b);
  return order != 2 && (order == 0 ? same : (order < 0) == less);
}
// str(value).islower() and isupper().
bool all_cased(const Value& value, bool (*wanted)(char32_t)) {
  bool any = false;
  for (const char32_t c : runes_of(printed(value))) {
    if (!is_cased(c)) continue;
    if (!wanted(c)) return false;
    any = true;
  }
  return any;
}
bool lower(Run&, const Value& value, Given&) { return all_cased(value, is_lower); }
bool upper(Run&, const Value& value, Given&) { return all_cased(value, is_upper); }
bool contained(Run& run, const Value& value, Given& given) { return run.contains(given[0], value); }
bool same_value(Run& run, const Value& a, Given& given) { return run.equals(a, given[0]); }
bool other_value(Run& run, const Value& a, Given& given) { return !run.equals(a, given[0]); }
bool greater(Run& run, const Value& a, Given& given) { return in_order(run, a, given[0], false, false); }
bool less(Run& run, const Value& a, Given& given) { return in_order(run, a, given[0], true, false); }
bool at_least(Run& run, const Value& a, Given& given) { return in_order(run, a, given[0], false, true); }
bool at_most(Run& run, const Value& a, Given& given) { return in_order(run, a, given[0], true, true); }
bool is_filter(Run&, const Value& value, Given&) {
  return value.is_text() && find_filter(value.text()) != nullptr;
}
bool is_test(Run&, const Value& value, Given&) {
  return value.is_text() && find_test(value.text()) != nullptr;
}

constexpr Row kTests[] = {
    {"odd", "", checked<odd>},
    {"even", "", checked<even>},
    {"divisibleby", "num!", checked<divisible>},
    {"defined", "", checked<defined>},
    {"undefined", "", checked<of_kind<Kind::kUndefined>>},
    {"filter", "", checked<is_filter>},
    {"test", "", checked<is_test>},
    {"none", "", checked<of_kind<Kind::kNone>>},
    {"boolean", "", checked<of_kind<Kind::kBool>>},
    {"false", "", checked<falsehood>},
    {"true", "", checked<truth>},
    {"integer", "", checked<of_kind<Kind::kInt>>},
    {"float", "", checked<of_kind<Kind::kFloat>>},
    {"lower", "", checked<lower>},
    {"upper", "", checked<upper>},
    {"string", "", checked<of_kind<Kind::kText>>},
    {"mapping", "", checked<of_kind<Kind::kDict>>},
    {"number", "", checked<of_kind<Kind::kBool, Kind::kInt, Kind::kFloat>>},
    {"sequence", "", checked<sequence>},
    {"iterable", "", checked<iterable>},
    {"callable", "", checked<callable>},
    {"sameas", "other!", checked<same>},
    {"escaped", "", checked<escaped>},
    {"in", "seq!", checked<contained>},
    {"==", "b!", checked<same_value>},
    {"eq", "b!", checked<same_value>},
    {"equalto", "b!", checked<same_value>},
    {"!=", "b!", checked<other_value>},
    {"ne", "b!", checked<other_value>},
    {">", "b!", checked<greater>},
    {"gt", "b!", checked<greater>},
    {"greaterthan", "b!", checked<greater>},
    {">=", "b!", checked<at_least>},
    {"ge", "b!", checked<at_least>},
    {"<", "b!", checked<less>},
    {"lt", "b!", checked<less>},
    {"lessthan", "b!", checked<less>},
    {"<=", "b!", checked<at_most>},
    {"le", "b!", checked<at_most>},
};

}  // namespace

const Row* find_test(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kTests), std::end(kTests), [&](const Row& row) { return row.name == name; });
  return found == std::end(kTests) ? nullptr : found;
}

}  // namespace cairn::templates
