// Text parsed by simdjson. That library hides want of memory: its own copy of the text is then a null pointer
// that it goes on to read, or the error is one among those of bad text. Here it is std::bad_alloc.
#pragma once
#include <simdjson.h>

#include <string>
#include <string_view>

namespace cairn::plan {

// The parser wants readable bytes after the text, so that goes into `padded` first.
simdjson::error_code parse_json(simdjson::dom::parser& parser, std::string& padded, std::string_view text,
                                simdjson::dom::element& root);

}  // namespace cairn::plan
