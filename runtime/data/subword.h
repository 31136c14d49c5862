// Tokenizers from sentencepiece models.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/data.h"
#include "runtime/data/vocabulary.h"

namespace cairn::data {

// Cuts plain text (see split_text) into the pieces of a vocabulary.
class Segmenter {
 public:
  virtual ~Segmenter() = default;
  // Appends the tokens of `text`: their bytes together are `text`. Characters that no piece covers go by
  // bytes.
  virtual void append(std::string_view text, std::vector<int32_t>& tokens) const = 0;
};

// Merges neighbours, the pair with the highest score first, the leftmost of several. The vocabulary must
// outlive it.
std::unique_ptr<Segmenter> merge_segmenter(const Vocabulary& vocabulary, const std::string& where);
// The sequence of pieces with the highest sum of scores. The vocabulary must outlive it.
std::unique_ptr<Segmenter> unigram_segmenter(const Vocabulary& vocabulary, const std::string& where);

// The tokenizer of a model file's content; errors as parse_model(), naming `where`.
std::unique_ptr<Tokenizer> subword_tokenizer(std::string file, const std::string& where);

}  // namespace cairn::data
