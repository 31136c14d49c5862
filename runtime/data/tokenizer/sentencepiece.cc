// sentencepiece's tokenizer.model as that library reads it: text is normalised by the model's rules, cut by pairs or by scores.
#include <algorithm>
#include <cfloat>

#include "runtime/base/os/file.h"
#include "runtime/data/model.h"
#include "runtime/data/tokenizer/parts/charsmap.h"
#include "runtime/data/tokenizer/pipeline.h"
#include "runtime/data/tokenizer/sentencepiece_pairs.h"

namespace cairn::tokenizer {
namespace {

constexpr std::string_view kMark = data::kSpaceMark;
constexpr float kUnknownPenalty = 10.0f;

class SentencePiece final : public data::Tokenizer {
 public:
  SentencePiece(std::string file, const std::string& where)
      : file_(std::move(file)), model_(data::parse_model(file_, where, false)) {
    require(!model_.denormalizes, Code::kUnsupported, where,
            ": rules that change decoded text are not known");
    if (!model_.charsmap.empty()) charsmap_ = std::make_unique<Charsmap>(std::string(model_.charsmap), where);
    std::fill(std::begin(byte_ids_), std::end(byte_ids_), -1);
    for (size_t i = 0; i < model_.pieces.size(); ++i) {
      const auto id = static_cast<int32_t>(i);
      const data::Piece& piece = model_.pieces[i];
      const bool normal = piece.type == data::PieceType::kNormal ||
                          piece.type == data::PieceType::kUserDefined ||
                          piece.type == data::PieceType::kUnused;
      require((normal ? pieces_ : reserved_).find(piece.text) < 0, Code::kCorruptFile, where, ": the piece '",
              piece.text.substr(0, 64), "' appears twice");
      (normal ? pieces_ : reserved_).add(piece.text, id);
      if (normal) trie_.add(piece.text, id);
      if (piece.type == data::PieceType::kUserDefined) fixed_.add(piece.text, id);
      if (piece.type == data::PieceType::kUnknown) unknown_ = id;
      if (piece.type == data::PieceType::kByte) byte_ids_[data::byte_of(piece.text)] = id;
      if (piece.type != data::PieceType::kNormal) continue;
      least_ = std::min(least_, piece.score);
      most_ = std::max(most_, piece.score);
    }
  }

  int32_t vocabulary() const override { return static_cast<int32_t>(model_.pieces.size()); }
  std::string kind() const override { return "pretrained"; }
  void save(const std::filesystem::path& path) const override {
    write_file_durably(path, std::as_bytes(std::span(file_.data(), file_.size())));
  }
  std::vector<int32_t> encode(std::string_view text) const override {
    return encode_with(text, false, nullptr);
  }

  std::vector<int32_t> encode_with(std::string_view given, bool,
                                   std::vector<data::Offset>* offsets) const override {
    std::vector<Span> spans;
    const bool itself = is_well_formed(given);
    const std::string mended = itself ? std::string() : repaired(given, &spans);
    Normal normal;
    normalize(itself ? given : std::string_view(mended), normal);
    std::vector<Piece> found;
    if (model_.algorithm == data::Algorithm::kBpe)
      cut_by_scored_pairs(normal.text, model_, pieces_, fixed_, unknown_, found);
    else
      cut_by_scores(normal.text, found);
    std::vector<int32_t> ids;
    if (offsets != nullptr) offsets->clear();
    const auto given_at = [&](uint32_t at) {
      return itself ? at : at < spans.size() ? spans[at].begin : static_cast<uint32_t>(given.size());
    };
    bool was_unknown = false;
    for (const Piece& piece : found) {
      const uint32_t begin = given_at(normal.from[piece.begin]), end = given_at(normal.from[piece.end]);
      const bool unknown = piece.id == unknown_, joins = unknown && was_unknown && !model_.byte_fallback;
      was_unknown = unknown;
      if (unknown && model_.byte_fallback) {
        for (uint32_t at = piece.begin; at < piece.end; ++at) {
          ids.push_back(byte_ids_[static_cast<uint8_t>(normal.text[at])]);
          if (offsets != nullptr) offsets->push_back({begin, at + 1 == piece.end ? end : begin});
        }
        continue;
      }
      if (!joins) ids.push_back(piece.id);
      if (offsets == nullptr) continue;
      if (joins)
        offsets->back().end = end;
      else
        offsets->push_back({begin, end});
    }
    return ids;
  }

  std::string decode(std::span<const int32_t> tokens) const override {
    return decode_with(tokens, false, true);
  }

  std::string decode_with(std::span<const int32_t> tokens, bool, bool raw) const override {
    std::string out, bytes;
    const auto settle = [&] {
      for (size_t at = 0, size; at < bytes.size(); at += size) {
        const std::string_view rest = std::string_view(bytes).substr(at);
        size = rune_size(rest[0]) <= rest.size() && is_well_formed(rest.substr(0, rune_size(rest[0])))
                   ? rune_size(rest[0])
                   : 1;
        const bool good = size > 1 || static_cast<uint8_t>(rest[0]) < 0x80;
        out += good || raw ? rest.substr(0, size) : "\xEF\xBF\xBD";
      }
      bytes.clear();
    };
    bool at_head = true, took_space = false;
    for (size_t i = 0; i < tokens.size(); ++i) {
      require(tokens[i] >= 0 && tokens[i] < vocabulary(), Code::kInvalidArgument, "token ", tokens[i],
              " at position ", i, " is outside the vocabulary of ", vocabulary());
      const data::Piece& piece = model_.pieces[tokens[i]];
      if (piece.type == data::PieceType::kByte) {
        bytes += static_cast<char>(data::byte_of(piece.text));
        continue;
      }
      settle();
      if (took_space || !out.empty()) at_head = false;
      took_space = false;
      if (piece.type == data::PieceType::kControl) continue;
      if (piece.type == data::PieceType::kUnknown) {
        out += model_.unknown_surface;
        continue;
      }
      std::string_view text = piece.text;
      if (at_head && (model_.add_dummy_prefix || model_.remove_extra_whitespaces) &&
          text.starts_with(kMark)) {
        text.remove_prefix(kMark.size());
        took_space = !model_.remove_extra_whitespaces;  // where all leading spaces go, the next one does, too
      }
      append_spaced(text, out);
    }
    settle();
    return out;
  }

  std::string token(int32_t id) const override {
    return id >= 0 && id < vocabulary() ? std::string(model_.pieces[id].text) : std::string();
  }
  int32_t find(std::string_view token) const override {
    const int32_t id = reserved_.find(token);
    return id >= 0 ? id : pieces_.find(token);
  }

 private:
  // Normalised text, and where each of its bytes, and its end, was in the text.
  struct Normal {
    std::string text;
    std::vector<uint32_t> from;
  };

  static void append_spaced(std::string_view text, std::string& out) {
    for (size_t at = 0; at < text.size();) {
      const bool mark = text.substr(at).starts_with(kMark);
      out += mark ? ' ' : text[at];
      at += mark ? kMark.size() : 1;
    }
  }

  // What the head of the text becomes, and how many bytes of it.
  std::string_view head(std::string_view text, size_t& size) const {
    int32_t id;
    if (size = fixed_.longest(text, id); size > 0) return text.substr(0, size);
    std::string_view made;
    if (charsmap_ != nullptr && charsmap_->find(text, true, size, made)) return made;
    size = rune_size(text[0]);
    return text.substr(0, size);
  }

  void normalize(std::string_view text, Normal& out) const {
    if (text.empty()) return out.from.assign(1, 0);
    uint32_t consumed = 0;
    size_t size = 0;
    const auto drop = [&] {
      text.remove_prefix(size);
      consumed += static_cast<uint32_t>(size);
    };
    if (model_.remove_extra_whitespaces)
      while (!text.empty() && head(text, size) == " ") drop();
    if (text.empty()) return out.from.assign(1, consumed);
    const std::string_view space = model_.escape_whitespaces ? kMark : std::string_view(" ");
    const auto append = [&](std::string_view bytes) {
      out.text += bytes;
      out.from.resize(out.text.size(), consumed);
    };
    if (!model_.whitespace_suffix && model_.add_dummy_prefix) append(space);
    bool after_space = model_.remove_extra_whitespaces;
    for (; !text.empty(); drop()) {
      std::string_view made = head(text, size);
      while (after_space && made.starts_with(' ')) made.remove_prefix(1);
      if (!made.empty()) {
        for (const char c : made) append(c == ' ' ? space : std::string_view(&c, 1));
        after_space = made.ends_with(' ');
      }
      if (!model_.remove_extra_whitespaces) after_space = false;
    }
    if (model_.remove_extra_whitespaces)
      while (out.text.ends_with(space)) {
        consumed = out.from[out.text.size() - space.size()];
        out.text.resize(out.text.size() - space.size());
        out.from.resize(out.text.size());
      }
    if (model_.whitespace_suffix && model_.add_dummy_prefix) append(space);
    out.from.push_back(consumed);
  }

  void cut_by_scores(std::string_view text, std::vector<Piece>& out) const {
    struct Best {
      int32_t id = -1;
      float score = 0;
      uint32_t begin = UINT32_MAX;
    };
    std::vector<Best> best(text.size() + 1);
    const float unknown_score = least_ - kUnknownPenalty;
    for (size_t at = 0; at < text.size();) {
      const float here = best[at].score;
      const uint32_t single = rune_size(text[at]);
      bool has_single = false;
      const auto offer = [&](size_t end, double score, int32_t id) {
        Best& target = best[end];
        if (target.begin == UINT32_MAX || score > target.score)
          target = {id, static_cast<float>(score), static_cast<uint32_t>(at)};
      };
      trie_.prefixes(text.substr(at), [&](int32_t id, size_t bytes) {
        const data::Piece& piece = model_.pieces[id];
        if (piece.type == data::PieceType::kUnused) return;
        // The library's own arithmetic: in float, but for the bonus of a piece that a user wants.
        const bool wanted = piece.type == data::PieceType::kUserDefined;
        const double score =
            wanted ? static_cast<float>(bytes) * most_ - 0.1 : static_cast<double>(piece.score);
        offer(at + bytes, static_cast<float>(score + here), id);
        has_single = has_single || bytes == single;
      });
      if (!has_single) offer(at + single, unknown_score + here, unknown_);
      at += single;
    }
    for (auto end = static_cast<uint32_t>(text.size()); end > 0; end = best[end].begin)
      out.push_back({best[end].id, best[end].begin, end});
    std::reverse(out.begin(), out.end());
  }

  std::string file_;
  data::Model model_;
  std::unique_ptr<Charsmap> charsmap_;
  Tokens pieces_, reserved_;
  Trie trie_, fixed_;
  int32_t unknown_ = -1;
  int32_t byte_ids_[256];
  float least_ = FLT_MAX, most_ = FLT_MIN;
};

}  // namespace

std::unique_ptr<data::Tokenizer> sentencepiece_tokenizer(std::string file, const std::string& where) {
  return std::make_unique<SentencePiece>(std::move(file), where);
}

}  // namespace cairn::tokenizer
