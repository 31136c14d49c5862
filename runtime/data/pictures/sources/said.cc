#include "runtime/data/pictures/sources/said.h"

#include <simdjson.h>

#include <charconv>

#include "runtime/data/pictures/sources/numbered.h"

namespace cairn::data {

Said read_said(std::string_view json, const std::string& where) {
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  const auto error = parser.parse(json.data(), json.size()).get(object);
  require(!error, Code::kCorruptFile, where, ": not a JSON object: ", simdjson::error_message(error));
  Said said;
  const auto text = [&](const char* key, std::optional<std::string>& to) {
    simdjson::dom::element value;
    if (object[key].get(value)) return;
    std::string_view words;
    require(!value.get(words), Code::kCorruptFile, where, ": '", key, "' is not a text");
    to = words;
  };
  text("image", said.image);
  text("caption", said.text);
  text("text", said.text);
  for (const char* key : {"cls", "label"}) {
    int64_t number;
    simdjson::dom::element value;
    if (object[key].get(value)) continue;
    require(!value.get(number), Code::kCorruptFile, where, ": '", key, "' is not a class's number");
    said.label = number;
  }
  return said;
}

int32_t checked_label(int64_t label, const std::string& where) {
  require(label >= 0 && label < static_cast<int64_t>(kMostClasses), Code::kCorruptFile, where, ": class ",
          label, "; wanted: a number from 0 to ", kMostClasses - 1);
  return static_cast<int32_t>(label);
}

int32_t label_of_text(std::string_view text, const std::string& where) {
  int64_t label = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), label);
  const std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
  require(error == std::errc() && rest.find_first_not_of(" \r\n") == std::string_view::npos,
          Code::kCorruptFile, where, ": '", text.substr(0, 32), "' is not a class's number");
  return checked_label(label, where);
}

}  // namespace cairn::data
