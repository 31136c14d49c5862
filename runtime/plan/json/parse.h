// Text parsed by simdjson. That library hides want of memory: its own copy of the text is then a null pointer
// that it goes on to read, or the error is one among those of bad text. Here it is std::bad_alloc.
#pragma once
#include <simdjson.h>

#include <new>
#include <string>
#include <string_view>

namespace cairn::plan {

// The parser wants readable bytes behind the text, so that goes into `padded` first.
inline simdjson::error_code parse_json(simdjson::dom::parser& parser, std::string& padded,
                                       std::string_view text, simdjson::dom::element& root) {
  padded.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  padded = text;
  padded.append(simdjson::SIMDJSON_PADDING, '\0');
  const simdjson::error_code error = parser.parse(padded.data(), text.size(), false).get(root);
  if (error == simdjson::MEMALLOC) throw std::bad_alloc();
  return error;
}

}  // namespace cairn::plan
