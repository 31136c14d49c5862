#include "runtime/data/tokenizer/pipeline.h"

#include <algorithm>

#include "runtime/base/os/file.h"
#include "runtime/data/tokenizer/unicode/classes.h"

namespace cairn::tokenizer {
namespace {

// What a call works in. Calls of several threads have one each; what a call leaves in it, words that it knows, serves the next.
struct Workspace {
  Document document;
  Scratch scratch;
  std::vector<Piece> pieces;
};

class Workspaces {
 public:
  std::unique_ptr<Workspace> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Workspace>();
    auto taken = std::move(free_.back());
    free_.pop_back();
    return taken;
  }
  void give(std::unique_ptr<Workspace> workspace) {
    const std::lock_guard lock(mutex_);
    if (free_.size() < kMost) free_.push_back(std::move(workspace));
  }

 private:
  static constexpr size_t kMost = 16;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> free_;
};

class Pipeline final : public data::Tokenizer {
 public:
  Pipeline(Parts parts, std::string file) : parts_(std::move(parts)), file_(std::move(file)) {
    size_ = std::max(parts_.model->tokens().size(), parts_.added.size());
    for (const auto* list : {&parts_.post.before, &parts_.post.after})
      for (const int32_t id : *list)
        require(id < size_, Code::kCorruptFile, "the post-processor adds token ", id, "; there are ", size_);
    Classes::get();
  }

  int32_t vocabulary() const override { return size_; }
  std::string kind() const override { return "pretrained"; }
  void save(const std::filesystem::path& path) const override {
    write_file_durably(path, std::as_bytes(std::span(file_.data(), file_.size())));
  }

  std::vector<int32_t> encode(std::string_view text) const override {
    return encode_with(text, false, nullptr);
  }

  std::vector<int32_t> encode_with(std::string_view text, bool special,
                                   std::vector<data::Offset>* offsets) const override {
    auto workspace = workspaces_.take();
    std::vector<int32_t> ids;
    if (special) ids = parts_.post.before;
    if (offsets != nullptr) offsets->assign(ids.size(), {0, 0});
    cut(text, *workspace, ids, offsets);
    if (special) {
      ids.insert(ids.end(), parts_.post.after.begin(), parts_.post.after.end());
      if (offsets != nullptr) offsets->resize(ids.size(), {0, 0});
    }
    workspaces_.give(std::move(workspace));
    return ids;
  }

  std::string decode(std::span<const int32_t> tokens) const override {
    return decode_with(tokens, false, true);
  }

  std::string decode_with(std::span<const int32_t> tokens, bool skip_special, bool raw) const override {
    std::vector<std::string> texts;
    std::string bytes;
    const bool joins = parts_.decoder != nullptr && parts_.decoder->joins_bytes();
    for (size_t i = 0; i < tokens.size(); ++i) {
      require(tokens[i] >= 0 && tokens[i] < size_, Code::kInvalidArgument, "token ", tokens[i],
              " at position ", i, " is outside the vocabulary of ", size_);
      const std::string* const added = parts_.added.text(tokens[i]);
      if (added == nullptr && !parts_.model->tokens().has(tokens[i])) continue;
      const std::string_view text =
          added != nullptr ? std::string_view(*added) : parts_.model->tokens().text(tokens[i]);
      if (skip_special && parts_.added.is_special(text)) continue;
      if (!joins) {
        texts.emplace_back(text);
      } else if (const std::string_view* own = added == nullptr ? parts_.model->bytes_of(tokens[i]) : nullptr;
                 own != nullptr) {
        bytes += *own;
      } else {
        std::string spelled;
        bytes += spelled_bytes(text, spelled) ? std::string_view(spelled) : text;
      }
    }
    if (joins) return raw || is_well_formed(bytes) ? bytes : repaired(bytes, nullptr);
    if (parts_.decoder != nullptr) parts_.decoder->apply(texts);
    std::string out;
    for (size_t i = 0; i < texts.size(); ++i)
      out.append(i > 0 && parts_.decoder == nullptr ? " " : "").append(texts[i]);
    return out;
  }

  std::string token(int32_t id) const override {
    if (const std::string* const added = parts_.added.content(id); added != nullptr) return *added;
    return std::string(parts_.model->tokens().text(id));
  }
  int32_t find(std::string_view token) const override {
    const int32_t added = parts_.added.find(token);
    return added >= 0 ? added : parts_.model->tokens().find(token);
  }

 private:
  void cut(std::string_view text, Workspace& work, std::vector<int32_t>& ids,
           std::vector<data::Offset>* offsets) const {
    Document& document = work.document;
    document.open(text);
    parts_.added.extract(document, false);
    if (parts_.normalizer != nullptr)
      document.change([&](std::string_view part) { return parts_.normalizer->keeps(part); },
                      [&](Aligned& part) { parts_.normalizer->apply(part); });
    parts_.added.extract(document, true);
    if (parts_.pre_tokenizer != nullptr) parts_.pre_tokenizer->apply(document);
    const size_t first = ids.size();
    for (const Part& part : document.parts) {
      work.pieces.clear();
      if (part.token >= 0)
        work.pieces.push_back({part.token, part.begin, part.end});
      else
        parts_.model->cut(document.text(part), part.begin, work.scratch, work.pieces);
      const size_t before = ids.size();
      for (const Piece& piece : work.pieces) ids.push_back(piece.id);
      if (offsets == nullptr) continue;
      for (const Piece& piece : work.pieces) {
        const Span span = document.span_of_piece(part, piece.begin, piece.end);
        offsets->push_back({span.begin, span.end});
      }
      if (!parts_.post.trims.empty())
        trim(text, part.token < 0 ? std::string_view() : document.text(part), before == first,
             {ids.data() + before, ids.size() - before}, offsets->data() + before);
    }
  }

  // Takes white space off the offsets of tokens that begin or end with it, but for a space that was put in front of the text.
  void trim(std::string_view given, std::string_view added, bool first, std::span<const int32_t> ids,
            data::Offset* offsets) const {
    const auto is_space = [](char32_t code) {
      return code == character_of_byte(' ') || Classes::get().is(code, kSpace);
    };
    for (size_t i = 0; i < ids.size(); ++i) {
      const std::string_view token = added.data() != nullptr ? added : parts_.model->tokens().text(ids[i]);
      size_t leading = 0, trailing = 0;
      for (size_t at = 0; at < token.size();) {
        const Rune rune = rune_at(token.data() + at);
        if (!is_space(rune.code)) break;
        at += rune.size;
        ++leading;
      }
      for (size_t at = token.size(); at > 0;) {
        const Rune rune = rune_before(token.data(), token.data() + at);
        if (!is_space(rune.code)) break;
        at -= rune.size;
        ++trailing;
      }
      auto& [begin, end] = offsets[i];
      for (const PostProcessing::Trim& row : parts_.post.trims) {
        const bool put_in_front = ((first && i == 0) || begin == 0) && row.prefix_space && leading == 1;
        for (size_t left = put_in_front ? 0 : leading; left > 0 && begin < end; --left)
          begin += static_cast<uint32_t>(unit_size(given.substr(begin)));
        for (size_t left = trailing; left > 0 && end > begin; --left)
          end -= static_cast<uint32_t>(unit_size_before(given, end));
      }
    }
  }

  Parts parts_;
  std::string file_;
  int32_t size_;
  mutable Workspaces workspaces_;
};

}  // namespace

std::unique_ptr<data::Tokenizer> pipeline_tokenizer(Parts parts, std::string file) {
  return std::make_unique<Pipeline>(std::move(parts), std::move(file));
}

}  // namespace cairn::tokenizer
