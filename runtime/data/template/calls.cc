// Arguments by parameters, macros, and the functions that every template has.
#include <algorithm>
#include <ctime>

#include "runtime/data/template/syntax/nodes.h"

namespace cairn::templates {
namespace {

struct Parameter {
  std::string_view name;
  bool required;
};

std::vector<Parameter> parameters_of(std::string_view text, bool& rest, bool& names) {
  std::vector<Parameter> found;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word == "*")
      rest = true;
    else if (word == "**")
      names = true;
    else {
      const bool required = word.ends_with('!');
      if (required) word.remove_suffix(1);
      found.push_back({word, required});
    }
  }
  return found;
}

}  // namespace

Given bound(const Row& row, Arguments arguments) {
  bool rest = false, names = false;
  const std::vector<Parameter> parameters = parameters_of(row.parameters, rest, names);
  Given given;
  given.values.resize(parameters.size());
  auto& positional = arguments.positional;
  const size_t direct = std::min(positional.size(), parameters.size());
  std::move(positional.begin(), positional.begin() + static_cast<ptrdiff_t>(direct), given.values.begin());
  positional.erase(positional.begin(), positional.begin() + static_cast<ptrdiff_t>(direct));
  if (!positional.empty() && !rest)
    wrong("'", row.name, "' takes at most ", parameters.size(), " arguments, ", direct + positional.size(),
          " are given");
  given.positional = std::move(positional);
  for (auto& [name, value] : arguments.named) {
    const auto at = std::find_if(parameters.begin(), parameters.end(),
                                 [&key = name](const Parameter& p) { return p.name == key; });
    if (at == parameters.end()) {
      if (!names) wrong("'", row.name, "' takes no argument '", name, "'");
      given.named.emplace_back(std::move(name), std::move(value));
      continue;
    }
    Value& place = given.values[static_cast<size_t>(at - parameters.begin())];
    if (!place.missing()) wrong("'", row.name, "': the argument '", name, "' is given twice");
    place = std::move(value);
  }
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].required && given.values[i].missing())
      wrong("'", row.name, "' needs the argument '", parameters[i].name, "'");
  return given;
}

int64_t Given::integer(size_t index, int64_t otherwise) const {
  const Value& value = values[index];
  if (value.missing()) return otherwise;
  if (value.undefined()) wrong(value.text());
  if (!value.whole()) wrong("an argument must be a whole number, not of the type ", type_name(value));
  return value.integer();
}

namespace {

struct MacroFunction : Function {
  MacroFunction(Run& run, const MacroBody& what) : Function(&run.meter, 64), macro(what), scope(run.scope) {}
  Value call(Run& run, Arguments arguments) override;
  std::string shown() const override { return cat("<Macro '", macro.name, "'>"); }

  const MacroBody& macro;
  std::weak_ptr<Scope> scope;  // it holds this macro
};

Value taken(std::vector<std::pair<std::string, Value>>& named, std::string_view name) {
  for (auto at = named.begin(); at != named.end(); ++at)
    if (at->first == name) {
      Value value = std::move(at->second);
      named.erase(at);
      return value;
    }
  return Value();
}

Value MacroFunction::call(Run& run, Arguments arguments) {
  const std::shared_ptr<Scope> outer = scope.lock();
  if (outer == nullptr)
    fail(Code::kUnsupported, "the macro '", macro.name, "' is called after the block that it stands in");
  const auto inside = std::make_shared<Scope>(outer);
  const auto& [names, defaults] = macro.parameters;
  auto& positional = arguments.positional;
  std::vector<Value> values(names.size());
  const size_t direct = std::min(names.size(), positional.size());
  std::move(positional.begin(), positional.begin() + static_cast<ptrdiff_t>(direct), values.begin());
  for (size_t i = direct; i < names.size(); ++i) values[i] = taken(arguments.named, run.name(names[i]));
  const bool own_caller = std::find(names.begin(), names.end(), macro.caller) != names.end();
  if (macro.caller >= 0 && !own_caller) {
    Value caller = taken(arguments.named, "caller");
    inside->set(macro.caller,
                caller.none_or_missing() ? run.undefined("No caller defined") : std::move(caller));
  }
  if (macro.kwargs >= 0) {
    Pairs pairs;
    for (auto& [name, value] : arguments.named) pairs.add(run.text(name), value);
    inside->set(macro.kwargs, run.dict(pairs.take()));
  } else if (!arguments.named.empty()) {
    wrong("the macro '", macro.name, "' takes no argument '", arguments.named[0].first, "'");
  }
  positional.erase(positional.begin(), positional.begin() + static_cast<ptrdiff_t>(direct));
  if (macro.varargs >= 0) {
    inside->set(macro.varargs, run.tuple(std::move(positional)));
  } else if (!positional.empty()) {
    wrong("the macro '", macro.name, "' takes at most ", names.size(), " arguments");
  }
  return run.text(run.captured([&, &names = names, &defaults = defaults] {
    const InScope within(run, inside);
    for (size_t i = 0; i < names.size(); ++i) {
      if (values[i].missing()) {
        const size_t first = names.size() - defaults.size();
        values[i] = i >= first ? evaluated(run, *defaults[i - first])
                               : run.undefined(cat("parameter '", run.name(names[i]), "' was not provided"));
      }
      inside->set(names[i], std::move(values[i]));
    }
    work(run, macro.body);
  }));
}

constexpr int64_t kMostRange = 100000;  // of the sandbox

Value range(Run& run, const Value&, Given& given) {
  const bool only_end = given[1].missing();
  const int64_t begin = only_end ? 0 : given.integer(0, 0), end = given.integer(only_end ? 0 : 1, 0),
                step = given.integer(2, 1);
  if (step == 0) wrong("range(): the step must not be zero");
  std::vector<Value> values;
  for (int64_t at = begin; step > 0 ? at < end : at > end;) {
    if (values.size() >= static_cast<size_t>(kMostRange))
      wrong("range() has more than ", kMostRange, " numbers");
    values.push_back(Value::integer(at));
    run.meter.step();
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return run.view(std::move(values), "range");
}

std::vector<Pair> pairs_of(Run& run, Given& given) {
  Pairs pairs;
  if (given.positional.size() > 1) wrong("a dict is made of one value and of names");
  for (const Value& from : given.positional) {
    if (from.is(Kind::kDict)) {
      for (const auto& [key, value] : from.dict().pairs) pairs.add(key, value);
    } else {
      for (const Value& each : run.each(from)) {
        const std::vector<Value> two = run.each(each);
        if (two.size() != 2) wrong("a dict is made of pairs, not of ", two.size(), " values");
        pairs.add(two[0], two[1]);
      }
    }
  }
  for (auto& [name, value] : given.named) pairs.add(run.text(name), value);
  return pairs.take();
}

Value make_namespace(Run& run, const Value&, Given& given) {
  const Value made = run.make_namespace();
  for (auto& [key, value] : pairs_of(run, given)) {
    if (!key.is_text()) wrong("a namespace's attributes have names");
    if (key.text().starts_with('_'))
      wrong("an attribute of a namespace must not begin with '_': '", key.text(), "'");
    static_cast<Namespace*>(made.object())->set(key.text(), value);
  }
  return made;
}

Value raise(Run&, const Value&, Given& given) { wrong(printed(given[0])); }

Value now(Run& run, const Value&, Given& given) {
  if (!given[0].is_text()) wrong("strftime_now() takes a format");
  const time_t seconds = time(nullptr);
  tm parts{};
  localtime_r(&seconds, &parts);
  char text[512];
  const size_t size = strftime(text, sizeof(text), given[0].text().c_str(), &parts);
  return run.text(std::string(text, size));
}

template <char... kName>
Value not_there(Run&, const Value&, Given&) {
  static constexpr char kText[] = {kName..., 0};
  fail(Code::kUnsupported, "the function '", kText, "' is not supported");
}

constexpr Row kFunctions[] = {
    {"range", "start! stop step", range},
    {"dict", "* **", [](Run& run, const Value&, Given& given) { return run.dict(pairs_of(run, given)); }},
    {"namespace", "* **", make_namespace},
    {"raise_exception", "message!", raise},
    {"strftime_now", "format!", now},
    {"cycler", "* **", not_there<'c', 'y', 'c', 'l', 'e', 'r'>},
    {"joiner", "* **", not_there<'j', 'o', 'i', 'n', 'e', 'r'>},
    {"lipsum", "* **", not_there<'l', 'i', 'p', 's', 'u', 'm'>},
};

}  // namespace

const Row* find_function(std::string_view name) {
  const auto* found = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                   [&](const Row& row) { return row.name == name; });
  return found == std::end(kFunctions) ? nullptr : found;
}

Value macro_value(Run& run, const MacroBody& macro) {
  return Value::of(Kind::kFunction, std::make_shared<MacroFunction>(run, macro));
}

}  // namespace cairn::templates
