// The tree of a template.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/template/run.h"

namespace cairn::templates {

struct Expression {
  explicit Expression(int at) : line(at) {}
  virtual ~Expression() = default;
  virtual Value value(Run& run) const = 0;
  const int line;
};
using Expr = std::unique_ptr<Expression>;
using Exprs = std::vector<Expr>;

enum class Flow : uint8_t { kOn, kBreak, kContinue };
struct Statement {
  explicit Statement(int at) : line(at) {}
  virtual ~Statement() = default;
  virtual Flow work(Run& run) const = 0;
  const int line;
};
using Body = std::vector<std::unique_ptr<Statement>>;
Flow work(Run& run, const Body& body);

Value evaluated(Run& run, const Expression& expression);

// Arguments of a call, a filter or a test.
struct CallArguments {
  Exprs positional;
  std::vector<std::pair<std::string, Expr>> named;
  Expr list, map;  // *list, **map
  Arguments values(Run& run) const;
};

// Where a value goes: a name, an attribute of a namespace, or several of them.
struct Target {
  int line = 0;
  int name = -1;
  std::string attribute;  // of the namespace `name`
  std::vector<Target> parts;
  void set(Run& run, Value value) const;
};

struct Parameters {
  std::vector<int> names;
  Exprs defaults;  // of the last of them
};

// The body of a macro or of a call block.
struct MacroBody {
  std::string name;
  Parameters parameters;
  Body body;
  int caller = -1, varargs = -1, kwargs = -1;  // names, where the body speaks of them
  int line = 0;
};
Value macro_value(Run& run, const MacroBody& macro);

// Makes the nodes. Names become numbers in `names`.
Body parsed(std::string_view source, std::vector<std::string>& names);

}  // namespace cairn::templates
