#include <algorithm>

#include "runtime/data/tokenizer/parts/part.h"
#include "runtime/data/tokenizer/parts/pattern.h"

namespace cairn::tokenizer {
namespace {

using Texts = std::vector<std::string>;

std::string replaced(std::string_view text, std::string_view what, std::string_view with) {
  std::string out;
  size_t at = 0;
  for (size_t found; !what.empty() && (found = text.find(what, at)) != std::string_view::npos;
       at = found + what.size())
    out.append(text.substr(at, found - at)).append(with);
  return out.append(text.substr(at));
}

struct Cleaning {
  std::string_view what, with;
};
std::string cleaned(std::string text) {
  static constexpr Cleaning kRows[] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                       {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                       {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const Cleaning& row : kRows) text = replaced(text, row.what, row.with);
  return text;
}

std::string joined(const Texts& texts) {
  std::string all;
  for (const std::string& text : texts) all += text;
  return all;
}

class ByteLevel final : public Decoder {
 public:
  void apply(Texts& tokens) const override {
    std::string all, bytes;
    for (const std::string& token : tokens) all += spelled_bytes(token, bytes) ? bytes : token;
    tokens = {repaired(all, nullptr)};
  }
  bool joins_bytes() const override { return true; }
};

class BpeDecoder final : public Decoder {
 public:
  explicit BpeDecoder(const Json& json) : suffix_(json.text("suffix")) {}
  void apply(Texts& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = replaced(tokens[i], suffix_, i + 1 == tokens.size() ? "" : " ");
  }

 private:
  std::string suffix_;
};

class WordPieceDecoder final : public Decoder {
 public:
  explicit WordPieceDecoder(const Json& json)
      : prefix_(json.text("prefix")), cleans_(json.at("cleanup").flag()) {}
  void apply(Texts& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0)
        tokens[i] = tokens[i].starts_with(prefix_) ? tokens[i].substr(prefix_.size()) : " " + tokens[i];
      if (cleans_) tokens[i] = cleaned(std::move(tokens[i]));
    }
  }

 private:
  std::string prefix_;
  bool cleans_;
};

class MetaspaceDecoder final : public Decoder {
 public:
  explicit MetaspaceDecoder(const Json& json)
      : mark_(json.text("replacement")),
        prefixed_(json.flag("add_prefix_space", true) && json.text("prepend_scheme", "always") != "never") {}
  void apply(Texts& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = replaced(tokens[i], mark_, i == 0 && prefixed_ ? "" : " ");
  }

 private:
  std::string mark_;
  bool prefixed_;
};

class ByteFallback final : public Decoder {
 public:
  void apply(Texts& tokens) const override {
    Texts out;
    std::string bytes;
    const auto settle = [&] {
      if (bytes.empty()) return;
      if (is_well_formed(bytes))
        out.push_back(bytes);
      else
        out.resize(out.size() + bytes.size(), "\xEF\xBF\xBD");
      bytes.clear();
    };
    for (std::string& token : tokens) {
      const int byte = byte_of(token);
      if (byte >= 0) {
        bytes += static_cast<char>(byte);
        continue;
      }
      settle();
      out.push_back(std::move(token));
    }
    settle();
    tokens.swap(out);
  }

 private:
  static int byte_of(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
    int value = 0;
    for (const char c : token.substr(3, 2)) {
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                               : -1;
      if (digit < 0) return -1;
      value = value * 16 + digit;
    }
    return value;
  }
};

class Fuse final : public Decoder {
 public:
  void apply(Texts& tokens) const override { tokens = {joined(tokens)}; }
};

class Strip final : public Decoder {
 public:
  explicit Strip(const Json& json)
      : content_(json.text("content")), start_(json.at("start").whole()), stop_(json.at("stop").whole()) {
    if (only_rune(content_) < 0) json.bad("its content '", content_, "' is not one character");
  }
  void apply(Texts& tokens) const override {
    for (std::string& token : tokens) {
      std::string_view rest = token;
      for (int64_t i = 0; i < start_ && rest.starts_with(content_); ++i) rest.remove_prefix(content_.size());
      // What was cut off at the start is still looked at from the end, as in the library.
      std::string_view tail = token;
      for (int64_t i = 0; i < stop_ && tail.ends_with(content_); ++i) tail.remove_suffix(content_.size());
      const size_t begin = token.size() - rest.size();
      token = tail.size() > begin ? token.substr(begin, tail.size() - begin) : std::string();
    }
  }

 private:
  std::string content_;
  int64_t start_, stop_;
};

class ReplaceDecoder final : public Decoder {
 public:
  explicit ReplaceDecoder(const Json& json) : pattern_(json.at("pattern")), content_(json.text("content")) {}
  void apply(Texts& tokens) const override {
    std::vector<Span> found;
    for (std::string& token : tokens) {
      pattern_.find_all(token, found);
      std::string out;
      size_t at = 0;
      for (const Span& span : found) {
        out.append(token, at, span.begin - at).append(content_);
        at = span.end;
      }
      token = out.append(token, at);
    }
  }

 private:
  Pattern pattern_;
  std::string content_;
};

class Ctc final : public Decoder {
 public:
  explicit Ctc(const Json& json)
      : pad_(json.text("pad_token")),
        delimiter_(json.text("word_delimiter_token")),
        cleans_(json.at("cleanup").flag()) {}
  void apply(Texts& tokens) const override {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (std::string& token : tokens) {
      token = replaced(token, pad_, "");
      if (cleans_) token = replaced(cleaned(std::move(token)), delimiter_, " ");
    }
    std::erase_if(tokens, [](const std::string& token) { return token.empty(); });
  }

 private:
  std::string pad_, delimiter_;
  bool cleans_;
};

class Sequence final : public Decoder {
 public:
  explicit Sequence(const Json& json) {
    for (const Json& item : json.at("decoders").list()) parts_.push_back(read_decoder(item));
  }
  void apply(Texts& tokens) const override {
    for (const auto& part : parts_) part->apply(tokens);
  }
  bool joins_bytes() const override { return parts_.size() == 1 && parts_[0]->joins_bytes(); }

 private:
  std::vector<std::unique_ptr<Decoder>> parts_;
};

struct Row {
  std::string_view name;
  std::unique_ptr<Decoder> (*make)(const Json&);
};
template <class Part>
std::unique_ptr<Decoder> of(const Json& json) {
  return std::make_unique<Part>(json);
}
template <class Part>
std::unique_ptr<Decoder> plain(const Json&) {
  return std::make_unique<Part>();
}

constexpr Row kRows[] = {
    {"BPEDecoder", of<BpeDecoder>},
    {"ByteFallback", plain<ByteFallback>},
    {"ByteLevel", plain<ByteLevel>},
    {"CTC", of<Ctc>},
    {"Fuse", plain<Fuse>},
    {"Metaspace", of<MetaspaceDecoder>},
    {"Replace", of<ReplaceDecoder>},
    {"Sequence", of<Sequence>},
    {"Strip", of<Strip>},
    {"WordPiece", of<WordPieceDecoder>},
};

}  // namespace

std::unique_ptr<Decoder> read_decoder(const Json& json) { return json.made(kRows, "decoder"); }
std::unique_ptr<Decoder> bytes_decoder() { return std::make_unique<ByteLevel>(); }

}  // namespace cairn::tokenizer
