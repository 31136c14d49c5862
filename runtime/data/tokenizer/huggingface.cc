// tokenizer.json of Hugging Face's `tokenizers`; and GPT-2's two files, which say as much as one.
#include "runtime/data/tokenizer/pipeline.h"

namespace cairn::tokenizer {
namespace {

std::vector<AddedToken> read_added(const Json& json) {
  std::vector<AddedToken> tokens;
  for (const Json& item : json.list()) {
    AddedToken token{std::string(item.text("content"))};
    token.single_word = item.flag("single_word", false);
    token.lstrip = item.flag("lstrip", false);
    token.rstrip = item.flag("rstrip", false);
    token.special = item.flag("special", false);
    token.normalized = item.flag("normalized", !token.special);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

Parts read_parts(const Json& root) {
  Parts parts;
  if (root.has("version") && root.text("version") != "1.0")
    fail(Code::kUnsupported, root.place(), ": version ", root.text("version"), " is not known; 1.0 is");
  if (root.has("normalizer")) parts.normalizer = read_normalizer(root.at("normalizer"));
  if (root.has("pre_tokenizer")) parts.pre_tokenizer = read_pre_tokenizer(root.at("pre_tokenizer"));
  if (root.has("post_processor")) parts.post = read_post_processor(root.at("post_processor"));
  if (root.has("decoder")) parts.decoder = read_decoder(root.at("decoder"));
  bool byte_level = parts.pre_tokenizer != nullptr && parts.pre_tokenizer->spells_bytes();
  parts.model = read_model(root.at("model"), byte_level);
  if (byte_level) parts.pre_tokenizer->leave_bytes();
  if (root.has("added_tokens"))
    parts.added.add(read_added(root.at("added_tokens")), parts.model->tokens(), parts.normalizer.get());
  return parts;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace

std::unique_ptr<data::Tokenizer> huggingface_tokenizer(std::string file, const std::string& where) {
  const JsonFile json(file, where);
  try {
    return pipeline_tokenizer(read_parts(json.root()), std::move(file));
  } catch (const Error& error) {
    if (std::string_view(error.what()).starts_with(where)) throw;
    fail_as(error.code(), error, where, ": ");
  }
}

std::unique_ptr<data::Tokenizer> gpt2_tokenizer(std::string_view vocabulary, std::string_view merges,
                                                const std::string& where) {
  require(is_well_formed(merges), Code::kCorruptFile, where, ": its merges are not UTF-8");
  std::string pairs;
  for (size_t at = 0; at < merges.size();) {
    const size_t end = std::min(merges.find('\n', at), merges.size());
    std::string_view line = merges.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    at = end + 1;
    if (line.empty() || line.starts_with("#version")) continue;
    for (const char c : line)
      require(static_cast<uint8_t>(c) >= 0x20, Code::kCorruptFile, where,
              ": a merge has a control character");
    pairs.append(pairs.empty() ? "" : ",").append(quoted(line));
  }
  static constexpr std::string_view kParts =
      R"({"version":"1.0","pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},
"decoder":{"type":"ByteLevel"},"post_processor":{"type":"ByteLevel","trim_offsets":false},)";
  // GPT-2's only special token is in its vocabulary.
  const std::string_view special =
      vocabulary.find("\"<|endoftext|>\"") == std::string_view::npos
          ? ""
          : R"("added_tokens":[{"content":"<|endoftext|>","special":true,"normalized":false}],)";
  return huggingface_tokenizer(
      cat(kParts, special, R"("model":{"type":"BPE","vocab":)", vocabulary, R"(,"merges":[)", pairs, "]}}"),
      where);
}

}  // namespace cairn::tokenizer
