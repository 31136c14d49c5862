#include "runtime/data/tokenizer/unicode/classes.h"

#include <utf8proc.h>

#include <cstring>
#include <iterator>
#include <map>
#include <string>

#include "runtime/data/tokenizer/unicode/normal.h"

namespace cairn::tokenizer {
namespace {

constexpr uint32_t bit(int category) { return uint32_t{1} << category; }
constexpr uint32_t kLetters = bit(UTF8PROC_CATEGORY_LU) | bit(UTF8PROC_CATEGORY_LL) |
                              bit(UTF8PROC_CATEGORY_LT) | bit(UTF8PROC_CATEGORY_LM) |
                              bit(UTF8PROC_CATEGORY_LO);
constexpr uint32_t kMarks = bit(UTF8PROC_CATEGORY_MN) | bit(UTF8PROC_CATEGORY_MC) | bit(UTF8PROC_CATEGORY_ME);
constexpr uint32_t kNumbers =
    bit(UTF8PROC_CATEGORY_ND) | bit(UTF8PROC_CATEGORY_NL) | bit(UTF8PROC_CATEGORY_NO);
constexpr uint32_t kPunctuations = bit(UTF8PROC_CATEGORY_PC) | bit(UTF8PROC_CATEGORY_PD) |
                                   bit(UTF8PROC_CATEGORY_PS) | bit(UTF8PROC_CATEGORY_PE) |
                                   bit(UTF8PROC_CATEGORY_PI) | bit(UTF8PROC_CATEGORY_PF) |
                                   bit(UTF8PROC_CATEGORY_PO);

// The bits that whole categories have.
struct CategoryBits {
  uint32_t categories;
  uint16_t bits;
};
constexpr CategoryBits kCategories[] = {
    {kLetters, kLetter | kWord},
    {kNumbers, kNumber | kNumeric},
    {kMarks, kMark | kWord | kCombining | kUpperLike | kLowerLike},
    {kLetters & ~bit(UTF8PROC_CATEGORY_LL), kUpperLike},
    {kLetters & ~bit(UTF8PROC_CATEGORY_LU) & ~bit(UTF8PROC_CATEGORY_LT), kLowerLike},
    {bit(UTF8PROC_CATEGORY_MN), kNonspacing},
    {bit(UTF8PROC_CATEGORY_ND) | bit(UTF8PROC_CATEGORY_NL) | bit(UTF8PROC_CATEGORY_PC), kWord},
    {kPunctuations, kPunctuation},
    {bit(UTF8PROC_CATEGORY_ZS) | bit(UTF8PROC_CATEGORY_ZL) | bit(UTF8PROC_CATEGORY_ZP), kSpace},
    {bit(UTF8PROC_CATEGORY_CC) | bit(UTF8PROC_CATEGORY_CF) | bit(UTF8PROC_CATEGORY_CO), kControl},
};

// The bits that some characters have, or lack, whatever their category says.
struct Exception {
  char32_t first, last;
  uint16_t bits;
};
constexpr Exception kAdded[] = {
    {0x09, 0x0D, kSpace},     {0x85, 0x85, kSpace},     {0x200C, 0x200D, kWord},  {'!', '/', kPunctuation},
    {':', '@', kPunctuation}, {'[', '`', kPunctuation}, {'{', '~', kPunctuation},
#define CAIRN_GAINED(first, last, bits) {first, last, bits},
#include "runtime/data/tokenizer/unicode/versions.def"
};
constexpr Exception kTaken[] = {
    {0, 0, kControl},
    {0x09, 0x0A, kControl},
    {0x0D, 0x0D, kControl},
#define CAIRN_LOST(first, last, bits) {first, last, bits},
#include "runtime/data/tokenizer/unicode/versions.def"
};

struct SmallLetter {
  char32_t from, to;
};
constexpr SmallLetter kSmallLetters[] = {
#define CAIRN_SMALL_LETTER(from, to) {from, to},
#include "runtime/data/tokenizer/unicode/versions.def"
};

}  // namespace

const Classes& Classes::get() {
  static const Classes classes;
  return classes;
}

Classes::Classes() {
  std::vector<uint16_t> bits(0x110000);
  for (char32_t code = 0; code < bits.size(); ++code) {
    const uint32_t own = bit(utf8proc_category(static_cast<utf8proc_int32_t>(code)));
    for (const CategoryBits& row : kCategories)
      if ((row.categories & own) != 0) bits[code] |= row.bits;
    if (code < 0x300 || code >= 0x30000 ||
        (combining_class(code) == 0 && !may_follow(code) && is_own_nfc(code)))
      bits[code] |= kPlain;
  }
  for (const Exception& row : kAdded)
    for (char32_t code = row.first; code <= row.last; ++code) bits[code] |= row.bits;
  for (const Exception& row : kTaken)
    for (char32_t code = row.first; code <= row.last; ++code) bits[code] &= static_cast<uint16_t>(~row.bits);
  std::map<std::basic_string<char16_t>, uint16_t> known;  // equal blocks are kept once
  for (size_t block = 0; block < index_.size(); ++block) {
    const auto* const begin = reinterpret_cast<const char16_t*>(bits.data() + block * 256);
    const auto [at, fresh] = known.emplace(std::u16string(begin, 256), static_cast<uint16_t>(known.size()));
    if (fresh) blocks_.insert(blocks_.end(), bits.begin() + block * 256, bits.begin() + (block + 1) * 256);
    index_[block] = at->second;
  }
}

int lowercase(char32_t code, char32_t out[2]) {
  out[0] = code;
  if (code < 0x80) {
    if (code - 'A' < 26) out[0] = code + 32;
    return 1;
  }
  if (code == 0x130) {  // the one that becomes two
    out[0] = 'i';
    out[1] = 0x307;
    return 2;
  }
  out[0] = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
  for (const SmallLetter& row : kSmallLetters)
    if (row.from == code) out[0] = row.to;
  return 1;
}

}  // namespace cairn::tokenizer
