// Text to tokens to batches. A batch is a pure function of (seed, epoch, index): resuming is O(1).
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace cairn::data {

// The part of a text that a token stands for, in bytes.
struct Offset {
  uint32_t begin, end;
  bool operator==(const Offset&) const = default;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual int32_t vocabulary() const = 0;
  virtual std::string kind() const = 0;  // "bytes", "bpe", "pretrained"
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  virtual std::string decode(
      std::span<const int32_t> tokens) const = 0;                  // kInvalidArgument: outside the vocabulary
  virtual void save(const std::filesystem::path& path) const = 0;  // bytes: writes nothing

  // With the tokens that the tokenizer puts around a text (`special`), and what part of it each stands for (offsets, unless null).
  // Those that stand for nothing, and tokens of bytes and bpe whose text is none, are at no bytes.
  virtual std::vector<int32_t> encode_with(std::string_view text, bool special,
                                           std::vector<Offset>* offsets) const;
  // Without special tokens (`skip_special`). What is no UTF-8 becomes U+FFFD unless `raw`, as far as the tokenizer knows bytes.
  virtual std::string decode_with(std::span<const int32_t> tokens, bool skip_special, bool raw) const;
  virtual std::string token(int32_t id) const;         // as its vocabulary spells it; "": there is none
  virtual int32_t find(std::string_view token) const;  // the token that is spelled so; -1: none
};
// The tokenizer of a published model: a directory, or a file, with tokenizer.json, tekken.json, sentencepiece's tokenizer.model, or
// GPT-2's vocab.json next to merges.txt. Its tokens are those of the libraries that made these files. kCorruptFile; kUnsupported: it
// has a part that is not known; kNotFound: no such file is there.
std::unique_ptr<Tokenizer> load_pretrained(const std::filesystem::path& path);
// That of the text of a tokenizer.json. where: what messages call it.
std::unique_ptr<Tokenizer> pretrained_tokenizer(std::string json, const std::string& where);
std::unique_ptr<Tokenizer> bytes_tokenizer();
// Byte-pair vocabularies in sentencepiece's model format (bpe and unigram, with byte fallback). Lossless:
// encode then decode gives the same bytes, because text is segmented as it is: nothing is normalised, and no
// space is put in front, whatever the model's normaliser says. kInvalidArgument: a vocabulary too small or
// too large for the text, naming the limit; kCorruptFile: no such model, or one without all 256 bytes;
// kUnsupported: word or char models.
std::unique_ptr<Tokenizer> train_bpe(const std::filesystem::path& text, int32_t vocabulary);
std::unique_ptr<Tokenizer> load_bpe(const std::filesystem::path& model);

// Writes a token file: header (magic, version, vocabulary, count, XXH3-128), then u16 or i32 tokens. Streams;
// durable. kIo: text cannot be read; kInvalidArgument: it is empty.
void write_tokens(const std::filesystem::path& text, const Tokenizer& tokenizer,
                  const std::filesystem::path& out);

// A token file (or random tokens), cut into windows of length + 1. kCorruptFile: foreign, truncated or
// flipped; kInvalidArgument: shorter than one window. Windows are read when they are asked for: kIo or
// kCorruptFile, and no signal, if the file is cut short or changed meanwhile.
class Dataset {
 public:
  static std::unique_ptr<Dataset> open(const std::filesystem::path& token_file, int32_t length);
  static std::unique_ptr<Dataset> random(uint64_t seed, int32_t vocabulary, int32_t length);

  virtual ~Dataset() = default;
  virtual int32_t vocabulary() const = 0;
  virtual int64_t tokens() const = 0;
  virtual int64_t windows() const = 0;  // per epoch
  int32_t length() const { return length_; }

  // Window number `index` of an epoch in shuffled order: inputs[length], targets[length] (the next token).
  // The order is a keyed permutation of 0..windows-1 (Feistel network with cycle walking): O(1) per index.
  void window(uint64_t seed, uint64_t epoch, int64_t index, int32_t* inputs, int32_t* targets) const;
  // Micro-batch number `index` counted from the start of training: rows = batch windows; epochs follow each
  // other; the last micro-batch of an epoch may have fewer rows: returns rows filled, the rest is token 0
  // with target `ignore` (so its weight is 0).
  int64_t batch(uint64_t seed, uint64_t index, int64_t batch, int32_t* inputs, int32_t* targets,
                int32_t ignore) const;
  int64_t batches_per_epoch(int64_t batch) const { return (windows() + batch - 1) / batch; }

 protected:
  explicit Dataset(int32_t length) : length_(length) {}
  virtual void raw(int64_t window, uint64_t epoch, int32_t* tokens) const = 0;  // length + 1 tokens
  int32_t length_;
};

// Position of `index` in a pseudo-random permutation of [0, count) keyed by (seed, epoch).
int64_t permute(uint64_t seed, uint64_t epoch, int64_t index, int64_t count);

}  // namespace cairn::data
