// Text parsed by simdjson. That library hides a failed allocation: its own copy of the text is then a null pointer
// that it goes on to read, or the error is one of those for bad text. Here it is std::bad_alloc.
#pragma once
#include <simdjson.h>

#include <string>
#include <string_view>

namespace cairn::plan {

// The parser needs readable bytes after the text, so the text is copied into `padded` first.
simdjson::error_code parse_json(simdjson::dom::parser& parser, std::string& padded, std::string_view text,
                                simdjson::dom::element& root);

}  // namespace cairn::plan
