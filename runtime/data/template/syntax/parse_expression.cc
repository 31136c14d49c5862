#include "runtime/data/template/syntax/expressions.h"
#include "runtime/data/template/syntax/parser.h"

namespace cairn::templates {
namespace {

constexpr std::string_view kComparisons[] = {"==", "!=", "<", "<=", ">", ">="};

bool one_of(const Lexeme& token, std::initializer_list<std::string_view> signs) {
  return token.token == Token::kOperator && std::find(signs.begin(), signs.end(), token.text) != signs.end();
}

Value constant_text(std::string text) {
  return Value::of(Kind::kText, std::make_shared<Text>(nullptr, std::move(text)));
}

}  // namespace

Expr Parser::tuple(bool with_choice, std::string_view end, bool in_parentheses) {
  const int line = now().line;
  Exprs parts;
  bool is_tuple = false;
  for (;;) {
    const bool over = now().token == Token::kTagEnd || now().token == Token::kPrintEnd || at_operator(")") ||
                      (!end.empty() && at_name(end));
    if (over) break;
    parts.push_back(expression(with_choice));
    if (!skip_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !parts.empty()) return std::move(parts[0]);
  if (!is_tuple && !in_parentheses) bad(cat("an expression is awaited, not ", shown(now())));
  return std::make_unique<Sequence>(line, Display::kTuple, std::move(parts));
}

Expr Parser::expression(bool with_choice) {
  const Nested nested(*this);
  const int line = now().line;
  const size_t unknown = unknown_.size();
  if (expressions_++ == 0) links_ = 0;
  Expr made = either();
  while (with_choice && skip_name("if")) {
    link();
    Expr condition = either();
    Expr otherwise = skip_name("else") ? expression() : nullptr;
    unknown_.resize(unknown);
    made = std::make_unique<Choice>(line, std::move(condition), std::move(made), std::move(otherwise));
  }
  --expressions_;
  return made;
}

Expr Parser::either() {
  Expr left = both();
  while (at_name("or")) {
    link();
    const int line = next().line;
    left = std::make_unique<Operation>(line, "or", std::move(left), both());
  }
  return left;
}

Expr Parser::both() {
  Expr left = inverted();
  while (at_name("and")) {
    link();
    const int line = next().line;
    left = std::make_unique<Operation>(line, "and", std::move(left), inverted());
  }
  return left;
}

Expr Parser::inverted() {
  if (!at_name("not")) return comparison();
  const Nested nested(*this);
  const int line = next().line;
  return std::make_unique<Unary>(line, '!', inverted());
}

Expr Parser::comparison() {
  const int line = now().line;
  Expr first = sum();
  std::vector<std::pair<std::string, Expr>> rest;
  for (;;) {
    const Lexeme& token = now();
    if (token.token == Token::kOperator &&
        std::find(std::begin(kComparisons), std::end(kComparisons), token.text) != std::end(kComparisons)) {
      next();
      rest.emplace_back(token.text, sum());
    } else if (skip_name("in")) {
      rest.emplace_back("in", sum());
    } else if (at_name("not") && ahead().token == Token::kName && ahead().text == "in") {
      next();
      next();
      rest.emplace_back("not in", sum());
    } else {
      break;
    }
  }
  if (rest.empty()) return first;
  return std::make_unique<Comparison>(line, std::move(first), std::move(rest));
}

Expr Parser::sum() {
  Expr left = joined();
  while (one_of(now(), {"+", "-"})) {
    link();
    const Lexeme& sign = next();
    left = std::make_unique<Operation>(sign.line, sign.text, std::move(left), joined());
  }
  return left;
}

Expr Parser::joined() {
  const int line = now().line;
  Exprs parts;
  do parts.push_back(product());
  while (skip_operator("~"));
  if (parts.size() == 1) return std::move(parts[0]);
  return std::make_unique<Sequence>(line, Display::kConcat, std::move(parts));
}

Expr Parser::product() {
  Expr left = power();
  while (one_of(now(), {"*", "/", "//", "%"})) {
    link();
    const Lexeme& sign = next();
    left = std::make_unique<Operation>(sign.line, sign.text, std::move(left), power());
  }
  return left;
}

Expr Parser::power() {
  Expr left = unary(true);
  while (at_operator("**")) {
    link();
    const int line = next().line;
    left = std::make_unique<Operation>(line, "**", std::move(left), unary(true));
  }
  return left;
}

Expr Parser::unary(bool with_filters) {
  const Nested nested(*this);
  Expr made;
  if (one_of(now(), {"-", "+"})) {
    const Lexeme& sign = next();
    made = std::make_unique<Unary>(sign.line, sign.text[0], unary(false));
  } else {
    made = primary();
  }
  made = postfix(std::move(made));
  return with_filters ? filters(std::move(made)) : std::move(made);
}

Expr Parser::primary() {
  const Lexeme& token = now();
  const auto constant = [&](Value value) { return std::make_unique<Constant>(token.line, std::move(value)); };
  switch (token.token) {
    case Token::kName: {
      next();
      const std::string& name = token.text;
      if (name == "true" || name == "True") return constant(Value::boolean(true));
      if (name == "false" || name == "False") return constant(Value::boolean(false));
      if (name == "none" || name == "None") return constant(Value::none());
      const int number = this->number(name);
      for (MacroBody* macro : macros_) {
        if (name == "caller") macro->caller = number;
        if (name == "varargs") macro->varargs = number;
        if (name == "kwargs") macro->kwargs = number;
      }
      return std::make_unique<Name>(token.line, number);
    }
    case Token::kText: {
      std::string text;
      while (now().token == Token::kText) text += next().text;
      return constant(constant_text(std::move(text)));
    }
    case Token::kInteger:
      next();
      return constant(Value::integer(token.integer));
    case Token::kFloat:
      next();
      return constant(Value::real(token.real));
    default:
      break;
  }
  if (at_operator("[")) return list();
  if (at_operator("{")) return dict();
  if (!skip_operator("(")) bad(cat("unexpected ", shown(token)));
  Expr inside = tuple(true, {}, true);
  expect_operator(")");
  return inside;
}

Expr Parser::list() {
  const int line = next().line;
  Exprs parts;
  while (!at_operator("]")) {
    if (!parts.empty()) expect_operator(",");
    if (at_operator("]")) break;
    parts.push_back(expression());
  }
  next();
  return std::make_unique<Sequence>(line, Display::kList, std::move(parts));
}

Expr Parser::dict() {
  const int line = next().line;
  Exprs parts;
  while (!at_operator("}")) {
    if (!parts.empty()) expect_operator(",");
    if (at_operator("}")) break;
    parts.push_back(expression());
    expect_operator(":");
    parts.push_back(expression());
  }
  next();
  return std::make_unique<Sequence>(line, Display::kDict, std::move(parts));
}

Expr Parser::postfix(Expr of) {
  for (;; link()) {
    if (at_operator(".") || at_operator("[")) {
      of = subscript(std::move(of));
    } else if (at_operator("(")) {
      of = call(std::move(of));
    } else {
      return of;
    }
  }
}

Expr Parser::filters(Expr of) {
  for (;; link()) {
    if (skip_operator("|")) {
      of = filter(std::move(of));
    } else if (at_name("is")) {
      of = test(std::move(of));
    } else if (at_operator("(")) {
      of = call(std::move(of));
    } else {
      return of;
    }
  }
}

Expr Parser::subscript(Expr of) {
  const Lexeme& token = next();
  if (token.text == ".") {
    const Lexeme& name = next();
    if (name.token == Token::kName) return std::make_unique<Attribute>(token.line, std::move(of), name.text);
    if (name.token != Token::kInteger) bad_syntax(name.line, "a name or a number is awaited after '.'");
    return std::make_unique<Element>(token.line, std::move(of),
                                     std::make_unique<Constant>(name.line, Value::integer(name.integer)));
  }
  auto slice = std::make_unique<Slice>(token.line, nullptr);
  Expr first = at_operator(":") ? nullptr : expression();
  if (!at_operator(":")) {
    Exprs parts;
    parts.push_back(std::move(first));
    while (skip_operator(",")) parts.push_back(expression());
    expect_operator("]");
    Expr index = parts.size() == 1
                     ? std::move(parts[0])
                     : std::make_unique<Sequence>(token.line, Display::kTuple, std::move(parts));
    return std::make_unique<Element>(token.line, std::move(of), std::move(index));
  }
  slice->of = std::move(of);
  slice->parts[0] = std::move(first);
  for (int i = 1; i < 3 && skip_operator(":"); ++i)
    if (!at_operator(":") && !at_operator("]")) slice->parts[i] = expression();
  expect_operator("]");
  return slice;
}

CallArguments Parser::arguments() {
  CallArguments made;
  const int line = now().line;
  const auto ensure = [&](bool right) {
    if (!right)
      bad_syntax(line, "arguments of a call are in the wrong order: values, then name=value, *list, **map");
  };
  expect_operator("(");
  for (bool first = true; !at_operator(")"); first = false) {
    if (!first) {
      expect_operator(",");
      if (at_operator(")")) break;
    }
    if (skip_operator("*")) {
      ensure(made.list == nullptr && made.map == nullptr);
      made.list = expression();
    } else if (skip_operator("**")) {
      ensure(made.map == nullptr);
      made.map = expression();
    } else if (now().token == Token::kName && ahead().token == Token::kOperator && ahead().text == "=") {
      ensure(made.map == nullptr);
      std::string name = next().text;
      next();
      made.named.emplace_back(std::move(name), expression());
    } else {
      ensure(made.list == nullptr && made.map == nullptr && made.named.empty());
      made.positional.push_back(expression());
    }
  }
  next();
  return made;
}

Expr Parser::call(Expr of) {
  const int line = now().line;
  CallArguments given = arguments();
  return std::make_unique<Call>(line, std::move(of), std::move(given));
}

std::string Parser::dotted(std::string_view what) {
  if (now().token != Token::kName) bad(cat("the name of a ", what, " is awaited, not ", shown(now())));
  std::string name = next().text;
  while (skip_operator(".")) {
    if (now().token != Token::kName) bad(cat("the name of a ", what, " is awaited, not ", shown(now())));
    name += "." + next().text;
  }
  return name;
}

Expr Parser::filter(Expr of) {
  const int line = now().line;
  std::string name = dotted("filter");
  CallArguments given;
  if (at_operator("(")) given = arguments();
  if (find_filter(name) == nullptr)
    unknown_.push_back(cat("line ", line, ": the filter '", name, "' is not known"));
  return std::make_unique<Filter>(line, std::move(of), std::move(name), std::move(given));
}

Expr Parser::test(Expr of) {
  const int line = next().line;
  const bool negated = skip_name("not");
  std::string name = dotted("test");
  CallArguments given;
  const Token kind = now().token;
  const bool value = kind == Token::kName || kind == Token::kText || kind == Token::kInteger ||
                     kind == Token::kFloat || at_operator("[") || at_operator("{");
  if (at_operator("(")) {
    given = arguments();
  } else if (value && !at_name("else") && !at_name("or") && !at_name("and")) {
    if (at_name("is")) bad("a test follows a test: put the first in parentheses");
    given.positional.push_back(postfix(primary()));
  }
  if (find_test(name) == nullptr)
    unknown_.push_back(cat("line ", line, ": the test '", name, "' is not known"));
  Expr made = std::make_unique<Test>(line, std::move(of), std::move(name), std::move(given));
  return negated ? std::make_unique<Unary>(line, '!', std::move(made)) : std::move(made);
}

}  // namespace cairn::templates
