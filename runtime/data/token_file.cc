#include "runtime/data/token_file.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "runtime/base/os/file.h"
#include "runtime/base/random.h"
#include "runtime/data/data.h"

namespace cairn::data {

uint64_t header_digest(const TokenHeader& header) {
  return XXH3_64bits(&header, offsetof(TokenHeader, header_digest));
}

namespace {

constexpr size_t kChunkBytes = size_t{4} << 20;

// Where the chunk at the head of `text` ends: after the last of several newlines, because text is cut there anyhow;
// without one at kChunkBytes, but not inside a UTF-8 character.
size_t chunk_end(std::string_view text) {
  if (text.size() <= kChunkBytes) return text.size();
  for (size_t at = kChunkBytes; at > 0; --at)
    if (text[at - 1] == '\n' && text[at] != '\n') return at;
  size_t end = kChunkBytes;
  while (end > kChunkBytes - 4 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;
  return end;
}

// A text file, chunk by chunk: one byte more than a chunk is in memory, so that its end can be told.
class Chunks {
 public:
  explicit Chunks(const InputFile& file) : file_(file) {}
  std::string_view head() {
    const uint64_t wanted = std::min<uint64_t>(kChunkBytes + 1, file_.size() - begin_);
    const size_t kept = text_.size();
    text_.resize(wanted);
    file_.read(begin_ + kept, text_.data() + kept, wanted - kept);
    return std::string_view(text_).substr(0, chunk_end(text_));
  }
  void drop(size_t bytes) {
    text_.erase(0, bytes);
    begin_ += bytes;
  }
  bool done() const { return begin_ == file_.size(); }

 private:
  const InputFile& file_;
  std::string text_;
  uint64_t begin_ = 0;  // of text_ in the file
};

template <class T>
void append_as(DurableFile& file, XXH3_state_t* state, const std::vector<int32_t>& tokens) {
  std::vector<T> stored(tokens.begin(), tokens.end());
  XXH3_128bits_update(state, stored.data(), stored.size() * sizeof(T));
  file.append(stored.data(), stored.size() * sizeof(T));
}

class TokenFile final : public Dataset {
 public:
  TokenFile(const std::filesystem::path& path, int32_t length)
      : Dataset(length), file_(path), where_("token file '" + path.string() + "'") {
    require(file_.size() >= sizeof header_, Code::kCorruptFile, where_, " has ", file_.size(),
            " bytes, fewer than its header");
    file_.read(0, &header_, sizeof header_);
    require(header_.magic == kTokenMagic, Code::kCorruptFile, where_, ": not a token file");
    require(header_.version == kTokenVersion, Code::kCorruptFile, where_, ": version ", header_.version,
            " is not known; this library reads version ", kTokenVersion);
    require(header_.header_digest == header_digest(header_), Code::kCorruptFile, where_,
            ": the header's digest differs");
    require((header_.token_bytes == 2 || header_.token_bytes == 4) && header_.vocabulary >= 1 &&
                header_.vocabulary <= static_cast<uint32_t>(std::numeric_limits<int32_t>::max()) &&
                header_.reserved == 0 && header_.reserved2 == 0,
            Code::kCorruptFile, where_, ": the header is not valid");
    const uint64_t payload = file_.size() - sizeof header_;
    require(header_.count == payload / header_.token_bytes && payload % header_.token_bytes == 0,
            Code::kCorruptFile, where_, " has ", payload, " bytes of tokens where its header says ",
            header_.count, " tokens of ", header_.token_bytes);
    header_.token_bytes == 2 ? check_tokens<uint16_t>() : check_tokens<int32_t>();
    require(length >= 1, Code::kInvalidArgument, "a window of ", length, " tokens");
    require(header_.count >= static_cast<uint64_t>(length) + 1, Code::kInvalidArgument, where_, " has ",
            header_.count, " tokens, fewer than one window of ", length, " + 1");
  }
  int32_t vocabulary() const override { return static_cast<int32_t>(header_.vocabulary); }
  int64_t tokens() const override { return static_cast<int64_t>(header_.count); }
  int64_t windows() const override { return (tokens() - 1) / length_; }

 protected:
  void raw(int64_t window, uint64_t, int32_t* to) const override {
    header_.token_bytes == 2 ? read<uint16_t>(window, to) : read<int32_t>(window, to);
  }

 private:
  template <class T>
  void check_tokens() const {
    const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                                XXH3_freeState);
    require(state != nullptr, Code::kOutOfMemory, "no memory for a digest");
    XXH3_128bits_reset(state.get());
    std::vector<T> piece(std::min<uint64_t>(kChunkBytes / sizeof(T), header_.count));
    uint64_t strange = header_.count;  // the first one that is not in the vocabulary
    uint32_t strange_token = 0;
    for (uint64_t at = 0; at < header_.count; at += piece.size()) {
      const uint64_t n = std::min<uint64_t>(piece.size(), header_.count - at);
      file_.read(sizeof header_ + at * sizeof(T), piece.data(), n * sizeof(T));
      XXH3_128bits_update(state.get(), piece.data(), n * sizeof(T));
      for (uint64_t i = 0; i < n && strange == header_.count; ++i)
        if (static_cast<uint32_t>(piece[i]) >= header_.vocabulary) {
          strange = at + i;
          strange_token = static_cast<uint32_t>(piece[i]);
        }
    }
    const XXH128_hash_t digest = XXH3_128bits_digest(state.get());
    require(digest.low64 == header_.digest_low && digest.high64 == header_.digest_high, Code::kCorruptFile,
            where_, ": the tokens' digest differs");
    require(strange == header_.count, Code::kCorruptFile, where_, ": token ", static_cast<T>(strange_token),
            " at position ", strange, " is outside the vocabulary of ", header_.vocabulary);
  }

  // The file may change under us: a kernel must not see a token outside the vocabulary.
  template <class T>
  void read(int64_t window, int32_t* to) const {
    const size_t count = static_cast<size_t>(length_) + 1;
    const uint64_t first = static_cast<uint64_t>(window) * static_cast<uint64_t>(length_);
    // Narrower tokens are read into the end of the place and widened from its beginning.
    auto* const from = reinterpret_cast<std::byte*>(to) + count * (sizeof(int32_t) - sizeof(T));
    file_.read(sizeof header_ + first * sizeof(T), from, count * sizeof(T));
    for (size_t i = 0; i < count; ++i) {
      T token;
      std::memcpy(&token, from + i * sizeof(T), sizeof token);
      require(static_cast<uint32_t>(token) < header_.vocabulary, Code::kCorruptFile, where_,
              " was changed while it was in use: token ", token, " at position ", first + i,
              " is outside the vocabulary of ", header_.vocabulary);
      to[i] = static_cast<int32_t>(token);
    }
  }

  InputFile file_;
  std::string where_;
  TokenHeader header_;
};

class RandomTokens final : public Dataset {
 public:
  RandomTokens(uint64_t seed, int32_t vocabulary, int32_t length)
      : Dataset(length), seed_(seed), vocabulary_(vocabulary) {
    require(vocabulary >= 1, Code::kInvalidArgument, "a vocabulary of ", vocabulary);
    require(length >= 1, Code::kInvalidArgument, "a window of ", length, " tokens");
  }
  int32_t vocabulary() const override { return vocabulary_; }
  int64_t tokens() const override { return windows() * length_ + 1; }
  int64_t windows() const override { return int64_t{1} << 20; }

 protected:
  void raw(int64_t window, uint64_t epoch, int32_t* to) const override {
    const uint64_t step = epoch * static_cast<uint64_t>(windows()) + static_cast<uint64_t>(window);
    const RandomKey key{.seed = seed_, .step = step, .micro = 0, .op = 0x746F6B65u};
    PhiloxBlock block{};
    for (int32_t i = 0; i <= length_; ++i) {
      if (i % 4 == 0) block = random_block(key, static_cast<uint64_t>(i) / 4);
      to[i] = static_cast<int32_t>(static_cast<uint64_t>(block[i % 4]) * static_cast<uint32_t>(vocabulary_) >>
                                   32);
    }
  }

 private:
  uint64_t seed_;
  int32_t vocabulary_;
};

}  // namespace

void write_tokens(const std::filesystem::path& text, const Tokenizer& tokenizer,
                  const std::filesystem::path& out) {
  const InputFile source(text);
  require(source.size() > 0, Code::kInvalidArgument, "text '", text.string(), "' is empty");
  TokenHeader header;
  header.vocabulary = static_cast<uint32_t>(tokenizer.vocabulary());
  header.token_bytes = tokenizer.vocabulary() <= kMaxVocabularyOfU16 ? 2 : 4;
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              XXH3_freeState);
  require(state != nullptr, Code::kOutOfMemory, "no memory for a digest");
  XXH3_128bits_reset(state.get());

  DurableFile file(out);
  file.append(&header, sizeof header);
  for (Chunks chunks(source); !chunks.done();) {
    const std::string_view chunk = chunks.head();
    const std::vector<int32_t> tokens = tokenizer.encode(chunk);
    chunks.drop(chunk.size());
    header.count += tokens.size();
    header.token_bytes == 2 ? append_as<uint16_t>(file, state.get(), tokens)
                            : append_as<int32_t>(file, state.get(), tokens);
  }
  const XXH128_hash_t digest = XXH3_128bits_digest(state.get());
  header.digest_low = digest.low64;
  header.digest_high = digest.high64;
  header.header_digest = header_digest(header);
  file.write_at(0, &header, sizeof header);
  file.commit();
}

std::unique_ptr<Dataset> Dataset::open(const std::filesystem::path& token_file, int32_t length) {
  return std::make_unique<TokenFile>(token_file, length);
}

std::unique_ptr<Dataset> Dataset::random(uint64_t seed, int32_t vocabulary, int32_t length) {
  return std::make_unique<RandomTokens>(seed, vocabulary, length);
}

}  // namespace cairn::data
