// The kinds of statements.
#pragma once
#include "runtime/data/template/syntax/expressions.h"

namespace cairn::templates {

struct Data : Statement {
  Data(int at, std::string bytes) : Statement(at), text(std::move(bytes)) {}
  Flow work(Run& run) const override;
  std::string text;
};

struct Print : Statement {
  Print(int at, Expr what) : Statement(at), shown(std::move(what)) {}
  Flow work(Run& run) const override;
  Expr shown;
};

struct If : Statement {
  using Statement::Statement;
  Flow work(Run& run) const override;
  std::vector<std::pair<Expr, Body>> branches;
  Body otherwise;
};

struct For : Statement {
  using Statement::Statement;
  Flow work(Run& run) const override;
  Target target;
  Expr over, condition;
  Body body, otherwise;
  int loop_name = -1;
  bool recursive = false;

 private:
  Flow over_items(Run& run, std::vector<Value> items, int depth) const;
};

struct Set : Statement {
  using Statement::Statement;
  Flow work(Run& run) const override;
  Target target;
  Expr given;
};

// {% set x %}...{% endset %}; filter: unless null, what the text goes through.
struct SetBlock : Statement {
  using Statement::Statement;
  Flow work(Run& run) const override;
  Target target;
  Expr filter;
  Body body;
};

struct FilterBlock : Statement {
  using Statement::Statement;
  Flow work(Run& run) const override;
  Expr filter;
  Body body;
};

struct Macro : Statement {
  using Statement::Statement;
  Flow work(Run& run) const override;
  int name = -1;
  MacroBody macro;
};

struct CallBlock : Statement {
  using Statement::Statement;
  Flow work(Run& run) const override;
  Expr call;  // a Call
  MacroBody caller;
};

struct With : Statement {
  using Statement::Statement;
  Flow work(Run& run) const override;
  std::vector<std::pair<Target, Expr>> values;
  Body body;
};

struct Jump : Statement {
  Jump(int at, Flow where) : Statement(at), flow(where) {}
  Flow work(Run&) const override { return flow; }
  Flow flow;
};

}  // namespace cairn::templates
