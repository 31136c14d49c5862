// Unicode's normal forms, with what became of each character. The tables are those of Unicode 9, as PyPI's tokenizers has them:
// what was assigned later neither decomposes nor combines.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace cairn::tokenizer {

// A character of a changed text: how many characters it stands for (Edit, aligned.h).
struct Edit {
  char32_t code;
  int32_t change;  // 0: replaces one; 1: was added; -n: replaces one, after which n are removed
};

struct NormalForm {
  bool compatible, composed;
};
inline constexpr NormalForm kNfd{false, false}, kNfkd{true, false}, kNfc{false, true}, kNfkc{true, true};

// Whether text is its own NFC.
bool is_nfc(std::string_view text);
void normalize(NormalForm form, std::string_view text, std::vector<Edit>& out);

// What the forms know of a character.
int combining_class(char32_t code);
bool may_follow(char32_t code);  // whether it is composed with a character before it
bool is_own_nfc(char32_t code);

}  // namespace cairn::tokenizer
