// Regular expressions: those of tokenizer files that no scanner knows, by Oniguruma.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/tokenizer/unicode/utf8.h"

namespace cairn::tokenizer {

class Regex {
 public:
  // kInvalidArgument: no expression of Oniguruma's, with what it says.
  explicit Regex(const std::string& expression);
  // Matches from left to right that do not overlap, of well-formed text. kInvalidArgument: it takes more than Oniguruma's limits.
  void find_all(std::string_view text, std::vector<Span>& out) const;

 private:
  std::shared_ptr<void> compiled_;
  std::string expression_;
};

}  // namespace cairn::tokenizer
