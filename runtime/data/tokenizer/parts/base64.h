// Bytes in JSON.
#pragma once
#include <string>

#include "runtime/data/tokenizer/parts/json.h"

namespace cairn::tokenizer {

std::string from_base64(const Json& json);

}  // namespace cairn::tokenizer
