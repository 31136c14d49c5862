// Jinja's grammar.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/data/template/syntax/lexer.h"
#include "runtime/data/template/syntax/nodes.h"

namespace cairn::templates {

class Parser {
 public:
  Parser(std::string_view source, std::vector<std::string>& names)
      : tokens_(tokens_of(source)), names_(names) {}
  Body run();

 private:
  struct Tag {
    std::string_view name;
    void (Parser::*parse)(Body& body);
  };
  static const Tag kTags[];

  // Tags.
  Body statements(std::initializer_list<std::string_view> ends);
  Body block(std::string_view end);
  void statement(Body& body);
  void set(Body& body);
  void loop(Body& body);
  void condition(Body& body);
  void macro(Body& body);
  void call_block(Body& body);
  void filter_block(Body& body);
  void with(Body& body);
  void print(Body& body);
  void generation(Body& body);
  void jump(Body& body);
  void parameters(Parameters& found);
  void macro_body(MacroBody& made, std::string_view end);
  Target target(bool several, bool attributes);

  // Expressions.
  Expr expression(bool with_choice = true);
  Expr tuple(bool with_choice = true, std::string_view end = {}, bool in_parentheses = false);
  Expr either();
  Expr both();
  Expr inverted();
  Expr comparison();
  Expr sum();
  Expr joined();
  Expr product();
  Expr power();
  Expr unary(bool with_filters);
  Expr primary();
  Expr postfix(Expr of);
  Expr filters(Expr of);
  Expr filter(Expr of);
  Expr test(Expr of);
  Expr call(Expr of);
  Expr subscript(Expr of);
  Expr list();
  Expr dict();
  CallArguments arguments();
  std::string dotted(std::string_view what);

  // Tokens.
  const Lexeme& now() const { return tokens_[at_]; }
  const Lexeme& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Lexeme& next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool at_operator(std::string_view text) const {
    return now().token == Token::kOperator && now().text == text;
  }
  bool at_name(std::string_view text) const { return now().token == Token::kName && now().text == text; }
  bool skip_operator(std::string_view text);
  bool skip_name(std::string_view text);
  void expect(Token token);
  void expect_operator(std::string_view text);
  void expect_name(std::string_view text);
  [[noreturn]] void bad(const std::string& what) const { bad_syntax(now().line, what); }
  int number(const std::string& name);
  void link();

  struct Nested {  // bounds the depth of what is parsed
    explicit Nested(Parser& parser);
    ~Nested() { --parser.depth_; }
    Parser& parser;
  };

  std::vector<Lexeme> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  std::vector<std::string>& names_;
  std::unordered_map<std::string, int> numbers_;
  std::vector<MacroBody*> macros_;  // those that are being parsed
  bool in_loop_ = false;
  int expressions_ = 0;  // within each other
  int links_ = 0;        // of chains, in the outermost of them
  std::vector<std::string>
      unknown_;  // filters and tests; what a condition may pass by is an error only where it is reached
};

}  // namespace cairn::templates
