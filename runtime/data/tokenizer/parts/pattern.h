// What Split and Replace look for: a text or a regular expression.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/tokenizer/parts/json.h"
#include "runtime/data/tokenizer/unicode/regex.h"

namespace cairn::tokenizer {

class Pattern {
 public:
  explicit Pattern(const Json& json);                              // {"String": ...} or {"Regex": ...}
  Pattern(std::string_view expression, const std::string& place);  // a regular expression
  void find_all(std::string_view text, std::vector<Span>& out) const;
  bool surely_misses(std::string_view text) const {
    return regex_ == nullptr && text.find(text_) == std::string_view::npos;
  }
  const std::string& expression() const { return text_; }
  bool is_expression() const { return regex_ != nullptr; }

 private:
  std::string text_;
  std::shared_ptr<const Regex> regex_;
};

}  // namespace cairn::tokenizer
