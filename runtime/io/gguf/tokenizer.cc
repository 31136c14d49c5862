#include "runtime/io/gguf/tokenizer.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "runtime/base/text/utf8.h"
#include "runtime/io/json.h"
#include "runtime/io/limits.h"

namespace cairn::io {
namespace {

constexpr std::string_view kMark = "\xe2\x96\x81";  // a space, as sentencepiece spells it

// Types of tokens (tokenizer.ggml.token_type).
enum TokenKind : int { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

struct Splitter {
  std::string_view name, expression;
  bool digits;
  std::string_view normalizer;
  bool whole_words, begins;
};
constexpr Splitter kSplitters[] = {
#define SPLITTER(name, expression, digits, normalizer, whole_words, begins) \
  {name, expression, digits != 0, normalizer, whole_words != 0, begins != 0},
#include "runtime/io/gguf/splitters.def"
#undef SPLITTER
};

class Words {
 public:
  explicit Words(const Gguf& file) : file_(file), where_("'" + file.path().string() + "'") {
    const GgufValue* const model = find("tokenizer.ggml.model", GgufType::kText, false);
    const GgufValue* const tokens = find("tokenizer.ggml.tokens", GgufType::kText, true);
    require(model && tokens, Code::kNotFound, where_, " has no tokenizer: tokenizer.ggml.",
            model ? "tokens" : "model", " is not there");
    model_ = model->text();
    require(tokens->count <= kMaxValues, Code::kUnsupported, where_, " has ", tokens->count,
            " tokens; at most ", kMaxValues);
    const GgufValue* const types = numbers("tokenizer.ggml.token_type", tokens->count);
    scores_ = numbers("tokenizer.ggml.scores", tokens->count);
    for (uint64_t i = 0; i < tokens->count; ++i) {
      tokens_.emplace_back(tokens->text(i));
      require(is_utf8(tokens_.back()), Code::kCorruptFile, where_, ": token ", i, " is not UTF-8");
      kinds_.push_back(types ? static_cast<int>(*types->number(i)) : kNormal);
    }
  }

  std::string json() {
    struct Row {
      std::string_view name;
      std::string (Words::*json)();
    };
    static constexpr Row kRows[] = {{"gpt2", &Words::byte_level}, {"llama", &Words::marked}};
    for (const Row& row : kRows)
      if (row.name == model_) return (this->*row.json)();
    fail(Code::kUnsupported, where_, ": its tokenizer is '", model_,
         "', which is not known; known: gpt2, llama");
  }

 private:
  const GgufValue* find(std::string_view key, GgufType type, bool array) const {
    const GgufValue* const value = file_.find(key);
    if (value == nullptr) return nullptr;
    require(value->is_array() == array && value->scalar() == type, Code::kCorruptFile, where_, ": ", key,
            " is no ", array ? "list of texts" : "text");
    return value;
  }
  const GgufValue* numbers(std::string_view key, uint64_t count) const {
    const GgufValue* const value = file_.find(key);
    if (value == nullptr) return nullptr;
    require(value->is_array() && value->element != GgufType::kText && value->element != GgufType::kArray,
            Code::kCorruptFile, where_, ": ", key, " is no list of numbers");
    require(value->count == count, Code::kCorruptFile, where_, ": ", key, " has ", value->count,
            " values, of ", count, " tokens");
    return value;
  }
  bool flag(std::string_view key, bool otherwise) const {
    const GgufValue* const value = file_.find(key);
    if (value == nullptr) return otherwise;
    require(value->type == GgufType::kBool, Code::kCorruptFile, where_, ": ", key, " is no bool");
    return *value->number() != 0;
  }
  // The token that a key names; -1: none.
  int64_t special(std::string_view key) const {
    const GgufValue* const value = file_.find(key);
    if (value == nullptr) return -1;
    const std::optional<double> id = value->is_array() ? std::nullopt : value->number();
    require(id && *id >= 0 && *id < static_cast<double>(tokens_.size()), Code::kCorruptFile, where_, ": ",
            key, " is no token of the ", tokens_.size());
    return static_cast<int64_t>(*id);
  }

  // What the model's own tokenizer finds in a text before anything else.
  std::string added() const {
    Json list('[');
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const bool special = kinds_[i] == kControl || (kinds_[i] == kUnknown && model_ == "llama");
      if ((!special && kinds_[i] != kUserDefined) || tokens_[i].empty() || is_spaces(i)) continue;
      list.add(Json('{')
                   .add("id", std::to_string(i))
                   .add("content", json_text(tokens_[i]))
                   .add("special", special ? "true" : "false")
                   .add("normalized", "false")
                   .text());
    }
    return list.text();
  }
  // Runs of spaces that a vocabulary with marks spells with these.
  bool is_spaces(size_t i) const {
    return model_ == "llama" && !tokens_[i].empty() && tokens_[i].find_first_not_of(' ') == std::string::npos;
  }

  std::string vocabulary() const {
    Json object('{');
    for (size_t i = 0; i < tokens_.size(); ++i) object.add(spelled(i), std::to_string(i));
    return object.text();
  }
  std::string spelled(size_t i) const {
    if (!is_spaces(i)) return tokens_[i];
    std::string text;
    for (size_t k = 0; k < tokens_[i].size(); ++k) text += kMark;
    return text;
  }

  // Tokens around a text, in a template; "": none.
  std::string around(bool begins, bool ends) const {
    const int64_t first = begins ? special("tokenizer.ggml.bos_token_id") : -1;
    const int64_t last = ends ? special("tokenizer.ggml.eos_token_id") : -1;
    if (first < 0 && last < 0) return "";
    Json single('['), known('{');
    const auto add = [&](int64_t id) {
      if (id < 0) return;
      const std::string name = json_text(tokens_[static_cast<size_t>(id)]);
      single.add(cat(R"({"SpecialToken": {"id": )", name, R"(, "type_id": 0}})"));
      if (id == first || first < 0 || last != first)
        known.add(tokens_[static_cast<size_t>(id)],
                  cat(R"({"id": )", name, R"(, "ids": [)", id, R"(], "tokens": [)", name, "]}"));
    };
    add(first);
    single.add(R"({"Sequence": {"id": "A", "type_id": 0}})");
    add(last);
    return cat(
        R"({"type": "TemplateProcessing", "single": )", single.text(),
        R"(, "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}])",
        R"(, "special_tokens": )", known.text(), "}");
  }

  std::string byte_level() {
    const GgufValue* const merges = find("tokenizer.ggml.merges", GgufType::kText, true);
    require(merges != nullptr, Code::kCorruptFile, where_, ": a tokenizer gpt2 needs tokenizer.ggml.merges");
    const GgufValue* const pre = find("tokenizer.ggml.pre", GgufType::kText, false);
    const Splitter& splitter = splitter_of(pre ? pre->text() : "default");
    std::string pairs = "[";
    for (uint64_t i = 0; i < merges->count; ++i)
      pairs.append(i > 0 ? ", " : "").append(json_text(merges->text(i)));
    const bool own = splitter.expression.empty();
    Json steps('[');
    if (splitter.digits) steps.add(R"({"type": "Digits", "individual_digits": true})");
    if (!own)
      steps.add(cat(R"({"type": "Split", "pattern": {"Regex": )", json_text(splitter.expression),
                    R"(}, "behavior": "Isolated", "invert": false})"));
    steps.add(cat(R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": )",
                  own ? "true" : "false", "}"));
    Json posts('[');
    posts.add(R"({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false, "use_regex": true})");
    const std::string put = around(flag("tokenizer.ggml.add_bos_token", splitter.begins),
                                   flag("tokenizer.ggml.add_eos_token", false));
    if (!put.empty()) posts.add(put);
    return cat(R"({"version": "1.0", "added_tokens": )", added(), R"(, "normalizer": )",
               splitter.normalizer.empty() ? "null" : cat(R"({"type": ")", splitter.normalizer, "\"}"),
               R"(, "pre_tokenizer": {"type": "Sequence", "pretokenizers": )", steps.text(),
               R"(}, "post_processor": {"type": "Sequence", "processors": )", posts.text(),
               R"(}, "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "ignore_merges": )",
               splitter.whole_words ? "true" : "false", R"(, "vocab": )", vocabulary(), R"(, "merges": )",
               pairs, "]}}");
  }

  const Splitter& splitter_of(std::string_view name) const {
    const auto found = std::ranges::find(kSplitters, name, &Splitter::name);
    std::string known;
    for (const Splitter& row : kSplitters) known.append(known.empty() ? "" : ", ").append(row.name);
    require(found != std::end(kSplitters), Code::kUnsupported, where_, ": tokenizer.ggml.pre is '", name,
            "', a way to cut text that is not known; known: ", known);
    return *found;
  }

  // Sentencepiece's pairs: two neighbours that are a token together are merged, those with the highest score first.
  std::string marked() {
    const GgufValue* const architecture = find("general.architecture", GgufType::kText, false);
    // Gemma's scores do not follow the order in which its pairs are merged; its tokens do.
    const bool by_number = architecture && architecture->text().starts_with("gemma");
    require(scores_ || by_number, Code::kCorruptFile, where_,
            ": a tokenizer llama needs tokenizer.ggml.scores");
    const bool prefix = flag("tokenizer.ggml.add_space_prefix", true);
    const int64_t unknown = special("tokenizer.ggml.unknown_token_id");
    Json normal('['), decode('[');
    if (prefix) normal.add(cat(R"({"type": "Prepend", "prepend": ")", kMark, "\"}"));
    normal.add(cat(R"({"type": "Replace", "pattern": {"String": " "}, "content": ")", kMark, "\"}"));
    decode.add(cat(R"({"type": "Replace", "pattern": {"String": ")", kMark, R"("}, "content": " "})"))
        .add(R"({"type": "ByteFallback"})")
        .add(R"({"type": "Fuse"})");
    if (prefix) decode.add(R"({"type": "Strip", "content": " ", "start": 1, "stop": 0})");
    const std::string put =
        around(flag("tokenizer.ggml.add_bos_token", true), flag("tokenizer.ggml.add_eos_token", false));
    return cat(R"({"version": "1.0", "added_tokens": )", added(),
               R"(, "normalizer": {"type": "Sequence", "normalizers": )", normal.text(),
               R"(}, "post_processor": )", put.empty() ? "null" : put,
               R"(, "decoder": {"type": "Sequence", "decoders": )", decode.text(),
               R"(}, "model": {"type": "BPE", "unk_token": )",
               unknown < 0 ? "null" : json_text(tokens_[static_cast<size_t>(unknown)]),
               R"(, "fuse_unk": true, "byte_fallback": true, "vocab": )", vocabulary(), R"(, "merges": )",
               merges(by_number), "}}");
  }

  std::string merges(bool by_number) const {
    static constexpr uint64_t kMostWork = uint64_t{1} << 32;  // bytes that are looked up
    struct Merge {
      double score;
      uint32_t token, left_size, left_letters, right_letters;
      int64_t left, right;
    };
    std::vector<std::string> texts(tokens_.size());
    std::unordered_map<std::string_view, int64_t> numbers;
    uint64_t work = 0;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      texts[i] = spelled(i);
      numbers.insert_or_assign(texts[i], static_cast<int64_t>(i));
      work += texts[i].size() * texts[i].size();
    }
    require(work <= kMostWork, Code::kUnsupported, where_,
            ": its tokens are too long to find how they are merged");
    std::vector<Merge> found;
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::string_view text = texts[i];
      const size_t first = found.size();
      const auto letters = [](std::string_view part) {
        return static_cast<uint32_t>(std::ranges::count_if(part, [](char c) { return (c & 0xc0) != 0x80; }));
      };
      const uint32_t all = letters(text);
      uint32_t before = 0;
      for (size_t at = 0; at < text.size();) {
        at += utf8_size(text.substr(at));
        ++before;
        if (at == text.size()) break;
        const auto left = numbers.find(text.substr(0, at)), right = numbers.find(text.substr(at));
        if (left == numbers.end() || right == numbers.end()) continue;
        const double score = by_number ? -static_cast<double>(i) : *scores_->number(i);
        found.push_back({score, static_cast<uint32_t>(i), static_cast<uint32_t>(at), before, all - before,
                         left->second, right->second});
      }
      std::stable_sort(found.begin() + static_cast<std::ptrdiff_t>(first), found.end(),
                       [](const Merge& a, const Merge& b) {
                         return std::pair(a.left, a.right) < std::pair(b.left, b.right);
                       });
    }
    std::stable_sort(found.begin(), found.end(), [](const Merge& a, const Merge& b) {
      return std::tuple(a.score, a.left_letters, a.right_letters) >
             std::tuple(b.score, b.left_letters, b.right_letters);
    });
    std::string out = "[";
    for (const Merge& merge : found) {
      const std::string_view text = texts[merge.token];
      out.append(out.size() > 1 ? ", [" : "[")
          .append(json_text(text.substr(0, merge.left_size)))
          .append(", ");
      out.append(json_text(text.substr(merge.left_size))).append("]");
    }
    return out + "]";
  }

  const Gguf& file_;
  std::string where_;
  std::string_view model_;
  std::vector<std::string> tokens_;
  std::vector<int> kinds_;
  const GgufValue* scores_ = nullptr;
};

}  // namespace

std::string gguf_tokenizer_json(const Gguf& file) { return Words(file).json(); }

}  // namespace cairn::io
