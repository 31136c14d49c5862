// The state of one rendering, and what is called in it: macros, filters, tests, methods.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/data/template/value.h"

namespace cairn::templates {

class Run;

// Names that a part of the template has set. Macros see the scope that they were written in.
struct Scope {
  explicit Scope(std::shared_ptr<Scope> outer) : parent(std::move(outer)) {}
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<int, Value>> values;
  void set(int name, Value value);
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// Arguments by the parameters of what is called; kMissing where none was given.
struct Given : Arguments {
  std::vector<Value> values;
  const Value& operator[](size_t index) const { return values[index]; }
  int64_t integer(size_t index, int64_t otherwise) const;  // kInvalidArgument: another type
  bool flag(size_t index) const { return values[index].truth(); }
};

// A row of a table of filters, tests, methods or functions. Parameters are names; "old!" must be given, "*" and "**" take further ones.
struct Row {
  std::string_view name, parameters;
  Value (*make)(Run& run, const Value& self, Given& given);
};
Given bound(const Row& row, Arguments arguments);

const Row* find_filter(std::string_view name);
const Row* find_test(std::string_view name);
const Row* find_function(std::string_view name);
const Row* find_method(const Value& self, std::string_view name);
// Python's methods that change a list or a dict: a template has none of them.
bool changes(const Value& self, std::string_view method);

struct Function : Object {
  using Object::Object;
  virtual Value call(Run& run, Arguments arguments) = 0;
  virtual std::string shown() const = 0;
};

struct Namespace : Object {
  explicit Namespace(Meter* meter) : Object(meter, 256) {}
  std::vector<std::pair<std::string, Value>> values;
  const Value* find(std::string_view name) const;
  void set(const std::string& name, Value value);
};

// What `loop` is within a for: goes through the items that pass the loop's condition, one ahead where it is asked to.
struct Loop : Object {
  Loop(Meter* meter, std::vector<Value> all);
  std::vector<Value> items;
  size_t next = 0;
  std::function<bool(const Value&)> passes;  // empty: all do
  std::function<Value(Run&, const Value&)>
      again;  // renders the body for other items, where the loop is recursive
  Value current, before, changed_value;
  std::optional<Value> after;
  bool has_after = false;
  int64_t index0 = -1;
  int depth0 = 0;
  int64_t skipped = 0;  // items that length() counts and `items` has no more

  std::optional<Value> pull();
  const std::optional<Value>& peek();
  bool advance();
  int64_t length();
};

class Run {
 public:
  explicit Run(const std::vector<std::string>& names);
  ~Run();
  void give(const Dict& values);  // what the names stand for

  Meter meter;
  int line = 1;
  std::string* out;
  std::shared_ptr<Scope> scope;

  Value text(std::string bytes, bool safe = false);
  Value list(std::vector<Value> values);
  Value tuple(std::vector<Value> values);
  Value view(std::vector<Value> values, std::string_view type);
  Value iterator(std::vector<Value> values, std::string_view type = "generator");
  Value dict(std::vector<Pair> pairs);
  Value undefined(std::string what);
  Value make_namespace();

  const std::string& name(int id) const { return names_[static_cast<size_t>(id)]; }
  Value lookup(int name);
  void print(std::string_view bytes);
  void print(const Value& value);

  // What a for, a filter or list() goes through; what is gone through once is used up. kInvalidArgument: nothing of the kind.
  std::vector<Value> each(const Value& value);
  int64_t length(const Value& value);
  bool contains(const Value& container, const Value& item);
  bool equals(const Value& a, const Value& b);
  int order(const Value& a, const Value& b);

  Value attribute(const Value& of, std::string_view name);  // x.name
  Value element(const Value& of, const Value& index);       // x[index]
  Value slice(const Value& of, const Value& from, const Value& to, const Value& step);
  Value call(const Value& callee, Arguments arguments);
  Value filtered(std::string_view filter, const Value& value, Arguments arguments);
  bool tested(std::string_view test, const Value& value, Arguments arguments);
  // Output of `work` as a text instead.
  std::string captured(const std::function<void()>& work);

  // Nodes within each other that are being worked on.
  struct Deeper {
    Deeper(Run& run, int at);
    ~Deeper() { --run_.depth_; }

   private:
    Run& run_;
  };

 private:
  const std::vector<std::string>& names_;
  std::vector<Value> roots_;  // by name
  std::vector<std::shared_ptr<Object>> namespaces_;
  std::string own_out_;
  int depth_ = 0;
};

// Sets another scope while it lives.
class InScope {
 public:
  InScope(Run& run, std::shared_ptr<Scope> scope) : run_(run), before_(std::move(run.scope)) {
    run.scope = std::move(scope);
  }
  ~InScope() { run_.scope = std::move(before_); }
  InScope(const InScope&) = delete;
  InScope& operator=(const InScope&) = delete;

 private:
  Run& run_;
  std::shared_ptr<Scope> before_;
};

template <class... Parts>
[[noreturn]] void wrong(const Parts&... parts) {
  fail(Code::kInvalidArgument, parts...);
}

// str() and repr() of Python.
std::string printed(const Value& value);
std::string shown(const Value& value);
std::string shown_text(std::string_view text);
std::string float_text(double number);
// json.dumps.
std::string as_json(const Value& value, bool ascii, const Value& indent, const Value& separators,
                    bool sorted);
Value from_json(Meter* meter, std::string_view text);
// The operators + - * / // % **, and unary -.
Value arithmetic(Run& run, std::string_view op, const Value& a, const Value& b);
Value negated(const Value& value, bool minus);
// printf's way of Python, and str.format.
Value percent(Run& run, const Value& format, const Value& given);
std::string formatted(Run& run, std::string_view format, const Arguments& given);
std::string html_escaped(std::string_view text);
std::optional<int64_t> parsed_integer(std::string_view text, int base);
std::optional<double> parsed_real(std::string_view text);

}  // namespace cairn::templates
