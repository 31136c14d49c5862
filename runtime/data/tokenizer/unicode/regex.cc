#include "runtime/data/tokenizer/unicode/regex.h"

#include <oniguruma.h>

#include <mutex>

#include "runtime/base/error.h"

namespace cairn::tokenizer {
namespace {

constexpr size_t kMostExpressionBytes = 1 << 16;
// What a search may try again, beside some for each byte: an expression must not take for ever.
constexpr unsigned long kMostRetries = 1'000'000, kRetriesOfByte = 32;

const OnigUChar* bytes(const char* text) { return reinterpret_cast<const OnigUChar*>(text); }

std::string message_of(int code, OnigErrorInfo* info) {
  OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];
  const int size = onig_error_code_to_str(text, code, info);
  return std::string(reinterpret_cast<char*>(text), static_cast<size_t>(size));
}

// The library's own state: made once, and expressions are compiled one at a time.
std::mutex& library() {
  static std::mutex mutex;
  static const int made = [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    return onig_initialize(encodings, 1);
  }();
  require(made == ONIG_NORMAL, Code::kInternal, "Oniguruma cannot be initialised");
  return mutex;
}

}  // namespace

Regex::Regex(const std::string& expression) : expression_(expression) {
  require(expression.size() <= kMostExpressionBytes, Code::kInvalidArgument, "a regular expression of ",
          expression.size(), " bytes; the most is ", kMostExpressionBytes);
  const std::lock_guard lock(library());
  OnigRegex made = nullptr;
  OnigErrorInfo info{};
  const int code = onig_new(&made, bytes(expression.data()), bytes(expression.data() + expression.size()),
                            ONIG_OPTION_NONE, ONIG_ENCODING_UTF8, ONIG_SYNTAX_DEFAULT, &info);
  require(code == ONIG_NORMAL, Code::kInvalidArgument, "the regular expression '", expression,
          "' is not valid: ", code == ONIG_NORMAL ? std::string() : message_of(code, &info));
  compiled_ = std::shared_ptr<void>(made, [](void* regex) { onig_free(static_cast<OnigRegex>(regex)); });
}

void Regex::find_all(std::string_view text, std::vector<Span>& out) const {
  out.clear();
  const std::unique_ptr<OnigRegion, void (*)(OnigRegion*)> region(
      onig_region_new(), [](OnigRegion* r) { onig_region_free(r, 1); });
  const std::unique_ptr<OnigMatchParam, void (*)(OnigMatchParam*)> limits(onig_new_match_param(),
                                                                          onig_free_match_param);
  require(region != nullptr && limits != nullptr, Code::kOutOfMemory,
          "no memory for a regular expression's matches");
  onig_initialize_match_param(limits.get());
  onig_set_retry_limit_in_search_of_match_param(limits.get(), kMostRetries + kRetriesOfByte * text.size());
  const OnigUChar *const begin = bytes(text.data()), *const end = begin + text.size();
  size_t at = 0;
  ptrdiff_t last_end = -1;  // of the match before: an empty one right behind it is none
  while (at <= text.size()) {
    onig_region_clear(region.get());
    const int found = onig_search_with_param(static_cast<OnigRegex>(compiled_.get()), begin, end, begin + at,
                                             end, region.get(), ONIG_OPTION_NONE, limits.get());
    if (found == ONIG_MISMATCH) return;
    require(found >= 0, Code::kInvalidArgument, "the regular expression '", expression_,
            "' fails on a text of ", text.size(),
            " bytes: ", found >= 0 ? std::string() : message_of(found, nullptr));
    const auto from = static_cast<uint32_t>(region->beg[0]), to = static_cast<uint32_t>(region->end[0]);
    const bool empty = from == to;
    if (!empty || static_cast<ptrdiff_t>(to) != last_end) out.push_back({from, to});
    last_end = to;
    at = !empty ? to : to < text.size() ? to + rune_size(text[to]) : text.size() + 1;
  }
}

}  // namespace cairn::tokenizer
