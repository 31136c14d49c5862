// The kinds of expressions.
#pragma once
#include "runtime/data/template/syntax/nodes.h"

namespace cairn::templates {

struct Constant : Expression {
  Constant(int at, Value value) : Expression(at), constant(std::move(value)) {}
  Value value(Run&) const override { return constant; }
  Value constant;
};

struct Name : Expression {
  Name(int at, int number) : Expression(at), name(number) {}
  Value value(Run& run) const override { return run.lookup(name); }
  int name;
};

enum class Display { kList, kTuple, kConcat, kDict };  // kDict: keys and values in turns
struct Sequence : Expression {
  Sequence(int at, Display wanted, Exprs all) : Expression(at), display(wanted), parts(std::move(all)) {}
  Value value(Run& run) const override;
  Display display;
  Exprs parts;
};

struct Attribute : Expression {
  Attribute(int at, Expr object, std::string called)
      : Expression(at), of(std::move(object)), name(std::move(called)) {}
  Value value(Run& run) const override { return run.attribute(evaluated(run, *of), name); }
  Expr of;
  std::string name;
};

struct Element : Expression {
  Element(int at, Expr object, Expr which) : Expression(at), of(std::move(object)), index(std::move(which)) {}
  Value value(Run& run) const override;
  Expr of, index;
};

struct Slice : Expression {
  Slice(int at, Expr object) : Expression(at), of(std::move(object)) {}
  Value value(Run& run) const override;
  Expr of, parts[3];  // from, to, step; each may be none
};

struct Call : Expression {
  Call(int at, Expr what, CallArguments given)
      : Expression(at), callee(std::move(what)), arguments(std::move(given)) {}
  Value value(Run& run) const override { return called(run, nullptr); }
  Value called(Run& run, const Value* caller) const;
  Expr callee;
  CallArguments arguments;
};

struct Filter : Expression {
  Filter(int at, Expr what, std::string called, CallArguments given)
      : Expression(at), input(std::move(what)), name(std::move(called)), arguments(std::move(given)) {}
  Value value(Run& run) const override { return of(run, nullptr); }
  Value of(Run& run, const Value* block) const;  // block: instead of an input that is none
  Expr input;
  std::string name;
  CallArguments arguments;
};

struct Test : Expression {
  Test(int at, Expr what, std::string called, CallArguments given)
      : Expression(at), input(std::move(what)), name(std::move(called)), arguments(std::move(given)) {}
  Value value(Run& run) const override;
  Expr input;
  std::string name;
  CallArguments arguments;
};

struct Operation : Expression {
  Operation(int at, std::string op, Expr a, Expr b)
      : Expression(at), sign(std::move(op)), left(std::move(a)), right(std::move(b)) {}
  Value value(Run& run) const override;
  std::string sign;  // arithmetic, "and", "or"
  Expr left, right;
};

struct Unary : Expression {
  Unary(int at, char op, Expr what) : Expression(at), sign(op), operand(std::move(what)) {}
  Value value(Run& run) const override;
  char sign;  // - + !
  Expr operand;
};

struct Comparison : Expression {
  Comparison(int at, Expr a, std::vector<std::pair<std::string, Expr>> others)
      : Expression(at), first(std::move(a)), rest(std::move(others)) {}
  Value value(Run& run) const override;
  Expr first;
  std::vector<std::pair<std::string, Expr>> rest;
};

struct Choice : Expression {
  Choice(int at, Expr test, Expr a, Expr b)
      : Expression(at), condition(std::move(test)), then(std::move(a)), otherwise(std::move(b)) {}
  Value value(Run& run) const override;
  Expr condition, then, otherwise;
};

}  // namespace cairn::templates
