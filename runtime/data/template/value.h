// What a template computes with: Python's values as far as JSON and Jinja make them. Immutable, but for namespaces and iterators.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/base/error.h"

namespace cairn::templates {

enum class Kind : uint8_t {
  kMissing,    // an argument that was not given
  kUndefined,  // its text says what is not defined
  kNone,
  kBool,
  kInt,
  kFloat,
  kText,
  kList,
  kTuple,
  kDict,
  kView,  // dict.keys(), values(), items()
  kRange,
  kIterator,  // what can be gone through once
  kNamespace,
  kLoop,
  kFunction,  // macros, methods, global functions
};

// What a render has used up. Every object that it makes is charged here while it lives.
struct Meter {
  static constexpr uint64_t kMostSteps = uint64_t{1} << 24, kMostBytes = uint64_t{1} << 28;
  uint64_t steps = 0, bytes = 0;
  void step(uint64_t count = 1) {
    if ((steps += count) > kMostSteps) [[unlikely]]
      fail(Code::kUnsupported, "the template runs for more than ", kMostSteps, " steps");
  }
};

class Object {
 public:
  Object(Meter* meter, uint64_t bytes);
  virtual ~Object() {
    if (meter_ != nullptr) meter_->bytes -= bytes_;
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  int depth = 0;        // objects within each other
  uint64_t weight = 1;  // what going through all of it costs, in steps

 private:
  Meter* meter_;
  uint64_t bytes_;
};

struct Text;
struct Items;
struct Dict;

class Value {
 public:
  Value() = default;
  static Value none() { return Value(Kind::kNone); }
  static Value boolean(bool flag);
  static Value integer(int64_t number);
  static Value real(double number);
  static Value of(Kind kind, std::shared_ptr<Object> object, bool safe = false);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool missing() const { return kind_ == Kind::kMissing; }
  bool undefined() const { return kind_ == Kind::kUndefined; }
  bool none_or_missing() const { return kind_ == Kind::kNone || kind_ == Kind::kMissing; }
  bool is_text() const { return kind_ == Kind::kText; }
  bool whole() const {
    return kind_ == Kind::kInt || kind_ == Kind::kBool;
  }  // as Python has it, booleans are numbers
  bool number() const { return whole() || kind_ == Kind::kFloat; }
  bool safe() const { return safe_; }  // markupsafe's Markup: what is added to it gets escaped
  bool truth() const;

  int64_t integer() const { return number_; }
  double real() const { return kind_ == Kind::kFloat ? real_ : static_cast<double>(number_); }
  const std::string& text() const;
  const Text& text_object() const;
  const std::vector<Value>& items() const;  // of lists, tuples, views, ranges
  const Dict& dict() const;
  Object* object() const { return object_.get(); }
  const std::shared_ptr<Object>& shared() const { return object_; }

 private:
  explicit Value(Kind kind) : kind_(kind) {}
  Kind kind_ = Kind::kMissing;
  bool safe_ = false;
  union {
    int64_t number_ = 0;
    double real_;
  };
  std::shared_ptr<Object> object_;
};

using Pair = std::pair<Value, Value>;

// UTF-8, indexed by characters.
struct Text : Object {
  Text(Meter* meter, std::string text);
  std::string bytes;
  int64_t length;  // characters
  bool ascii() const { return length == static_cast<int64_t>(bytes.size()); }
};

struct Items : Object {
  Items(Meter* meter, std::vector<Value> values, std::string_view type = {});
  std::vector<Value> values;
  std::string_view type;  // how Python names a view or an iterator
  size_t next = 0;        // of an iterator
};

// In the order of insertion.
struct Dict : Object {
  Dict(Meter* meter, std::vector<Pair> pairs);
  std::vector<Pair> pairs;
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;

 private:
  std::vector<std::pair<std::string_view, uint32_t>> sorted_;  // of keys that are texts, where there are many
};

inline uint64_t weight_of(const Value& value) {
  return value.object() == nullptr ? 1 : value.object()->weight;
}

// Pairs for a dict: a key that is there already keeps its place and gets the new value. kInvalidArgument: a key that cannot be one.
class Pairs {
 public:
  void add(Value key, Value value);
  std::vector<Pair> take() { return std::move(pairs_); }

 private:
  std::vector<Pair> pairs_;
  std::unordered_map<std::string_view, size_t> places_;
};

// Python's ==.
bool equal(const Value& a, const Value& b);
// Negative, 0, positive, as Python's < has it. kInvalidArgument: these have no order. NaN gives 2, which no order has.
int compared(const Value& a, const Value& b);
// As Python names the type in its errors.
std::string_view type_name(const Value& value);
bool hashable(const Value& value);

}  // namespace cairn::templates
