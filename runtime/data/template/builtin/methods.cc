// Methods of Python's dict, list and tuple, of loops, and where those of a value are.
#include "runtime/data/template/builtin/methods.h"

#include <algorithm>

namespace cairn::templates {
namespace {

Value keys(Run& run, const Value& self, Given&) {
  std::vector<Value> all;
  for (const Pair& pair : self.dict().pairs) all.push_back(pair.first);
  return run.view(std::move(all), "dict_keys");
}
Value values(Run& run, const Value& self, Given&) {
  std::vector<Value> all;
  for (const Pair& pair : self.dict().pairs) all.push_back(pair.second);
  return run.view(std::move(all), "dict_values");
}
Value items(Run& run, const Value& self, Given&) {
  return run.view(pairs_as_tuples(run, self.dict()), "dict_items");
}
Value get(Run&, const Value& self, Given& given) {
  if (!hashable(given[0])) wrong("a value of the type ", type_name(given[0]), " is no key");
  const Value* found = self.dict().find(given[0]);
  return found != nullptr ? *found : given[1].missing() ? Value::none() : given[1];
}
Value same(Run&, const Value& self, Given&) { return self; }

constexpr Row kDictMethods[] = {
    {"copy", "", same}, {"get", "key! default", get}, {"items", "", items},
    {"keys", "", keys}, {"values", "", values},
};

Value index_of(Run& run, const Value& self, Given& given) {
  const auto& all = self.items();
  for (size_t i = 0; i < all.size(); ++i)
    if (run.equals(all[i], given[0])) return Value::integer(static_cast<int64_t>(i));
  wrong("index(): the value is not in the list");
}
Value count_of(Run& run, const Value& self, Given& given) {
  int64_t found = 0;
  for (const Value& each : self.items()) found += run.equals(each, given[0]);
  return Value::integer(found);
}
constexpr Row kListMethods[] = {
    {"count", "value!", count_of}, {"index", "value!", index_of}, {"copy", "", same}};

Value cycle(Run&, const Value& self, Given& given) {
  if (given.positional.empty()) wrong("loop.cycle() needs values");
  const auto at = static_cast<size_t>(static_cast<const Loop*>(self.object())->index0);
  return given.positional[at % given.positional.size()];
}
Value changed(Run& run, const Value& self, Given& given) {
  auto& loop = *static_cast<Loop*>(self.object());
  Value now = run.tuple(std::move(given.positional));
  if (!loop.changed_value.missing() && run.equals(loop.changed_value, now)) return Value::boolean(false);
  loop.changed_value = std::move(now);
  return Value::boolean(true);
}
constexpr Row kLoopMethods[] = {{"cycle", "*", cycle}, {"changed", "*", changed}};

Value is_integer(Run&, const Value& self, Given&) {
  return Value::boolean(self.real() == static_cast<double>(static_cast<int64_t>(self.real())));
}
constexpr Row kFloatMethods[] = {{"is_integer", "", is_integer}};

const Row* row_of(const Row* rows, size_t count, std::string_view name) {
  const Row* found = std::find_if(rows, rows + count, [&](const Row& row) { return row.name == name; });
  return found == rows + count ? nullptr : found;
}

}  // namespace

std::vector<Value> pairs_as_tuples(Run& run, const Dict& dict) {
  std::vector<Value> all;
  for (const auto& [key, value] : dict.pairs) all.push_back(run.tuple({key, value}));
  return all;
}

const Row* find_method(const Value& self, std::string_view name) {
  switch (self.kind()) {
    case Kind::kText:
      return row_of(kTextMethods, kTextMethodCount, name);
    case Kind::kDict:
      return row_of(kDictMethods, std::size(kDictMethods), name);
    case Kind::kList:
      return row_of(kListMethods, 3, name);
    case Kind::kTuple:
    case Kind::kRange:
      return row_of(kListMethods, 2, name);
    case Kind::kLoop:
      return row_of(kLoopMethods, std::size(kLoopMethods), name);
    case Kind::kFloat:
      return row_of(kFloatMethods, std::size(kFloatMethods), name);
    default:
      return nullptr;
  }
}

bool changes(const Value& self, std::string_view method) {
  constexpr std::string_view kOfDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
  constexpr std::string_view kOfList[] = {"append", "clear",  "extend",  "insert",
                                          "pop",    "remove", "reverse", "sort"};
  const auto among = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), method) != std::end(names);
  };
  return self.is(Kind::kDict) ? among(kOfDict) : self.is(Kind::kList) && among(kOfList);
}

}  // namespace cairn::templates
