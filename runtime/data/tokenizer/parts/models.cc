// The models of tokenizer files. Files of the first years do not say which they have; what is in them does.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "runtime/data/tokenizer/parts/part.h"

namespace cairn::tokenizer {
namespace {

Tokens read_vocabulary(const Json& json) {
  Tokens tokens;
  for (const auto [text, id] : json.at("vocab").object()) {
    const int64_t number = json.inside(id, ".vocab").whole();
    if (number < 0 || number >= kMostTokens)
      json.bad("the token '", text.substr(0, 64), "' has the number ", number);
    tokens.add(text, static_cast<int32_t>(number));
  }
  return tokens;
}

BpeSettings::Merge read_merge(const Json& json, uint32_t rank) {
  if (!json.is_text()) {
    const std::vector<Json> pair = json.list();
    if (pair.size() != 2) json.bad("a merge has two tokens, not ", pair.size());
    return {pair[0].text(), pair[1].text(), rank};
  }
  const std::string_view text = json.text();
  const size_t space = text.find(' ');
  if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
    json.bad("'", text.substr(0, 64), "' is not two tokens with a space between");
  return {text.substr(0, space), text.substr(space + 1), rank};
}

bool spells_all_bytes(const Tokens& tokens) {
  for (int byte = 0; byte < 256; ++byte) {
    std::string text;
    append_rune(text, character_of_byte(static_cast<uint8_t>(byte)));
    if (tokens.find(text) < 0) return false;
  }
  return true;
}

std::unique_ptr<Model> read_bpe(const Json& json, bool& byte_level) {
  if (json.has("dropout") && json.at("dropout").number() != 0)
    fail(Code::kUnsupported, json.place(), ": dropout=", json.at("dropout").number(),
         " would cut the same text differently each time; set it to null");
  Tokens tokens = read_vocabulary(json);
  BpeSettings settings;
  settings.has_unknown = json.has("unk_token");
  settings.unknown = json.text("unk_token", "");
  settings.prefix = json.text("continuing_subword_prefix", "");
  settings.suffix = json.text("end_of_word_suffix", "");
  settings.fuse_unknown = json.flag("fuse_unk", false);
  settings.byte_fallback = json.flag("byte_fallback", false);
  settings.whole_words = json.flag("ignore_merges", false);
  uint32_t line = 0;
  for (const auto item : json.at("merges").array()) {
    const Json merge = json.inside(item, cat(".merges[", line++, "]"));
    if (merge.is_text() && merge.text().starts_with("#version")) continue;
    settings.merges.push_back(read_merge(merge, static_cast<uint32_t>(settings.merges.size())));
  }
  byte_level = byte_level && settings.prefix.empty() && settings.suffix.empty() && spells_all_bytes(tokens);
  settings.byte_level = byte_level;
  return bpe_model(std::move(tokens), settings);
}

std::unique_ptr<Model> read_wordpiece(const Json& json, bool& byte_level) {
  byte_level = false;
  WordPieceSettings settings;
  settings.unknown = json.text("unk_token");
  settings.prefix = json.text("continuing_subword_prefix");
  settings.most_characters =
      static_cast<uint64_t>(std::max<int64_t>(0, json.at("max_input_chars_per_word").whole()));
  return wordpiece_model(read_vocabulary(json), settings);
}

std::unique_ptr<Model> read_wordlevel(const Json& json, bool& byte_level) {
  byte_level = false;
  return wordlevel_model(read_vocabulary(json), std::string(json.text("unk_token")));
}

// A number as the `tokenizers` library reads it: its digits as a whole number, divided by a power of ten, which can be a bit off.
// Sums of scores that would be equal differ by that.
double read_roughly(double exact) {
  char text[32];
  const auto end =
      std::to_chars(text, text + sizeof text, std::abs(exact), std::chars_format::scientific).ptr;
  uint64_t digits = 0;
  int exponent = 0;
  const char* at = text;
  for (bool behind_point = false; at < end && *at != 'e'; ++at) {
    if (*at == '.') {
      behind_point = true;
      continue;
    }
    digits = digits * 10 + static_cast<uint64_t>(*at - '0');
    exponent -= behind_point;
  }
  int written = 0;
  if (at < end) std::from_chars(at + (at[1] == '+' ? 2 : 1), end, written);
  exponent += written;
  if (exponent < -22 || exponent > 22) return exact;
  static constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                       1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  const auto whole = static_cast<double>(digits);
  return std::copysign(exponent < 0 ? whole / kPowers[-exponent] : whole * kPowers[exponent], exact);
}

std::unique_ptr<Model> read_unigram(const Json& json, bool& byte_level) {
  byte_level = false;
  Tokens tokens;
  UnigramSettings settings;
  for (const auto item : json.at("vocab").array()) {
    const std::vector<Json> pair = json.inside(item, cat(".vocab[", tokens.size(), "]")).list();
    if (pair.size() != 2) json.bad("piece ", tokens.size(), " is not a text and its score");
    tokens.add_again(pair[0].text(), tokens.size());
    settings.scores.push_back(read_roughly(pair[1].number()));
  }
  if (json.has("unk_id")) {
    const int64_t unknown = json.at("unk_id").whole();
    if (unknown < 0 || unknown >= tokens.size())
      json.bad("unk_id is ", unknown, "; there are ", tokens.size(), " pieces");
    settings.unknown = static_cast<int32_t>(unknown);
  }
  settings.byte_fallback = json.flag("byte_fallback", false);
  return unigram_model(std::move(tokens), std::move(settings));
}

struct Reader {
  std::unique_ptr<Model> (*read)(const Json&, bool&);
};
struct Row {
  std::string_view name;
  std::unique_ptr<Model> (*read)(const Json&, bool&);
  std::string_view own_key;  // a key that tells it from those below
  Reader make(const Json&) const { return {read}; }
};
constexpr Row kRows[] = {
    {"BPE", read_bpe, "merges"},
    {"WordPiece", read_wordpiece, "max_input_chars_per_word"},
    {"Unigram", read_unigram, "unk_id"},
    {"WordLevel", read_wordlevel, "vocab"},
};

}  // namespace

std::unique_ptr<Model> read_model(const Json& json, bool& byte_level) {
  if (json.has("type")) return json.made(kRows, "model").read(json, byte_level);
  for (const Row& row : kRows)
    if (json.has(row.own_key)) return row.read(json, byte_level);
  json.bad("is no model: it has no type, and no vocab");
}

}  // namespace cairn::tokenizer
