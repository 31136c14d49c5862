#include "runtime/data/tokenizer/parts/pattern.h"

namespace cairn::tokenizer {

Pattern::Pattern(const Json& json) {
  if (json.has("Regex")) {
    *this = Pattern(json.text("Regex"), json.place());
  } else if (json.has("String")) {
    text_ = json.text("String");
    if (text_.empty()) json.bad("looks for an empty text");
  } else {
    json.bad("is neither a String nor a Regex");
  }
}

Pattern::Pattern(std::string_view expression, const std::string& place) : text_(expression) {
  try {
    regex_ = std::make_shared<Regex>(text_);
  } catch (const Error& error) {
    fail_as(Code::kUnsupported, error, place, ": ");
  }
}

void Pattern::find_all(std::string_view text, std::vector<Span>& out) const {
  if (regex_ != nullptr) return regex_->find_all(text, out);
  out.clear();
  for (size_t at = text.find(text_); at != std::string_view::npos; at = text.find(text_, at + text_.size()))
    out.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(at + text_.size())});
}

}  // namespace cairn::tokenizer
