#include "runtime/plan/json/node.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/text/name.h"
#include "runtime/plan/json/parse.h"

namespace cairn::plan {
namespace {

namespace dom = simdjson::dom;

void refuse_duplicate_keys(const JsonNode& node) {
  if (node.element.is_array()) {
    size_t i = 0;
    for (dom::element item : dom::array(node.element))
      if (item.is_object() || item.is_array())
        refuse_duplicate_keys({item, cat(node.place, "[", i++, "]"), node.what});
      else
        ++i;
    return;
  }
  if (!node.element.is_object()) return;
  std::vector<std::string_view> keys;
  for (auto [key, item] : dom::object(node.element)) {
    keys.push_back(key);
    if (item.is_object() || item.is_array())
      refuse_duplicate_keys(
          {item, node.place.empty() ? std::string(key) : cat(node.place, ".", key), node.what});
  }
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice != keys.end()) node.bad("the key '", *twice, "' appears twice");
}

}  // namespace

JsonNode JsonNode::at(std::string_view key) const {
  JsonNode child{{}, place.empty() ? std::string(key) : cat(place, ".", key), what};
  if (object().at_key(key).get(child.element)) fail(Code::kInvalidArgument, child.place, " is missing");
  return child;
}

dom::object JsonNode::object() const {
  dom::object o;
  if (element.get_object().get(o)) bad("not an object");
  return o;
}

std::vector<JsonNode> JsonNode::list(size_t most) const {
  dom::array array;
  if (element.get_array().get(array)) bad("not a list");
  std::vector<JsonNode> nodes;
  for (dom::element item : array) {
    if (nodes.size() == most) bad("more than ", most, " items");
    nodes.push_back({item, cat(place, "[", nodes.size(), "]"), what});
  }
  return nodes;
}

std::string JsonNode::name() const {
  std::string_view s;
  if (element.get_string().get(s)) bad("not a string");
  if (s.size() > kMaxMadeNameBytes) bad("longer than ", kMaxMadeNameBytes, " bytes");
  return std::string(s);
}

int64_t JsonNode::integer() const {
  if (!element.is_int64()) bad("not a 64-bit integer without point or exponent");
  const int64_t x = element.get_int64().value();
  if (x < 0) bad("must not be negative: ", x);
  return x;
}

double JsonNode::number() const {
  double x;
  if (!element.is_number() || element.get_double().get(x)) bad("not a number");
  if (!std::isfinite(x) || x < 0) bad("must be finite and not negative: ", x);
  return x;
}

bool JsonNode::flag() const {
  bool x;
  if (element.get_bool().get(x)) bad("not true or false");
  return x;
}

JsonText::JsonText(std::string_view what, std::string_view text) {
  root_.what = what;
  std::string padded;
  const auto error = parse_json(parser_, padded, text, root_.element);
  require(!error, Code::kCorruptFile, what, ": not JSON: ", simdjson::error_message(error));
  require(root_.element.is_object(), Code::kCorruptFile, what, ": not an object");
  refuse_duplicate_keys(root_);
}

}  // namespace cairn::plan
