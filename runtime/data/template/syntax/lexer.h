// A template's text as tokens, with Jinja's rules for white space: trim_blocks, lstrip_blocks, and the signs - and + at tags.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/template/value.h"

namespace cairn::templates {

enum class Token : uint8_t {
  kData,
  kTagBegin,
  kTagEnd,
  kPrintBegin,
  kPrintEnd,
  kName,
  kText,
  kInteger,
  kFloat,
  kOperator,
  kEnd
};

struct Lexeme {
  Token token;
  int line;
  std::string text;  // data, a name, a string without its quotes, an operator
  int64_t integer = 0;
  double real = 0;
};

// kCorruptFile, with the line.
std::vector<Lexeme> tokens_of(std::string_view source);

// A token as errors show it.
std::string shown(const Lexeme& token);

// Where the text is no template.
[[noreturn]] void bad_syntax(int line, const std::string& what);

}  // namespace cairn::templates
