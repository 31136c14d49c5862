// The tokenizer of a GGUF file.
#pragma once
#include <string>

#include "runtime/io/gguf/gguf.h"

namespace cairn::io {

// As a tokenizer.json, which cuts text as the model's own does. kUnsupported: a kind or a splitter that is not known, by
// its name; kCorruptFile: its parts contradict each other; kNotFound: the file has none.
std::string gguf_tokenizer_json(const Gguf& file);

}  // namespace cairn::io
