// What is within values: attributes, elements, slices, and going through them.
#include <string.h>

#include <algorithm>
#include <limits>

#include "runtime/data/template/characters.h"
#include "runtime/data/template/run.h"
#include "runtime/data/tokenizer/unicode/utf8.h"

namespace cairn::templates {
namespace {

struct Method : Function {
  Method(Meter* meter, const Row* which, Value of) : Function(meter, 64), row(which), self(std::move(of)) {
    if (self.object() != nullptr) depth = self.object()->depth + 1;
    require(depth <= 200, Code::kUnsupported, "values are nested more than 200 deep");
  }
  Value call(Run& run, Arguments arguments) override {
    Given given = bound(*row, std::move(arguments));
    run.meter.step(weight_of(self));
    for (const Value& value : given.values) run.meter.step(weight_of(value));
    return row->make(run, self, given);
  }
  std::string shown() const override { return cat("<built-in method ", row->name, ">"); }
  const Row* row;
  Value self;
};

struct LoopField {
  std::string_view name;
  Value (*get)(Run& run, Loop& loop);
};
Value or_undefined(Run& run, const std::optional<Value>& value, const char* what) {
  return value ? *value : run.undefined(what);
}
constexpr LoopField kLoopFields[] = {
    {"index", [](Run&, Loop& loop) { return Value::integer(loop.index0 + 1); }},
    {"index0", [](Run&, Loop& loop) { return Value::integer(loop.index0); }},
    {"first", [](Run&, Loop& loop) { return Value::boolean(loop.index0 == 0); }},
    {"last", [](Run&, Loop& loop) { return Value::boolean(!loop.peek()); }},
    {"length", [](Run&, Loop& loop) { return Value::integer(loop.length()); }},
    {"revindex", [](Run&, Loop& loop) { return Value::integer(loop.length() - loop.index0); }},
    {"revindex0", [](Run&, Loop& loop) { return Value::integer(loop.length() - loop.index0 - 1); }},
    {"depth", [](Run&, Loop& loop) { return Value::integer(loop.depth0 + 1); }},
    {"depth0", [](Run&, Loop& loop) { return Value::integer(loop.depth0); }},
    {"nextitem",
     [](Run& run, Loop& loop) { return or_undefined(run, loop.peek(), "there is no next item"); }},
    {"previtem",
     [](Run& run, Loop& loop) {
       return loop.index0 == 0 ? run.undefined("there is no previous item") : loop.before;
     }},
};

// An attribute that Python's objects of the kind have; kMissing: none.
Value own_attribute(Run& run, const Value& of, std::string_view name) {
  if (of.is(Kind::kLoop))
    for (const LoopField& field : kLoopFields)
      if (field.name == name) return field.get(run, *static_cast<Loop*>(of.object()));
  if (of.is(Kind::kNamespace)) {
    const Value* found = static_cast<const Namespace*>(of.object())->find(name);
    return found != nullptr ? *found : Value();
  }
  if (of.is(Kind::kTuple) && static_cast<const Items*>(of.object())->type == "group" &&
      (name == "grouper" || name == "list"))
    return of.items()[name == "list" ? 1 : 0];
  if (const Row* row = find_method(of, name))
    return Value::of(Kind::kFunction, std::make_shared<Method>(&run.meter, row, of));
  if (changes(of, name))
    return run.undefined(cat("a template must not call '", name, "', which changes a value"));
  return Value();
}

// Python's x[index]; kMissing where it raises.
Value own_element(Run& run, const Value& of, const Value& index) {
  if (of.is(Kind::kDict)) {
    if (!hashable(index)) return Value();
    if (!index.is_text()) run.meter.step(of.dict().pairs.size());
    const Value* found = of.dict().find(index);
    return found != nullptr ? *found : Value();
  }
  if (!index.whole()) return Value();
  int64_t at = index.integer();
  if (of.is_text()) {
    const Text& text = of.text_object();
    if (at < 0) at += text.length;
    if (at < 0 || at >= text.length) return Value();
    run.meter.step(text.ascii() ? 0 : text.bytes.size() / 64);
    const size_t begin = text.ascii() ? static_cast<size_t>(at) : byte_of(text.bytes, at);
    return run.text(text.bytes.substr(begin, tokenizer::rune_size(text.bytes[begin])), of.safe());
  }
  if (!of.is(Kind::kList) && !of.is(Kind::kTuple) && !of.is(Kind::kRange)) return Value();
  const auto& items = of.items();
  if (at < 0) at += static_cast<int64_t>(items.size());
  return at < 0 || at >= static_cast<int64_t>(items.size()) ? Value() : items[static_cast<size_t>(at)];
}

Value no_attribute(Run& run, const Value& of, const Value& name) {
  if (name.is_text())
    return run.undefined(
        cat("'", type_name(of), " object' has no attribute '", name.text().substr(0, 128), "'"));
  return run.undefined(cat(type_name(of), " object has no element ",
                           name.number() ? printed(name) : std::string(type_name(name))));
}

// Python's slice.indices: how many items there are from `begin` in steps.
int64_t slice_places(int64_t length, const Value& from, const Value& to, int64_t step, int64_t& begin) {
  const auto place = [&](const Value& given, int64_t otherwise) {
    if (given.none_or_missing()) return otherwise;
    int64_t at = given.integer();
    if (at < 0) at = std::max(at + length, step < 0 ? int64_t{-1} : int64_t{0});
    return std::min(at, step < 0 ? length - 1 : length);
  };
  begin = place(from, step < 0 ? length - 1 : 0);
  const int64_t end = place(to, step < 0 ? -1 : length);
  if (step < 0) return begin > end ? (begin - end - 1) / -step + 1 : 0;
  return begin < end ? (end - begin - 1) / step + 1 : 0;
}

}  // namespace

Value Run::attribute(const Value& of, std::string_view name) {
  if (of.undefined()) wrong(of.text());
  Value found = own_attribute(*this, of, name);
  if (!found.missing()) return found;
  if (of.is(Kind::kDict)) {
    const Value* value = of.dict().find(name);
    if (value != nullptr) return *value;
  }
  return no_attribute(*this, of, text(std::string(name)));
}

Value Run::element(const Value& of, const Value& index) {
  if (of.undefined()) wrong(of.text());
  Value found = own_element(*this, of, index);
  if (found.missing() && index.is_text()) found = own_attribute(*this, of, index.text());
  return found.missing() ? no_attribute(*this, of, index) : found;
}

Value Run::slice(const Value& of, const Value& from, const Value& to, const Value& by) {
  if (of.undefined()) wrong(of.text());
  const bool listed = of.is(Kind::kList) || of.is(Kind::kTuple) || of.is(Kind::kRange);
  if (!listed && !of.is_text()) wrong("a value of the type ", type_name(of), " has no slices");
  for (const Value* bound : {&from, &to, &by})
    if (!bound->is(Kind::kNone) && !bound->whole()) wrong("a slice has bounds that are no whole numbers");
  const int64_t step = by.is(Kind::kNone) ? 1 : by.integer();
  if (step == 0) wrong("a slice's step must not be zero");
  const int64_t steps = std::max(step, -std::numeric_limits<int64_t>::max());
  int64_t begin = 0;
  if (of.is_text()) {
    const Text& whole = of.text_object();
    const int64_t count = slice_places(whole.length, from, to, steps, begin);
    meter.step(whole.bytes.size() / 64);
    if (steps == 1) {
      const std::string_view rest =
          std::string_view(whole.bytes)
              .substr(whole.ascii() ? static_cast<size_t>(begin) : byte_of(whole.bytes, begin));
      return text(
          std::string(rest.substr(0, whole.ascii() ? static_cast<size_t>(count) : byte_of(rest, count))),
          of.safe());
    }
    const std::u32string runes = runes_of(whole.bytes);
    std::u32string made;
    for (int64_t i = 0; i < count; ++i) made += runes[static_cast<size_t>(begin + i * steps)];
    return text(text_of(made), of.safe());
  }
  std::vector<Value> made;
  const int64_t count = slice_places(static_cast<int64_t>(of.items().size()), from, to, steps, begin);
  meter.step(static_cast<uint64_t>(count) / 8);
  for (int64_t i = 0; i < count; ++i) made.push_back(of.items()[static_cast<size_t>(begin + i * steps)]);
  return of.is(Kind::kList)    ? list(std::move(made))
         : of.is(Kind::kTuple) ? tuple(std::move(made))
                               : view(std::move(made), "range");
}

std::vector<Value> Run::each(const Value& value) {
  std::vector<Value> all;
  switch (value.kind()) {
    case Kind::kUndefined:
      break;
    case Kind::kText:
      meter.step(static_cast<uint64_t>(value.text_object().length));
      for (size_t at = 0; at < value.text().size();) {
        const size_t size = tokenizer::rune_size(value.text()[at]);
        all.push_back(text(value.text().substr(at, size)));
        at += size;
      }
      break;
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
    case Kind::kRange:
      meter.step(value.items().size() / 8);
      all = value.items();
      break;
    case Kind::kDict:
      meter.step(value.dict().pairs.size() / 8);
      for (const Pair& pair : value.dict().pairs) all.push_back(pair.first);
      break;
    case Kind::kIterator: {
      auto& items = *static_cast<Items*>(value.object());
      meter.step(items.values.size() / 8);
      all.assign(items.values.begin() + static_cast<ptrdiff_t>(items.next), items.values.end());
      items.next = items.values.size();
      break;
    }
    default:
      wrong("a value of the type ", type_name(value), " cannot be gone through");
  }
  return all;
}

int64_t Run::length(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kText:
      return value.text_object().length;
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
    case Kind::kRange:
      return static_cast<int64_t>(value.items().size());
    case Kind::kDict:
      return static_cast<int64_t>(value.dict().pairs.size());
    case Kind::kLoop:
      return static_cast<Loop*>(value.object())->length();
    default:
      wrong("a value of the type ", type_name(value), " has no length");
  }
}

bool Run::contains(const Value& container, const Value& item) {
  if (container.is_text()) {
    if (item.undefined()) wrong(item.text());
    if (!item.is_text()) wrong("only a string is in a string, not a value of the type ", type_name(item));
    meter.step(weight_of(container));
    const std::string &text = container.text(), &part = item.text();
    return memmem(text.data(), text.size(), part.data(), part.size()) != nullptr;
  }
  if (container.is(Kind::kDict)) {
    if (!hashable(item)) wrong("a value of the type ", type_name(item), " is no key");
    if (!item.is_text()) meter.step(container.dict().pairs.size());
    return container.dict().find(item) != nullptr;
  }
  if (container.is(Kind::kIterator)) {
    auto& items = *static_cast<Items*>(container.object());
    while (items.next < items.values.size())
      if (equals(items.values[items.next++], item)) return true;
    return false;
  }
  if (container.undefined()) return false;
  if (container.object() == nullptr || container.is(Kind::kNamespace) || container.is(Kind::kLoop) ||
      container.is(Kind::kFunction))
    wrong("nothing is in a value of the type ", type_name(container));
  for (const Value& each : container.items())
    if (equals(each, item)) return true;
  return false;
}

}  // namespace cairn::templates
