// A value from JSON, with the order of its keys.
#include <simdjson.h>

#include "runtime/data/template/run.h"

namespace cairn::templates {
namespace {

namespace dom = simdjson::dom;

Value text_value(Meter* meter, std::string_view text) {
  return Value::of(Kind::kText, std::make_shared<Text>(meter, std::string(text)));
}

Value from(Meter* meter, dom::element element) {
  meter->step();
  switch (element.type()) {
    case dom::element_type::NULL_VALUE:
      return Value::none();
    case dom::element_type::BOOL:
      return Value::boolean(element.get_bool().value_unsafe());
    case dom::element_type::INT64:
      return Value::integer(element.get_int64().value_unsafe());
    case dom::element_type::DOUBLE:
      return Value::real(element.get_double().value_unsafe());
    case dom::element_type::STRING:
      return text_value(meter, element.get_string().value_unsafe());
    case dom::element_type::UINT64:
      wrong("the number ", element.get_uint64().value_unsafe(), " is above 2^63 - 1");
    case dom::element_type::ARRAY: {
      const dom::array array = element.get_array().value_unsafe();
      std::vector<Value> values;
      for (const dom::element each : array) values.push_back(from(meter, each));
      return Value::of(Kind::kList, std::make_shared<Items>(meter, std::move(values)));
    }
    case dom::element_type::OBJECT: {
      const dom::object object = element.get_object().value_unsafe();
      Pairs pairs;
      for (const auto& [key, each] : object) pairs.add(text_value(meter, key), from(meter, each));
      return Value::of(Kind::kDict, std::make_shared<Dict>(meter, pairs.take()));
    }
  }
  return Value::none();
}

constexpr size_t kMostDepth = 180;

}  // namespace

Value from_json(Meter* meter, std::string_view text) {
  dom::parser parser;
  dom::element root;
  // The parser reads beyond the text. It hides that it had no memory for a copy of its own, so the copy is made here.
  std::string padded;
  padded.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  padded.assign(text).resize(text.size() + simdjson::SIMDJSON_PADDING);
  auto error = parser.allocate(text.size(), kMostDepth);
  if (!error) error = parser.parse(padded.data(), text.size(), false).get(root);
  require(error != simdjson::MEMALLOC, Code::kOutOfMemory, "no memory for the JSON of the values");
  require(!error, Code::kInvalidArgument, "the values are no JSON: ", simdjson::error_message(error));
  require(root.is_object(), Code::kInvalidArgument, "the values are JSON, but not an object");
  return from(meter, root);
}

}  // namespace cairn::templates
