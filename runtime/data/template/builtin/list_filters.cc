// Filters of what can be gone through.
#include <algorithm>
#include <unordered_set>

#include "runtime/data/template/builtin/filters.h"
#include "runtime/data/template/builtin/methods.h"
#include "runtime/data/template/characters.h"

namespace cairn::templates {
namespace {

// "a.b.0": a path of names and numbers; a number is itself.
std::vector<Value> path_of(Run& run, const Value& attribute) {
  if (attribute.none_or_missing()) return {};
  if (!attribute.is_text()) return {attribute};
  std::vector<Value> parts;
  std::string_view rest = attribute.text();
  for (;;) {
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    parts.push_back(number ? Value::integer(parsed_integer(part, 10).value_or(0))
                           : run.text(std::string(part)));
    if (dot == std::string_view::npos) return parts;
    rest.remove_prefix(dot + 1);
  }
}

Value at_path(Run& run, Value item, const std::vector<Value>& path, const Value& otherwise) {
  for (const Value& part : path) {
    item = run.element(item, part);
    if (item.undefined() && !otherwise.none_or_missing()) item = otherwise;
  }
  return item;
}

Value without_case(Run& run, const Value& value) {
  return value.is_text() ? run.text(in_case(value.text(), Case::kLower), value.safe()) : value;
}

// What items are compared by: an attribute, letters' case put away unless it counts.
Value key_of(Run& run, const Value& item, const std::vector<Value>& path, bool case_counts,
             const Value& otherwise = Value()) {
  const Value key = at_path(run, item, path, otherwise);
  return case_counts ? key : without_case(run, key);
}

// Sorts by keys; equal ones stay in their order.
std::vector<Value> sorted(Run& run, const std::vector<Value>& items, std::vector<Value> keys, bool reversed) {
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const int way = reversed ? run.order(keys[b], keys[a]) : run.order(keys[a], keys[b]);
    return way < 0;
  });
  std::vector<Value> made;
  for (const size_t i : order) made.push_back(items[i]);
  return made;
}

Value sort(Run& run, const Value& value, Given& given) {
  const std::vector<Value> items = run.each(value);
  std::vector<std::vector<Value>> paths;
  if (given[2].is_text()) {
    std::string_view rest = given[2].text();
    for (;;) {
      const size_t comma = rest.find(',');
      paths.push_back(path_of(run, run.text(std::string(rest.substr(0, comma)))));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  } else {
    paths.push_back(path_of(run, given[2]));
  }
  std::vector<Value> keys;
  for (const Value& item : items) {
    std::vector<Value> key;
    for (const auto& path : paths) key.push_back(key_of(run, item, path, given.flag(1)));
    keys.push_back(run.list(std::move(key)));
  }
  return run.list(sorted(run, items, std::move(keys), given.flag(0)));
}

Value dictsort(Run& run, const Value& value, Given& given) {
  if (value.undefined()) wrong(value.text());
  if (!value.is(Kind::kDict)) wrong("dictsort: a value of the type ", type_name(value), " is no mapping");
  const std::string by = given[1].missing() ? "key" : printed(given[1]);
  if (by != "key" && by != "value") wrong("dictsort: it sorts by key or value, not by '", by, "'");
  const std::vector<Value> items = pairs_as_tuples(run, value.dict());
  std::vector<Value> keys;
  for (const Value& item : items)
    keys.push_back(key_of(run, item.items()[by == "key" ? 0 : 1], {}, given.flag(0)));
  return run.list(sorted(run, items, std::move(keys), given.flag(2)));
}

Value unique(Run& run, const Value& value, Given& given) {
  const std::vector<Value> path = path_of(run, given[1]);
  std::unordered_set<std::string> texts;
  std::vector<Value> others, made;
  for (const Value& item : run.each(value)) {
    const Value key = key_of(run, item, path, given.flag(0));
    if (!hashable(key)) wrong("unique: a value of the type ", type_name(key), " cannot be a key");
    const auto known = [&](const Value& other) { return run.equals(other, key); };
    const bool fresh =
        key.is_text() ? texts.insert(key.text()).second : std::none_of(others.begin(), others.end(), known);
    if (!fresh) continue;
    if (!key.is_text()) others.push_back(key);
    made.push_back(item);
  }
  return run.iterator(std::move(made));
}

template <bool kMost>
Value extreme(Run& run, const Value& value, Given& given) {
  const std::vector<Value> path = path_of(run, given[1]);
  Value best, best_key;
  for (const Value& item : run.each(value)) {
    const Value key = key_of(run, item, path, given.flag(0));
    if (!best_key.missing()) {
      const int way = kMost ? run.order(best_key, key) : run.order(key, best_key);
      if (way >= 0) continue;
    }
    best = item;
    best_key = key;
  }
  return best_key.missing() ? run.undefined("No aggregated item, sequence was empty.") : best;
}

Value groupby(Run& run, const Value& value, Given& given) {
  const std::vector<Value> path = path_of(run, given[0]);
  const std::vector<Value> items = run.each(value);
  std::vector<Value> keys;
  for (const Value& item : items) keys.push_back(key_of(run, item, path, given.flag(2), given[1]));
  std::vector<Value> groups, group;
  Value group_key;
  const auto flush = [&] {
    if (group.empty()) return;
    const Value name = at_path(run, group[0], path, given[1]);
    std::vector<Value> two{name, run.list(std::move(group))};
    groups.push_back(Value::of(Kind::kTuple, std::make_shared<Items>(&run.meter, std::move(two), "group")));
    group.clear();
  };
  for (const Value& item : sorted(run, items, std::move(keys), false)) {
    const Value key = key_of(run, item, path, given.flag(2), given[1]);
    if (group.empty() || !run.equals(key, group_key)) flush();
    group_key = key;
    group.push_back(item);
  }
  flush();
  return run.list(std::move(groups));
}

Value sum(Run& run, const Value& value, Given& given) {
  const std::vector<Value> path = path_of(run, given[0]);
  Value total = given[1].missing() ? Value::integer(0) : given[1];
  if (total.is_text()) wrong("sum: strings are joined, not summed");
  for (const Value& item : run.each(value))
    total = arithmetic(run, "+", total, at_path(run, item, path, Value()));
  return total;
}

Value join(Run& run, const Value& value, Given& given) {
  const std::vector<Value> path = path_of(run, given[1]);
  const std::string between = given[0].missing() ? "" : printed(given[0]);
  std::string made;
  bool first = true;
  for (const Value& item : run.each(value)) {
    if (!first) made += between;
    first = false;
    const Value part = at_path(run, item, path, Value());
    run.meter.step(weight_of(part));
    made += printed(part);
    require(made.size() <= Meter::kMostBytes, Code::kUnsupported, "join makes more than ", Meter::kMostBytes,
            " bytes");
  }
  return run.text(std::move(made));
}

Value first(Run& run, const Value& value, Given&) {
  if (value.is(Kind::kIterator)) {
    auto& items = *static_cast<Items*>(value.object());
    if (items.next < items.values.size()) return items.values[items.next++];
    return run.undefined("No first item, sequence was empty.");
  }
  const std::vector<Value> items = run.each(value);
  return items.empty() ? run.undefined("No first item, sequence was empty.") : items[0];
}

Value last(Run& run, const Value& value, Given&) {
  if (value.is(Kind::kIterator)) wrong("last: an iterator has no last item; make a list of it first");
  const std::vector<Value> items = run.each(value);
  return items.empty() ? run.undefined("No last item, sequence was empty.") : items.back();
}

Value reverse(Run& run, const Value& value, Given&) {
  if (value.is_text()) return run.slice(value, Value::none(), Value::none(), Value::integer(-1));
  std::vector<Value> items = run.each(value);
  std::reverse(items.begin(), items.end());
  return run.iterator(std::move(items), "list_reverseiterator");
}

Value length(Run& run, const Value& value, Given&) { return Value::integer(run.length(value)); }
Value list(Run& run, const Value& value, Given&) { return run.list(run.each(value)); }
Value items(Run& run, const Value& value, Given&) {
  if (value.undefined()) return run.iterator({});
  if (!value.is(Kind::kDict)) wrong("items: a value of the type ", type_name(value), " is no mapping");
  return run.iterator(pairs_as_tuples(run, value.dict()));
}

Value batch(Run& run, const Value& value, Given& given) {
  const int64_t count = given.integer(0, 0);
  std::vector<Value> made, row;
  for (const Value& item : run.each(value)) {
    if (static_cast<int64_t>(row.size()) == count) made.push_back(run.list(std::exchange(row, {})));
    row.push_back(item);
  }
  if (!row.empty()) {
    const int64_t missing =
        given[1].none_or_missing() ? 0 : std::max<int64_t>(count - static_cast<int64_t>(row.size()), 0);
    run.meter.step(static_cast<uint64_t>(missing));
    row.insert(row.end(), static_cast<size_t>(missing), given[1]);
    made.push_back(run.list(std::move(row)));
  }
  return run.iterator(std::move(made));
}

Value slices(Run& run, const Value& value, Given& given) {
  const std::vector<Value> items = run.each(value);
  const int64_t count = given.integer(0, 0), length = static_cast<int64_t>(items.size());
  if (count == 0) wrong("slice: the number of slices is 0");
  std::vector<Value> made;
  if (count < 0) return run.iterator({});
  run.meter.step(static_cast<uint64_t>(count));
  const int64_t each = length / count, longer = length % count;
  int64_t at = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t end = at + each + (i < longer);
    std::vector<Value> part(items.begin() + at, items.begin() + end);
    if (!given[1].none_or_missing() && i >= longer) part.push_back(given[1]);
    made.push_back(run.list(std::move(part)));
    at = end;
  }
  return run.iterator(std::move(made));
}

Value map(Run& run, const Value& value, Given& given) {
  if (!value.truth()) return run.iterator({});  // whatever it is
  std::vector<Value> made;
  const bool by_attribute = given.positional.empty() && !given.named.empty();
  Value attribute, otherwise;
  if (by_attribute) {
    for (const auto& [name, each] : given.named) {
      if (name == "attribute")
        attribute = each;
      else if (name == "default")
        otherwise = each;
      else
        wrong("map: there is no argument '", name, "'");
    }
    if (attribute.missing()) wrong("map needs a filter's name or attribute=");
  } else if (given.positional.empty() || !given.positional[0].is_text()) {
    wrong("map needs a filter's name or attribute=");
  }
  const std::vector<Value> path = path_of(run, attribute);
  for (const Value& item : run.each(value)) {
    run.meter.step();
    if (by_attribute) {
      made.push_back(at_path(run, item, path, otherwise));
      continue;
    }
    Arguments rest;
    rest.positional.assign(given.positional.begin() + 1, given.positional.end());
    rest.named = given.named;
    made.push_back(run.filtered(given.positional[0].text(), item, std::move(rest)));
  }
  return run.iterator(std::move(made));
}

template <bool kWanted, bool kAttribute>
Value select(Run& run, const Value& value, Given& given) {
  if (!value.truth()) return run.iterator({});
  size_t at = 0;
  std::vector<Value> path, made;
  if (kAttribute) {
    if (given.positional.empty()) wrong("selectattr and rejectattr need the name of an attribute");
    path = path_of(run, given.positional[at++]);
  }
  const bool by_test = at < given.positional.size();
  if (by_test && !given.positional[at].is_text()) wrong("the name of a test is awaited");
  for (const Value& item : run.each(value)) {
    run.meter.step();
    const Value asked = kAttribute ? at_path(run, item, path, Value()) : item;
    Arguments rest;
    if (by_test)
      rest.positional.assign(given.positional.begin() + static_cast<ptrdiff_t>(at) + 1,
                             given.positional.end());
    rest.named = given.named;
    const bool good =
        by_test ? run.tested(given.positional[at].text(), asked, std::move(rest)) : asked.truth();
    if (good == kWanted) made.push_back(item);
  }
  return run.iterator(std::move(made));
}

constexpr Row kListFilters[] = {
    {"batch", "linecount! fill_with", batch},
    {"count", "", length},
    {"dictsort", "case_sensitive by reverse", dictsort},
    {"first", "", first},
    {"groupby", "attribute! default case_sensitive", groupby},
    {"items", "", items},
    {"join", "d attribute", join},
    {"last", "", last},
    {"length", "", length},
    {"list", "", list},
    {"map", "* **", map},
    {"max", "case_sensitive attribute", extreme<true>},
    {"min", "case_sensitive attribute", extreme<false>},
    {"reject", "* **", select<false, false>},
    {"rejectattr", "* **", select<false, true>},
    {"reverse", "", reverse},
    {"select", "* **", select<true, false>},
    {"selectattr", "* **", select<true, true>},
    {"slice", "slices! fill_with", slices},
    {"sort", "reverse case_sensitive attribute", sort},
    {"sum", "attribute start", sum},
    {"unique", "case_sensitive attribute", unique},
};

}  // namespace

const Row* find_filter(std::string_view name) {
  const auto is = [&](const Row& row) { return row.name == name; };
  const auto* list = std::find_if(std::begin(kListFilters), std::end(kListFilters), is);
  if (list != std::end(kListFilters)) return list;
  const Row* end = kTextFilters + kTextFilterCount;
  const Row* text = std::find_if(kTextFilters, end, is);
  return text == end ? nullptr : text;
}

}  // namespace cairn::templates
