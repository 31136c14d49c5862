#include "runtime/data/tokenizer/unicode/normal.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "runtime/data/tokenizer/unicode/classes.h"
#include "runtime/data/tokenizer/unicode/utf8.h"

namespace cairn::tokenizer {
namespace {

constexpr char32_t kHangulBase = 0xAC00, kLeadBase = 0x1100, kVowelBase = 0x1161, kTailBase = 0x11A7;
constexpr char32_t kLeads = 19, kVowels = 21, kTails = 28, kHangul = kLeads * kVowels * kTails;
constexpr int kMostParts = 32;  // characters that one decomposes into; U+FDFA has 18

struct Range {
  char32_t first, last;
};
// What got a class or a decomposition after Unicode 9.
constexpr Range kLater[] = {
#define CAIRN_AFTER_UNICODE_9(first, last) {first, last},
#include "runtime/data/tokenizer/unicode/versions.def"
};

bool is_later(char32_t code) {
  const auto* const after = std::upper_bound(std::begin(kLater), std::end(kLater), code,
                                             [](char32_t c, const Range& range) { return c < range.first; });
  return after != std::begin(kLater) && code <= std::prev(after)->last;
}

int decompose(char32_t code, bool compatible, utf8proc_int32_t* to) {
  if (code < 0x80 || is_later(code)) {
    to[0] = static_cast<utf8proc_int32_t>(code);
    return 1;
  }
  int boundary = 0;
  const int options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
  return static_cast<int>(utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), to, kMostParts,
                                                  static_cast<utf8proc_option_t>(options), &boundary));
}

// Pairs of characters that are composed, but for Hangul.
class Pairs {
 public:
  static const Pairs& get() {
    static const Pairs pairs;
    return pairs;
  }
  char32_t find(char32_t a, char32_t b) const {
    const uint64_t key = uint64_t{a} << 32 | b;
    const auto at = std::lower_bound(rows_.begin(), rows_.end(), key,
                                     [](const Row& row, uint64_t k) { return row.key < k; });
    return at != rows_.end() && at->key == key ? at->code : 0;
  }
  bool is_second(char32_t code) const { return std::binary_search(seconds_.begin(), seconds_.end(), code); }

 private:
  struct Row {
    uint64_t key;
    char32_t code;
  };
  Pairs() {
    for (char32_t code = 0xC0; code < 0x30000; ++code) {
      if (code >= kHangulBase && code < kHangulBase + kHangul) continue;
      utf8proc_int32_t parts[kMostParts];
      const int count = decompose(code, false, parts);
      if (count < 2) continue;
      const auto last = static_cast<char32_t>(parts[count - 1]);
      utf8proc_int32_t all[kMostParts];
      std::copy_n(parts, count, all);
      const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
      if (utf8proc_normalize_utf32(all, count, options) != 1 || static_cast<char32_t>(all[0]) != code)
        continue;
      if (utf8proc_normalize_utf32(parts, count - 1, options) != 1) continue;
      rows_.push_back({uint64_t{static_cast<uint32_t>(parts[0])} << 32 | last, code});
      seconds_.push_back(last);
    }
    std::sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) { return a.key < b.key; });
    std::sort(seconds_.begin(), seconds_.end());
    seconds_.erase(std::unique(seconds_.begin(), seconds_.end()), seconds_.end());
  }

  std::vector<Row> rows_;
  std::vector<char32_t> seconds_;
};

// What two characters are composed to; 0: nothing.
char32_t compose(char32_t a, char32_t b) {
  if (a - kLeadBase < kLeads && b - kVowelBase < kVowels)
    return kHangulBase + ((a - kLeadBase) * kVowels + (b - kVowelBase)) * kTails;
  if (a - kHangulBase < kHangul && (a - kHangulBase) % kTails == 0 && b > kTailBase && b < kTailBase + kTails)
    return a + (b - kTailBase);
  return Pairs::get().find(a, b);
}

void append_decomposed(NormalForm form, std::string_view text, std::vector<Edit>& out) {
  size_t pending = out.size();  // where marks begin that are not in order yet
  const auto settle = [&] {
    std::stable_sort(
        out.begin() + static_cast<ptrdiff_t>(pending), out.end(),
        [](const Edit& a, const Edit& b) { return combining_class(a.code) < combining_class(b.code); });
  };
  for (size_t at = 0; at < text.size();) {
    const Rune rune = rune_at(text.data() + at);
    at += rune.size;
    utf8proc_int32_t parts[kMostParts];
    const int count = decompose(rune.code, form.compatible, parts);
    for (int i = 0; i < count; ++i) {
      const auto code = static_cast<char32_t>(parts[i]);
      if (combining_class(code) == 0) {
        settle();
        pending = out.size() + 1;
      }
      out.push_back({code, i == 0 ? 0 : 1});
      if (pending > out.size()) pending = out.size();
    }
  }
  settle();
}

// Composes what was decomposed. A change counts what became of the characters that are one now.
void append_composed(const std::vector<Edit>& parts, std::vector<Edit>& out) {
  bool open = false;  // whether `head` is a character that others may join
  Edit head{};
  int last_class = -1;  // of what stands between it and the next; -1: nothing
  std::vector<Edit> between;
  const auto purge = [&] {
    if (open) out.push_back(head);
    out.insert(out.end(), between.begin(), between.end());
    between.clear();
  };
  for (const Edit& part : parts) {
    const int now = combining_class(part.code);
    if (!open) {
      if (now != 0) {
        out.push_back(part);
      } else {
        head = part;
        open = true;
      }
      continue;
    }
    const char32_t made = last_class >= now ? 0 : compose(head.code, part.code);
    if (made != 0) {
      head = {made, head.change + part.change - 1};
    } else if (now == 0) {
      purge();
      head = part;
      last_class = -1;
    } else {
      between.push_back(part);
      last_class = now;
    }
  }
  purge();
}

struct Stretch {
  size_t begin, end;
  std::string_view of(std::string_view text) const { return text.substr(begin, end - begin); }
};

// The first stretch of text[from..] that NFC may change: characters that are not plain, and the one before them, which they may
// join. Nothing outside can join it, for a plain character joins none before it. Empty, at the text's end: there is none.
Stretch next_doubtful(std::string_view text, size_t from) {
  const Classes& classes = Classes::get();
  size_t previous = from, at = from;
  const auto plain = [&](size_t* size) {
    *size = 1;
    if (static_cast<uint8_t>(text[at]) < 0xCC) {  // before U+0300
      if (static_cast<uint8_t>(text[at]) >= 0x80) *size = 2;
      return true;
    }
    const Rune rune = rune_at(text.data() + at);
    *size = rune.size;
    return classes.is(rune.code, kPlain);
  };
  size_t size = 0;
  for (; at < text.size(); at += size) {
    if (!plain(&size)) break;
    previous = at;
  }
  if (at >= text.size()) return {text.size(), text.size()};
  while (at < text.size() && !plain(&size)) at += size;
  return {previous, at};
}

void compose_stretch(std::string_view text, std::vector<Edit>& parts, std::vector<Edit>& composed) {
  parts.clear();
  composed.clear();
  append_decomposed(kNfc, text, parts);
  append_composed(parts, composed);
}

}  // namespace

int combining_class(char32_t code) {
  if (code < 0x300) return 0;
  const int found = utf8proc_get_property(static_cast<utf8proc_int32_t>(code))->combining_class;
  return found == 0 || is_later(code) ? 0 : found;
}

bool may_follow(char32_t code) {
  return code - kVowelBase < kVowels || (code > kTailBase && code < kTailBase + kTails) ||
         Pairs::get().is_second(code);
}

bool is_own_nfc(char32_t code) {
  utf8proc_int32_t parts[kMostParts];
  const int count = decompose(code, false, parts);
  if (count == 1) return static_cast<char32_t>(parts[0]) == code;
  if (code - kHangulBase < kHangul) return true;
  std::vector<Edit> edits, composed;
  for (int i = 0; i < count; ++i) edits.push_back({static_cast<char32_t>(parts[i]), 0});
  append_composed(edits, composed);
  return composed.size() == 1 && composed[0].code == code;
}

bool is_nfc(std::string_view text) {
  std::vector<Edit> parts, composed;
  for (size_t at = 0;;) {
    const Stretch doubtful = next_doubtful(text, at);
    if (doubtful.begin == doubtful.end) return true;
    compose_stretch(doubtful.of(text), parts, composed);
    size_t same = doubtful.begin;
    for (const Edit& edit : composed) {
      const Rune rune = same < doubtful.end ? rune_at(text.data() + same) : Rune{};
      if (edit.change != 0 || edit.code != rune.code) return false;
      same += rune.size;
    }
    at = doubtful.end;
  }
}

void normalize(NormalForm form, std::string_view text, std::vector<Edit>& out) {
  out.clear();
  std::vector<Edit> parts;
  if (!form.composed) return append_decomposed(form, text, out);
  if (form.compatible) {
    append_decomposed(form, text, parts);
    return append_composed(parts, out);
  }
  std::vector<Edit> composed;
  for (size_t at = 0; at < text.size();) {
    const Stretch doubtful = next_doubtful(text, at);
    while (at < doubtful.begin) {
      const Rune rune = rune_at(text.data() + at);
      out.push_back({rune.code, 0});
      at += rune.size;
    }
    compose_stretch(doubtful.of(text), parts, composed);
    out.insert(out.end(), composed.begin(), composed.end());
    at = doubtful.end;
  }
}

}  // namespace cairn::tokenizer
