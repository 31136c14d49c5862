#include "runtime/data/template/syntax/expressions.h"

namespace cairn::templates {

Value evaluated(Run& run, const Expression& expression) {
  const Run::Deeper deeper(run, expression.line);
  return expression.value(run);
}

Arguments CallArguments::values(Run& run) const {
  Arguments made;
  for (const Expr& each : positional) made.positional.push_back(evaluated(run, *each));
  for (const auto& [name, each] : named) made.named.emplace_back(name, evaluated(run, *each));
  if (list != nullptr)
    for (Value& each : run.each(evaluated(run, *list))) made.positional.push_back(std::move(each));
  if (map != nullptr) {
    const Value pairs = evaluated(run, *map);
    if (!pairs.is(Kind::kDict)) wrong("argument after ** is no mapping but of the type ", type_name(pairs));
    for (const auto& [key, each] : pairs.dict().pairs) {
      if (!key.is_text()) wrong("argument after **: its keys must be strings");
      for (const auto& [name, other] : made.named)
        if (name == key.text()) wrong("the argument '", name, "' is given twice");
      made.named.emplace_back(key.text(), each);
    }
  }
  return made;
}

Value Sequence::value(Run& run) const {
  if (display == Display::kConcat) {
    std::string text;
    for (const Expr& part : parts) {
      text += printed(evaluated(run, *part));
      run.meter.step();
    }
    return run.text(std::move(text));
  }
  if (display == Display::kDict) {
    Pairs pairs;
    for (size_t i = 0; i + 1 < parts.size(); i += 2) {
      Value key = evaluated(run, *parts[i]);
      pairs.add(std::move(key), evaluated(run, *parts[i + 1]));
    }
    return run.dict(pairs.take());
  }
  std::vector<Value> values;
  for (const Expr& part : parts) values.push_back(evaluated(run, *part));
  return display == Display::kList ? run.list(std::move(values)) : run.tuple(std::move(values));
}

Value Element::value(Run& run) const {
  const Value object = evaluated(run, *of);
  return run.element(object, evaluated(run, *index));
}

Value Slice::value(Run& run) const {
  const Value object = evaluated(run, *of);
  Value given[3];
  for (int i = 0; i < 3; ++i) given[i] = parts[i] == nullptr ? Value::none() : evaluated(run, *parts[i]);
  return run.slice(object, given[0], given[1], given[2]);
}

Value Call::called(Run& run, const Value* caller) const {
  const Value function = evaluated(run, *callee);
  Arguments given = arguments.values(run);
  if (caller != nullptr) given.named.emplace_back("caller", *caller);
  run.line = line;
  return run.call(function, std::move(given));
}

Value Filter::of(Run& run, const Value* block) const {
  const Value given = input == nullptr ? *block
                      : block != nullptr && dynamic_cast<const Filter*>(input.get()) != nullptr
                          ? static_cast<const Filter*>(input.get())->of(run, block)
                          : evaluated(run, *input);
  Arguments with = arguments.values(run);
  run.line = line;
  return run.filtered(name, given, std::move(with));
}

Value Test::value(Run& run) const {
  const Value given = evaluated(run, *input);
  Arguments with = arguments.values(run);
  run.line = line;
  return Value::boolean(run.tested(name, given, std::move(with)));
}

Value Operation::value(Run& run) const {
  Value a = evaluated(run, *left);
  if (sign == "and") return a.truth() ? evaluated(run, *right) : a;
  if (sign == "or") return a.truth() ? a : evaluated(run, *right);
  const Value b = evaluated(run, *right);
  run.line = line;
  return arithmetic(run, sign, a, b);
}

Value Unary::value(Run& run) const {
  const Value given = evaluated(run, *operand);
  return sign == '!' ? Value::boolean(!given.truth()) : negated(given, sign == '-');
}

namespace {

bool holds(Run& run, const std::string& sign, const Value& a, const Value& b) {
  if (sign == "in") return run.contains(b, a);
  if (sign == "not in") return !run.contains(b, a);
  if (sign == "==") return run.equals(a, b);
  if (sign == "!=") return !run.equals(a, b);
  const int order = run.order(a, b);
  if (order == 2) return false;  // NaN
  return sign == "<" ? order < 0 : sign == "<=" ? order <= 0 : sign == ">" ? order > 0 : order >= 0;
}

}  // namespace

Value Comparison::value(Run& run) const {
  Value left = evaluated(run, *first);
  for (const auto& [sign, expression] : rest) {
    Value right = evaluated(run, *expression);
    run.line = line;
    if (!holds(run, sign, left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Choice::value(Run& run) const {
  if (evaluated(run, *condition).truth()) return evaluated(run, *then);
  if (otherwise != nullptr) return evaluated(run, *otherwise);
  return run.undefined("the inline if-expression evaluated to false and has no else");
}

}  // namespace cairn::templates
