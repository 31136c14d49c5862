#include "runtime/data/tokenizer/parts/json.h"

#include <cmath>

namespace cairn::tokenizer {

namespace dom = simdjson::dom;

bool Json::has(std::string_view key) const {
  dom::element found;
  return !object().at_key(key).get(found) && !found.is_null();
}

Json Json::at(std::string_view key) const {
  dom::element found;
  if (object().at_key(key).get(found)) bad("the key '", key, "' is missing");
  return inside(found, cat(".", key));
}

Json Json::inside(dom::element element, std::string_view where) const {
  if (depth_ >= 2 * kMostDepth)
    bad("is nested too deeply; at most ", kMostDepth, " parts are within each other");
  return {element, cat(place_, where), depth_ + 1};
}

std::string_view Json::text() const {
  std::string_view text;
  if (element_.get_string().get(text)) bad("is not a string");
  return text;
}

bool Json::flag() const {
  bool flag;
  if (element_.get_bool().get(flag)) bad("is not true or false");
  return flag;
}

int64_t Json::whole() const {
  int64_t number;
  if (element_.get_int64().get(number)) bad("is not a whole number");
  return number;
}

double Json::number() const {
  double number;
  if (!element_.is_number() || element_.get_double().get(number) || !std::isfinite(number))
    bad("is not a number");
  return number;
}

dom::object Json::object() const {
  dom::object object;
  if (element_.get_object().get(object)) bad("is not an object");
  return object;
}

dom::array Json::array() const {
  dom::array array;
  if (element_.get_array().get(array)) bad("is not a list");
  return array;
}

std::vector<Json> Json::list() const {
  std::vector<Json> items;
  for (const dom::element item : array()) items.push_back(inside(item, cat("[", items.size(), "]")));
  return items;
}

JsonFile::JsonFile(std::string_view text, const std::string& where) {
  dom::element element;
  // The parser reads beyond the text. It hides that it had no memory for a copy of its own, so the copy is made here.
  std::string padded;
  padded.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  padded.assign(text).resize(text.size() + simdjson::SIMDJSON_PADDING);
  const auto error = parser_.parse(padded.data(), text.size(), false).get(element);
  require(error != simdjson::MEMALLOC, Code::kOutOfMemory, where, ": no memory for its JSON");
  require(!error, Code::kCorruptFile, where, ": not JSON: ", simdjson::error_message(error));
  require(element.is_object(), Code::kCorruptFile, where, ": not a JSON object");
  root_ = std::make_unique<Json>(element, where);
}

}  // namespace cairn::tokenizer
