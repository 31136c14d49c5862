// The parts that tokenizer files are made of. Each kind has a table: a row is a name and how it is made of its JSON.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/tokenizer/models/model.h"
#include "runtime/data/tokenizer/parts/aligned.h"
#include "runtime/data/tokenizer/parts/json.h"

namespace cairn::tokenizer {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(Aligned& text) const = 0;
  virtual bool keeps(std::string_view) const { return false; }  // whether the text would surely stay as it is
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(Document& document) const = 0;
  // Called where the model takes bytes: ByteLevel's alphabet is not written out then. False: other parts need it written.
  virtual bool leave_bytes() { return true; }
  virtual bool spells_bytes() const { return false; }  // whether it is ByteLevel, or ends with it
};

// What stands around the tokens of a text, and how offsets are trimmed.
struct PostProcessing {
  struct Trim {
    bool prefix_space;
  };
  std::vector<Trim> trims;
  std::vector<int32_t> before, after;
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual void apply(std::vector<std::string>& tokens) const = 0;
  virtual bool joins_bytes() const { return false; }  // whether it is ByteLevel alone
};

// All throw kUnsupported naming a part that is not known, kCorruptFile for one that is not as it must be.
std::unique_ptr<Normalizer> read_normalizer(const Json& json);
std::unique_ptr<PreTokenizer> read_pre_tokenizer(const Json& json);
std::unique_ptr<Decoder> read_decoder(const Json& json);
PostProcessing read_post_processor(const Json& json);
// byte_level: whether words may come as bytes; set to whether the model takes them so.
std::unique_ptr<Model> read_model(const Json& json, bool& byte_level);

// What a vocabulary of bytes has: cut by a regular expression, and tokens' bytes together.
std::unique_ptr<PreTokenizer> splitting_into_bytes(std::string_view expression, const std::string& place);
std::unique_ptr<Decoder> bytes_decoder();

// A normalizer of sentencepiece's rules, as `precompiled_charsmap` has them.
std::unique_ptr<Normalizer> charsmap_normalizer(std::string blob);

}  // namespace cairn::tokenizer
