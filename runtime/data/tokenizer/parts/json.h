// JSON that is not trusted: every value knows its path, so that an error names the place.
#pragma once
#include <simdjson.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"

namespace cairn::tokenizer {

inline constexpr int kMostDepth = 16;  // parts within parts

class Json {
 public:
  Json(simdjson::dom::element element, std::string place, int depth = 0)
      : element_(element), place_(std::move(place)), depth_(depth) {}

  template <class... Parts>
  [[noreturn]] void bad(const Parts&... parts) const {
    fail(Code::kCorruptFile, place_, ": ", parts...);
  }
  const std::string& place() const { return place_; }
  bool is_null() const { return element_.is_null(); }
  bool is_object() const { return element_.is_object(); }
  bool is_text() const { return element_.is_string(); }

  bool has(std::string_view key) const;  // null counts as not there
  Json at(std::string_view key) const;   // it must be there
  std::string_view text() const;
  std::string_view text(std::string_view key) const { return at(key).text(); }
  std::string_view text(std::string_view key, std::string_view otherwise) const {
    return has(key) ? text(key) : otherwise;
  }
  bool flag() const;
  bool flag(std::string_view key, bool otherwise) const { return has(key) ? at(key).flag() : otherwise; }
  int64_t whole() const;
  double number() const;
  std::vector<Json> list() const;
  simdjson::dom::array array() const;
  simdjson::dom::object object() const;
  Json inside(simdjson::dom::element element, std::string_view where) const;

  // The row of a table by the text "type": its make(json). `what` is the kind of part.
  template <class Row, size_t kRows>
  auto made(const Row (&rows)[kRows], std::string_view what) const {
    const std::string_view type = text("type");
    for (const Row& row : rows)
      if (row.name == type) return row.make(*this);
    std::string known;
    for (const Row& row : rows) known.append(known.empty() ? "" : ", ").append(row.name);
    fail(Code::kUnsupported, place_, ": there is no ", what, " '", type, "' here; known: ", known);
  }

 private:
  simdjson::dom::element element_;
  std::string place_;
  int depth_;
};

// A file's JSON. kCorruptFile: it is none, or not an object.
class JsonFile {
 public:
  JsonFile(std::string_view text, const std::string& where);
  const Json& root() const { return *root_; }

 private:
  simdjson::dom::parser parser_;
  std::unique_ptr<Json> root_;
};

}  // namespace cairn::tokenizer
