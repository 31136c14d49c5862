// A tokenizer made of parts.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/data.h"
#include "runtime/data/tokenizer/parts/added.h"
#include "runtime/data/tokenizer/parts/part.h"

namespace cairn::tokenizer {

struct Parts {
  std::unique_ptr<Normalizer> normalizer;       // null: none
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // null: none
  std::unique_ptr<Model> model;
  PostProcessing post;
  std::unique_ptr<Decoder> decoder;  // null: texts with spaces between
  AddedTokens added;
};

// `file` is what save() writes.
std::unique_ptr<data::Tokenizer> pipeline_tokenizer(Parts parts, std::string file);

// The tokenizers of files' contents. kCorruptFile and kUnsupported naming `where` and the place in it.
std::unique_ptr<data::Tokenizer> huggingface_tokenizer(std::string file, const std::string& where);
std::unique_ptr<data::Tokenizer> gpt2_tokenizer(std::string_view vocabulary, std::string_view merges,
                                                const std::string& where);
std::unique_ptr<data::Tokenizer> tekken_tokenizer(std::string file, const std::string& where);
std::unique_ptr<data::Tokenizer> sentencepiece_tokenizer(std::string file, const std::string& where);

}  // namespace cairn::tokenizer
