// Reads JSON that is not trusted: every value knows its path, so that an error names the place. Bounded: no recursion
// beyond the parser's own limit of depth, no list longer than its reader allows.
#pragma once
#include <simdjson.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"

namespace cairn::plan {

// A JSON value and its path, for messages: "ops[3].inputs[1]". All reads throw kInvalidArgument.
struct JsonNode {
  simdjson::dom::element element;
  std::string place;      // "" at the root
  std::string_view what;  // the text's kind, which stands for the root's place

  template <class... Parts>
  [[noreturn]] void bad(const Parts&... parts) const {
    fail(Code::kInvalidArgument, place.empty() ? what : std::string_view(place), ": ", parts...);
  }
  JsonNode at(std::string_view key) const;
  bool has(std::string_view key) const { return !object().at_key(key).error(); }
  simdjson::dom::object object() const;
  std::vector<JsonNode> list(size_t most) const;
  std::string name() const;  // at most 4096 bytes
  int64_t integer() const;   // not negative
  double number() const;     // finite and not negative
  bool flag() const;
};

// A parsed text. kCorruptFile: no JSON, or no object; kInvalidArgument: a key twice.
class JsonText {
 public:
  JsonText(std::string_view what, std::string_view text);
  const JsonNode& root() const { return root_; }

 private:
  simdjson::dom::parser parser_;
  JsonNode root_;
};

}  // namespace cairn::plan
