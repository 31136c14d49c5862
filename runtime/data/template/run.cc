#include "runtime/data/template/run.h"

#include "runtime/data/template/characters.h"

namespace cairn::templates {
namespace {

constexpr int kMostDepth = 800;

template <class Made, class... Given>
Value object(Kind kind, Given&&... given) {
  return Value::of(kind, std::make_shared<Made>(std::forward<Given>(given)...));
}

struct Global : Function {
  Global(Meter* meter, const Row* which) : Function(meter, 64), row(which) {}
  Value call(Run& run, Arguments arguments) override {
    Given given = bound(*row, std::move(arguments));
    return row->make(run, Value(), given);
  }
  std::string shown() const override { return cat("<function ", row->name, ">"); }
  const Row* row;
};

}  // namespace

void Scope::set(int name, Value value) {
  for (auto& [known, held] : values)
    if (known == name) {
      held = std::move(value);
      return;
    }
  values.emplace_back(name, std::move(value));
}

const Value* Namespace::find(std::string_view name) const {
  for (const auto& [known, value] : values)
    if (known == name) return &value;
  return nullptr;
}

void Namespace::set(const std::string& name, Value value) {
  for (auto& [known, held] : values)
    if (known == name) {
      held = std::move(value);
      return;
    }
  values.emplace_back(name, std::move(value));
}

Loop::Loop(Meter* meter, std::vector<Value> all)
    : Object(meter, all.size() * sizeof(Value)), items(std::move(all)) {
  for (const Value& item : items)
    if (item.object() != nullptr) depth = std::max(depth, item.object()->depth + 1);
}

std::optional<Value> Loop::pull() {
  while (next < items.size()) {
    const Value& item = items[next++];
    if (!passes || passes(item)) return item;
  }
  return std::nullopt;
}

const std::optional<Value>& Loop::peek() {
  if (!has_after) {
    after = pull();
    has_after = true;
  }
  return after;
}

bool Loop::advance() {
  std::optional<Value> item = has_after ? std::move(after) : pull();
  after.reset();
  has_after = false;
  if (!item) return false;
  ++index0;
  before = std::move(current);
  current = std::move(*item);
  return true;
}

int64_t Loop::length() {
  if (passes) {  // the condition is asked of all that is left
    std::vector<Value> left;
    while (std::optional<Value> item = pull()) left.push_back(std::move(*item));
    items = std::move(left);
    next = 0;
    passes = nullptr;
    const auto ahead = static_cast<int64_t>(has_after && after.has_value());
    skipped = index0 + 1 + ahead;
  }
  return skipped + static_cast<int64_t>(items.size());
}

Run::Run(const std::vector<std::string>& names)
    : out(&own_out_), scope(std::make_shared<Scope>(nullptr)), names_(names), roots_(names.size()) {}

// Namespaces may hold themselves.
Run::~Run() {
  for (const auto& held : namespaces_) {
    auto values = std::move(static_cast<Namespace&>(*held).values);
    values.clear();
  }
}

void Run::give(const Dict& values) {
  for (size_t i = 0; i < names_.size(); ++i) {
    if (const Value* given = values.find(names_[i])) {
      roots_[i] = *given;
    } else if (const Row* row = find_function(names_[i])) {
      roots_[i] = object<Global>(Kind::kFunction, &meter, row);
    }
  }
}

Value Run::text(std::string bytes, bool safe) {
  return Value::of(Kind::kText, std::make_shared<Text>(&meter, std::move(bytes)), safe);
}
Value Run::list(std::vector<Value> values) { return object<Items>(Kind::kList, &meter, std::move(values)); }
Value Run::tuple(std::vector<Value> values) { return object<Items>(Kind::kTuple, &meter, std::move(values)); }
Value Run::view(std::vector<Value> values, std::string_view type) {
  return object<Items>(type == "range" ? Kind::kRange : Kind::kView, &meter, std::move(values), type);
}
Value Run::iterator(std::vector<Value> values, std::string_view type) {
  return object<Items>(Kind::kIterator, &meter, std::move(values), type);
}
Value Run::dict(std::vector<Pair> pairs) { return object<Dict>(Kind::kDict, &meter, std::move(pairs)); }
Value Run::undefined(std::string what) { return object<Text>(Kind::kUndefined, &meter, std::move(what)); }
Value Run::make_namespace() {
  namespaces_.push_back(std::make_shared<Namespace>(&meter));
  return Value::of(Kind::kNamespace, namespaces_.back());
}

Value Run::lookup(int name) {
  for (const Scope* at = scope.get(); at != nullptr; at = at->parent.get())
    for (const auto& [known, value] : at->values)
      if (known == name) return value;
  const Value& root = roots_[static_cast<size_t>(name)];
  return root.missing() ? undefined(cat("'", names_[static_cast<size_t>(name)], "' is undefined")) : root;
}

void Run::print(std::string_view bytes) {
  meter.step(bytes.size() / 256);
  require(meter.bytes + bytes.size() <= Meter::kMostBytes, Code::kUnsupported,
          "the template's text has more than ", Meter::kMostBytes, " bytes");
  meter.bytes += bytes.size();
  *out += bytes;
}

void Run::print(const Value& value) {
  if (value.is_text()) return print(std::string_view(value.text()));
  meter.step(weight_of(value));
  print(std::string_view(printed(value)));
}

std::string Run::captured(const std::function<void()>& work) {
  std::string made;
  struct Into {
    Into(Run& of, std::string* to) : run(of), before(of.out) { run.out = to; }
    ~Into() {
      run.meter.bytes -= run.out->size();
      run.out = before;
    }
    Run& run;
    std::string* before;
  };
  {
    const Into into(*this, &made);
    work();
  }
  return made;
}

Run::Deeper::Deeper(Run& run, int at) : run_(run) {
  run_.meter.step();
  run_.line = at;
  if (++run_.depth_ <= kMostDepth) return;
  --run_.depth_;
  fail(Code::kUnsupported, "more than ", kMostDepth, " calls and blocks within each other");
}

bool Run::equals(const Value& a, const Value& b) {
  meter.step(std::min(weight_of(a), weight_of(b)));
  return equal(a, b);
}

int Run::order(const Value& a, const Value& b) {
  meter.step(std::min(weight_of(a), weight_of(b)));
  return compared(a, b);
}

Value Run::call(const Value& callee, Arguments arguments) {
  if (callee.is(Kind::kFunction))
    return static_cast<Function*>(callee.object())->call(*this, std::move(arguments));
  if (callee.is(Kind::kLoop)) {
    const auto& again = static_cast<Loop*>(callee.object())->again;
    if (!again) wrong("the loop must be marked 'recursive' to be called");
    if (arguments.positional.size() != 1 || !arguments.named.empty())
      wrong("a loop is called with what it goes through");
    return again(*this, arguments.positional[0]);
  }
  if (callee.undefined()) wrong(callee.text());
  wrong("a value of the type ", type_name(callee), " cannot be called");
}

Value Run::filtered(std::string_view filter, const Value& value, Arguments arguments) {
  const Row* row = find_filter(filter);
  if (row == nullptr) fail(Code::kUnsupported, "the filter '", filter, "' is not known");
  Given given = bound(*row, std::move(arguments));
  meter.step(weight_of(value));
  return row->make(*this, value, given);
}

bool Run::tested(std::string_view test, const Value& value, Arguments arguments) {
  const Row* row = find_test(test);
  if (row == nullptr) fail(Code::kUnsupported, "the test '", test, "' is not known");
  Given given = bound(*row, std::move(arguments));
  return row->make(*this, value, given).truth();
}

}  // namespace cairn::templates
