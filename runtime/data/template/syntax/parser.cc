// Statements. Expressions are in parse_expression.cc.
#include "runtime/data/template/syntax/parser.h"

#include "runtime/data/template/syntax/statements.h"

namespace cairn::templates {
namespace {

constexpr int kMostNested = 200, kMostLinks = 4000;

// Says something else of a part of the template while it lives.
struct Within {
  Within(bool& what, bool now) : place(what), before(what) { place = now; }
  ~Within() { place = before; }
  bool& place;
  const bool before;
};

}  // namespace

Parser::Nested::Nested(Parser& of) : parser(of) {
  require(++parser.depth_ <= kMostNested, Code::kUnsupported, "line ", parser.now().line, ": more than ",
          kMostNested, " blocks and expressions within each other");
}

// A chain as of a + b + c makes a tree as deep as it is long.
void Parser::link() {
  require(++links_ <= kMostLinks, Code::kUnsupported, "line ", now().line, ": an expression of more than ",
          kMostLinks, " parts");
}

bool Parser::skip_operator(std::string_view text) {
  if (!at_operator(text)) return false;
  next();
  return true;
}
bool Parser::skip_name(std::string_view text) {
  if (!at_name(text)) return false;
  next();
  return true;
}
void Parser::expect(Token token) {
  if (now().token != token)
    bad(cat(token == Token::kTagEnd ? "'%}'" : "'}}'", " is awaited, not ", shown(now())));
  next();
}
void Parser::expect_operator(std::string_view text) {
  if (!skip_operator(text)) bad(cat("'", text, "' is awaited, not ", shown(now())));
}
void Parser::expect_name(std::string_view text) {
  if (!skip_name(text)) bad(cat("'", text, "' is awaited, not ", shown(now())));
}
int Parser::number(const std::string& name) {
  const auto [at, fresh] = numbers_.emplace(name, static_cast<int>(names_.size()));
  if (fresh) names_.push_back(name);
  return at->second;
}

const Parser::Tag Parser::kTags[] = {
    {"set", &Parser::set},     {"for", &Parser::loop},        {"if", &Parser::condition},
    {"macro", &Parser::macro}, {"call", &Parser::call_block}, {"filter", &Parser::filter_block},
    {"with", &Parser::with},   {"print", &Parser::print},     {"generation", &Parser::generation},
    {"break", &Parser::jump},  {"continue", &Parser::jump},
};

Body Parser::run() {
  Body body = statements({});
  if (!unknown_.empty()) fail(Code::kUnsupported, unknown_.front());
  return body;
}

// Up to a tag with one of these names, whose name is the next token then.
Body Parser::statements(std::initializer_list<std::string_view> ends) {
  const Nested nested(*this);
  Body body;
  for (;;) {
    const Lexeme& token = now();
    if (token.token == Token::kEnd) {
      if (ends.size() != 0) bad(cat("the template ends where '", *ends.begin(), "' is awaited"));
      return body;
    }
    if (token.token == Token::kData) {
      body.push_back(std::make_unique<Data>(token.line, token.text));
      next();
    } else if (token.token == Token::kPrintBegin) {
      next();
      Expr shown = tuple();
      body.push_back(std::make_unique<Print>(token.line, std::move(shown)));
      expect(Token::kPrintEnd);
    } else {
      next();
      for (const std::string_view end : ends)
        if (at_name(end)) return body;
      statement(body);
      expect(Token::kTagEnd);
    }
  }
}

Body Parser::block(std::string_view end) {
  expect(Token::kTagEnd);
  Body body = statements({end});
  next();
  return body;
}

void Parser::statement(Body& body) {
  if (now().token != Token::kName) bad("the name of a tag is awaited");
  for (const Tag& tag : kTags)
    if (now().text == tag.name) return (this->*tag.parse)(body);
  for (const std::string_view known : {"block", "extends", "include", "import", "from", "autoescape"})
    if (now().text == known)
      fail(Code::kUnsupported, "line ", now().line, ": the tag '", known, "' is not supported");
  bad(cat("there is no tag '", now().text, "'"));
}

void Parser::set(Body& body) {
  const int line = next().line;
  Target to = target(true, true);
  if (skip_operator("=")) {
    auto made = std::make_unique<Set>(line);
    made->target = std::move(to);
    made->given = tuple();
    body.push_back(std::move(made));
    return;
  }
  auto made = std::make_unique<SetBlock>(line);
  made->target = std::move(to);
  while (skip_operator("|")) made->filter = filter(std::move(made->filter));
  made->body = block("endset");
  body.push_back(std::move(made));
}

void Parser::loop(Body& body) {
  auto made = std::make_unique<For>(next().line);
  made->target = target(true, false);
  expect_name("in");
  made->over = tuple(false, "recursive");
  if (skip_name("if")) made->condition = expression();
  made->recursive = skip_name("recursive");
  made->loop_name = number("loop");
  expect(Token::kTagEnd);
  {
    const Within in_loop(in_loop_, true);
    made->body = statements({"endfor", "else"});
  }
  if (next().text == "else") made->otherwise = block("endfor");
  body.push_back(std::move(made));
}

void Parser::condition(Body& body) {
  auto made = std::make_unique<If>(next().line);
  for (;;) {
    Expr test = tuple(false);
    const size_t unknown = unknown_.size();
    expect(Token::kTagEnd);
    Body inside = statements({"elif", "else", "endif"});
    made->branches.emplace_back(std::move(test), std::move(inside));
    unknown_.resize(unknown);
    const std::string& name = next().text;
    if (name == "elif") continue;
    if (name == "else") made->otherwise = block("endif");
    unknown_.resize(unknown);
    break;
  }
  body.push_back(std::move(made));
}

void Parser::parameters(Parameters& found) {
  expect_operator("(");
  while (!at_operator(")")) {
    if (!found.names.empty()) expect_operator(",");
    const Lexeme& name = now();
    if (name.token != Token::kName) bad("the name of a parameter is awaited");
    next();
    found.names.push_back(number(name.text));
    if (skip_operator("=")) {
      found.defaults.push_back(expression());
    } else if (!found.defaults.empty()) {
      bad(cat("the parameter '", name.text, "' has no default and comes after one that has"));
    }
  }
  expect_operator(")");
}

void Parser::macro_body(MacroBody& made, std::string_view end) {
  const Within in_loop(in_loop_, false);
  macros_.push_back(&made);
  made.body = block(end);
  macros_.pop_back();
}

void Parser::macro(Body& body) {
  auto made = std::make_unique<Macro>(next().line);
  made->macro.line = made->line;
  if (now().token != Token::kName) bad("the name of the macro is awaited");
  made->macro.name = now().text;
  made->name = number(next().text);
  parameters(made->macro.parameters);
  macro_body(made->macro, "endmacro");
  body.push_back(std::move(made));
}

void Parser::call_block(Body& body) {
  auto made = std::make_unique<CallBlock>(next().line);
  made->caller.line = made->line;
  made->caller.name = "caller";
  if (at_operator("(")) parameters(made->caller.parameters);
  made->call = expression();
  if (dynamic_cast<const Call*>(made->call.get()) == nullptr) bad("a call is awaited after 'call'");
  macro_body(made->caller, "endcall");
  body.push_back(std::move(made));
}

void Parser::filter_block(Body& body) {
  auto made = std::make_unique<FilterBlock>(next().line);
  do made->filter = filter(std::move(made->filter));
  while (skip_operator("|"));
  made->body = block("endfilter");
  body.push_back(std::move(made));
}

void Parser::with(Body& body) {
  auto made = std::make_unique<With>(next().line);
  while (now().token != Token::kTagEnd) {
    if (!made->values.empty()) expect_operator(",");
    Target to = target(true, false);
    expect_operator("=");
    made->values.emplace_back(std::move(to), expression());
  }
  made->body = block("endwith");
  body.push_back(std::move(made));
}

void Parser::print(Body& body) {
  const int line = next().line;
  bool first = true;
  while (now().token != Token::kTagEnd) {
    if (!first) expect_operator(",");
    first = false;
    body.push_back(std::make_unique<Print>(line, expression()));
  }
}

// Marks what a model is to learn; it renders what is in it. Names that it sets are its own.
void Parser::generation(Body& body) {
  auto made = std::make_unique<With>(next().line);
  const Within in_loop(in_loop_, false);
  made->body = block("endgeneration");
  body.push_back(std::move(made));
}

void Parser::jump(Body& body) {
  const Lexeme& token = next();
  if (!in_loop_) bad_syntax(token.line, cat("'", token.text, "' is outside of a loop"));
  body.push_back(std::make_unique<Jump>(token.line, token.text == "break" ? Flow::kBreak : Flow::kContinue));
}

Target Parser::target(bool several, bool attributes) {
  Target made;
  made.line = now().line;
  if (several) {
    std::vector<Target> parts;
    bool is_tuple = false;
    for (;;) {
      if (at_operator("=") || at_name("in") || now().token == Token::kTagEnd) break;
      parts.push_back(target(false, attributes));
      if (!skip_operator(",")) break;
      is_tuple = true;
    }
    if (parts.empty()) bad("a name to assign to is awaited");
    if (!is_tuple) return std::move(parts[0]);
    made.parts = std::move(parts);
    return made;
  }
  const Nested nested(*this);
  if (skip_operator("(")) {
    made = target(true, attributes);
    expect_operator(")");
    return made;
  }
  const Lexeme& name = now();
  for (const std::string_view constant : {"true", "false", "none", "True", "False", "None"})
    if (name.token == Token::kName && name.text == constant) bad(cat("cannot assign to '", constant, "'"));
  if (name.token != Token::kName) bad("a name to assign to is awaited");
  next();
  made.name = number(name.text);
  if (attributes && skip_operator(".")) {
    if (now().token != Token::kName) bad("the name of an attribute is awaited");
    made.attribute = next().text;
  }
  return made;
}

Body parsed(std::string_view source, std::vector<std::string>& names) { return Parser(source, names).run(); }

}  // namespace cairn::templates
