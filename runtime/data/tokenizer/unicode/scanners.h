// The regular expressions that most vocabularies cut text with, by hand.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/data/tokenizer/unicode/utf8.h"

namespace cairn::tokenizer {

struct Scanner;
// The scanner for exactly this expression; null: none.
const Scanner* scanner_of(std::string_view expression);
extern const std::string_view kGpt2Expression;

// Appends where each piece of the text ends, counted from `base`. The pieces together are the text: these expressions match all
// there is.
void scan(const Scanner& scanner, std::string_view text, uint32_t base, std::vector<uint32_t>& ends);

}  // namespace cairn::tokenizer
