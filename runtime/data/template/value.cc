#include "runtime/data/template/value.h"

#include <algorithm>
#include <cmath>

#include "runtime/data/tokenizer/unicode/utf8.h"

namespace cairn::templates {
namespace {

constexpr int kMostDepth = 200;
constexpr uint64_t kMostWeight = uint64_t{1} << 24;
constexpr size_t kFewPairs = 8;

void nest(Object& outer, const Value& inner) {
  outer.depth = std::max(outer.depth, inner.object() == nullptr ? 0 : inner.object()->depth + 1);
  outer.weight += weight_of(inner);
  require(outer.depth <= kMostDepth, Code::kUnsupported, "values are nested more than ", kMostDepth, " deep");
  require(outer.weight <= kMostWeight, Code::kUnsupported, "a value is made of more than ", kMostWeight,
          " others");
}

bool same_items(const std::vector<Value>& a, const std::vector<Value>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), equal);
}

bool same_pairs(const Dict& a, const Dict& b) {
  if (a.pairs.size() != b.pairs.size()) return false;
  return std::all_of(a.pairs.begin(), a.pairs.end(), [&](const Pair& pair) {
    const Value* other = b.find(pair.first);
    return other != nullptr && equal(pair.second, *other);
  });
}

int sign(auto a, auto b) { return a < b ? -1 : a > b ? 1 : a == b ? 0 : 2; }

int number_order(const Value& a, const Value& b) {
  if (a.whole() && b.whole()) return sign(a.integer(), b.integer());
  if (!a.whole() && !b.whole()) return sign(a.real(), b.real());
  const auto exact = [](const Value& v) {
    return v.whole() ? static_cast<long double>(v.integer()) : static_cast<long double>(v.real());
  };
  return sign(exact(a), exact(b));
}

}  // namespace

Object::Object(Meter* meter, uint64_t bytes) : meter_(meter), bytes_(bytes + 64) {
  if (meter_ == nullptr) return;
  meter_->step(bytes / 256);
  require(meter_->bytes + bytes_ <= Meter::kMostBytes, Code::kUnsupported,
          "the template's values need more than ", Meter::kMostBytes, " bytes");
  meter_->bytes += bytes_;
}

Text::Text(Meter* meter, std::string text)
    : Object(meter, text.size()),
      bytes(std::move(text)),
      length(static_cast<int64_t>(tokenizer::count_runes(bytes))) {
  weight += bytes.size() / 1024;
}

Items::Items(Meter* meter, std::vector<Value> all, std::string_view name)
    : Object(meter, all.size() * sizeof(Value)), values(std::move(all)), type(name) {
  for (const Value& value : values) nest(*this, value);
}

Dict::Dict(Meter* meter, std::vector<Pair> all)
    : Object(meter, all.size() * (sizeof(Pair) + sizeof(sorted_[0]))), pairs(std::move(all)) {
  for (const Pair& pair : pairs) {
    nest(*this, pair.first);
    nest(*this, pair.second);
  }
  if (pairs.size() <= kFewPairs) return;
  for (uint32_t i = 0; i < pairs.size(); ++i)
    if (pairs[i].first.is_text()) sorted_.emplace_back(pairs[i].first.text(), i);
  std::sort(sorted_.begin(), sorted_.end());
}

const Value* Dict::find(std::string_view key) const {
  if (pairs.size() <= kFewPairs) {
    for (const Pair& pair : pairs)
      if (pair.first.is_text() && pair.first.text() == key) return &pair.second;
    return nullptr;
  }
  const auto at =
      std::lower_bound(sorted_.begin(), sorted_.end(), std::pair<std::string_view, uint32_t>(key, 0));
  return at != sorted_.end() && at->first == key ? &pairs[at->second].second : nullptr;
}

const Value* Dict::find(const Value& key) const {
  if (key.is_text()) return find(key.text());
  for (const Pair& pair : pairs)
    if (equal(pair.first, key)) return &pair.second;
  return nullptr;
}

void Pairs::add(Value key, Value value) {
  require(hashable(key), Code::kInvalidArgument, "a value of the type ", type_name(key), " cannot be a key");
  size_t place = pairs_.size();
  if (key.is_text()) {
    place = places_.emplace(key.text(), place).first->second;
  } else {
    for (size_t i = 0; i < pairs_.size() && place == pairs_.size(); ++i)
      if (!pairs_[i].first.is_text() && equal(pairs_[i].first, key)) place = i;
  }
  if (place == pairs_.size()) {
    pairs_.emplace_back(std::move(key), std::move(value));
  } else {
    pairs_[place].second = std::move(value);
  }
}

Value Value::boolean(bool flag) {
  Value made(Kind::kBool);
  made.number_ = flag ? 1 : 0;
  return made;
}

Value Value::integer(int64_t number) {
  Value made(Kind::kInt);
  made.number_ = number;
  return made;
}

Value Value::real(double number) {
  Value made(Kind::kFloat);
  made.real_ = number;
  return made;
}

Value Value::of(Kind kind, std::shared_ptr<Object> object, bool safe) {
  Value made(kind);
  made.object_ = std::move(object);
  made.safe_ = safe;
  return made;
}

const Text& Value::text_object() const { return static_cast<const Text&>(*object_); }
const std::string& Value::text() const { return text_object().bytes; }
const std::vector<Value>& Value::items() const { return static_cast<const Items&>(*object_).values; }
const Dict& Value::dict() const { return static_cast<const Dict&>(*object_); }

bool Value::truth() const {
  switch (kind_) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return number_ != 0;
    case Kind::kFloat:
      return real_ != 0;
    case Kind::kText:
      return !text().empty();
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
    case Kind::kRange:
      return !items().empty();
    case Kind::kDict:
      return !dict().pairs.empty();
    default:
      return true;
  }
}

bool equal(const Value& a, const Value& b) {
  if (a.number() && b.number()) return number_order(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kText:
      return a.text() == b.text();
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
      return same_items(a.items(), b.items());
    case Kind::kDict:
      return same_pairs(a.dict(), b.dict());
    default:
      return a.object() == b.object();
  }
}

int compared(const Value& a, const Value& b) {
  if (a.number() && b.number()) return number_order(a, b);
  if (a.is_text() && b.is_text()) return sign(a.text().compare(b.text()), 0);
  if (a.kind() == b.kind() && (a.is(Kind::kList) || a.is(Kind::kTuple))) {
    const auto &left = a.items(), &right = b.items();
    for (size_t i = 0; i < left.size() && i < right.size(); ++i)
      if (!equal(left[i], right[i])) return compared(left[i], right[i]);
    return sign(left.size(), right.size());
  }
  for (const Value* value : {&a, &b})
    if (value->undefined()) fail(Code::kInvalidArgument, value->text());
  fail(Code::kInvalidArgument, "values of the types ", type_name(a), " and ", type_name(b), " have no order");
}

std::string_view type_name(const Value& value) {
  constexpr std::string_view kNames[] = {"missing",  "Undefined", "NoneType",    "bool",    "int",  "float",
                                         "str",      "list",      "tuple",       "dict",    "view", "range",
                                         "iterator", "Namespace", "LoopContext", "function"};
  return kNames[static_cast<int>(value.kind())];
}

bool hashable(const Value& value) {
  if (value.is(Kind::kTuple)) return std::all_of(value.items().begin(), value.items().end(), hashable);
  return !value.is(Kind::kList) && !value.is(Kind::kDict);
}

}  // namespace cairn::templates
