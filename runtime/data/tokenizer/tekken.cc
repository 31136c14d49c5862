// Mistral's tekken.json: tokens as bytes by rank. What two tokens make together is made first where its rank is the least.
#include "runtime/data/tokenizer/parts/base64.h"
#include "runtime/data/tokenizer/pipeline.h"

namespace cairn::tokenizer {
namespace {

// The names that files without a list of special tokens have; the rest is <SPECIAL_n>.
constexpr std::string_view kSpecials[] = {"<unk>",
                                          "<s>",
                                          "</s>",
                                          "[INST]",
                                          "[/INST]",
                                          "[AVAILABLE_TOOLS]",
                                          "[/AVAILABLE_TOOLS]",
                                          "[TOOL_RESULTS]",
                                          "[/TOOL_RESULTS]",
                                          "[TOOL_CALLS]",
                                          "[IMG]",
                                          "<pad>",
                                          "[IMG_BREAK]",
                                          "[IMG_END]",
                                          "[PREFIX]",
                                          "[MIDDLE]",
                                          "[SUFFIX]",
                                          "[SYSTEM_PROMPT]",
                                          "[/SYSTEM_PROMPT]",
                                          "[TOOL_CONTENT]"};

constexpr int64_t kMostSpecials = 1 << 16;

std::string spelled(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) append_rune(text, character_of_byte(static_cast<uint8_t>(byte)));
  return text;
}

int64_t bounded(const Json& json, int64_t least) {
  const int64_t value = json.whole();
  if (value < least || value >= kMostTokens)
    json.bad("is ", value, "; it must be in ", least, "..", kMostTokens - 1);
  return value;
}

std::vector<std::string> special_names(const Json& root, int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i)
    names.push_back(i < std::ssize(kSpecials) ? std::string(kSpecials[i]) : cat("<SPECIAL_", i, ">"));
  if (!root.has("special_tokens")) return names;
  for (const Json& item : root.at("special_tokens").list()) {
    const int64_t rank = bounded(item.at("rank"), 0);
    if (rank >= count) item.bad("its rank is ", rank, "; there are ", count, " special tokens");
    names[static_cast<size_t>(rank)] = item.text("token_str");
  }
  return names;
}

}  // namespace

std::unique_ptr<data::Tokenizer> tekken_tokenizer(std::string file, const std::string& where) {
  const JsonFile json(file, where);
  const Json &root = json.root(), config = root.at("config");
  const int64_t specials = bounded(config.at("default_num_special_tokens"), 0);
  if (specials > kMostSpecials) config.bad(specials, " special tokens; the most is ", kMostSpecials);
  const int64_t size = bounded(config.at("default_vocab_size"), specials);
  Parts parts;
  Tokens tokens;
  std::vector<AddedToken> added;
  for (const std::string& name : special_names(root, specials)) {
    tokens.add(name, static_cast<int32_t>(added.size()));
    added.push_back({name, false, false, false, false, true});
  }
  std::vector<std::string> texts;  // of ranks
  for (const auto element : root.at("vocab").array()) {
    if (std::ssize(texts) == size - specials) break;
    const Json item = root.inside(element, cat(".vocab[", texts.size(), "]"));
    if (item.at("rank").whole() != std::ssize(texts))
      item.bad("its rank is ", item.at("rank").whole(), ", not ", texts.size());
    texts.push_back(spelled(from_base64(item.at("token_bytes"))));
    tokens.add(texts.back(), static_cast<int32_t>(specials + std::ssize(texts) - 1));
  }
  for (int byte = 0; byte < 256; ++byte)
    if (tokens.find(spelled(std::string(1, static_cast<char>(byte)))) < 0)
      root.bad("its vocab has no token for the byte ", byte);
  BpeSettings settings;
  settings.whole_words = settings.byte_level = true;
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    const std::string_view text = texts[rank];
    if (text.size() > kMostTokenBytes) root.bad("token ", rank, " has more than ", kMostTokenBytes, " bytes");
    for (size_t at = rune_size(text[0]); at < text.size(); at += rune_size(text[at]))
      if (tokens.find(text.substr(0, at)) >= specials && tokens.find(text.substr(at)) >= specials)
        settings.merges.push_back({text.substr(0, at), text.substr(at), static_cast<uint32_t>(rank)});
  }
  parts.added.add(added, tokens, nullptr);
  if (const int32_t begin = tokens.find("<s>"); begin >= 0 && begin < specials) parts.post.before = {begin};
  parts.model = bpe_model(std::move(tokens), settings);
  parts.pre_tokenizer = splitting_into_bytes(config.text("pattern"), config.place());
  parts.decoder = bytes_decoder();
  return pipeline_tokenizer(std::move(parts), std::move(file));
}

}  // namespace cairn::tokenizer
