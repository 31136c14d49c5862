#include "runtime/data/token_file.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "runtime/data/data.h"

namespace cairn::data {

uint64_t header_digest(const TokenHeader& header) {
  return XXH3_64bits(&header, offsetof(TokenHeader, header_digest));
}

namespace {

constexpr size_t kChunkBytes = size_t{4} << 20;

// Where the chunk at the head of `text` ends: at a newline, because no token crosses one; without a newline
// at kChunkBytes, but not inside a UTF-8 character.
size_t chunk_end(std::string_view text) {
  if (text.size() <= kChunkBytes) return text.size();
  const size_t newline = text.rfind('\n', kChunkBytes - 1);
  if (newline != std::string_view::npos) return newline + 1;
  size_t end = kChunkBytes;
  while (end > kChunkBytes - 4 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;
  return end;
}

template <class T>
void append_as(DurableFile& file, XXH3_state_t* state, const std::vector<int32_t>& tokens) {
  std::vector<T> stored(tokens.begin(), tokens.end());
  XXH3_128bits_update(state, stored.data(), stored.size() * sizeof(T));
  file.append(stored.data(), stored.size() * sizeof(T));
}

class TokenFile final : public Dataset {
 public:
  TokenFile(const std::filesystem::path& path, int32_t length) : Dataset(length), file_(path) {
    const auto bytes = file_.bytes();
    const std::string where = "token file '" + path.string() + "'";
    require(bytes.size() >= sizeof header_, Code::kCorruptFile, where, " has ", bytes.size(),
            " bytes, fewer than its header");
    std::memcpy(&header_, bytes.data(), sizeof header_);
    require(header_.magic == kTokenMagic, Code::kCorruptFile, where, ": not a token file");
    require(header_.version == kTokenVersion, Code::kCorruptFile, where, ": version ", header_.version,
            " is not known; this library reads version ", kTokenVersion);
    require(header_.header_digest == header_digest(header_), Code::kCorruptFile, where,
            ": the header's digest differs");
    require((header_.token_bytes == 2 || header_.token_bytes == 4) && header_.vocabulary >= 1 &&
                header_.vocabulary <= static_cast<uint32_t>(std::numeric_limits<int32_t>::max()) &&
                header_.reserved == 0 && header_.reserved2 == 0,
            Code::kCorruptFile, where, ": the header is not valid");
    const uint64_t payload = bytes.size() - sizeof header_;
    require(header_.count == payload / header_.token_bytes && payload % header_.token_bytes == 0,
            Code::kCorruptFile, where, " has ", payload, " bytes of tokens where its header says ",
            header_.count, " tokens of ", header_.token_bytes);
    tokens_ = bytes.data() + sizeof header_;
    const XXH128_hash_t digest = XXH3_128bits(tokens_, payload);
    require(digest.low64 == header_.digest_low && digest.high64 == header_.digest_high, Code::kCorruptFile,
            where, ": the tokens' digest differs");
    header_.token_bytes == 2 ? check_vocabulary<uint16_t>(where) : check_vocabulary<int32_t>(where);
    require(length >= 1, Code::kInvalidArgument, "a window of ", length, " tokens");
    require(header_.count >= static_cast<uint64_t>(length) + 1, Code::kInvalidArgument, where, " has ",
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
  void check_vocabulary(const std::string& where) const {
    const T* tokens = reinterpret_cast<const T*>(tokens_);
    for (uint64_t i = 0; i < header_.count; ++i)
      if (static_cast<uint32_t>(tokens[i]) >= header_.vocabulary) [[unlikely]]
        fail(Code::kCorruptFile, where, ": token ", tokens[i], " at position ", i,
             " is outside the vocabulary of ", header_.vocabulary);
  }
  template <class T>
  void read(int64_t window, int32_t* to) const {
    const T* from = reinterpret_cast<const T*>(tokens_) + window * length_;
    std::copy_n(from, length_ + 1, to);
  }

  MappedFile file_;
  TokenHeader header_;
  const std::byte* tokens_ = nullptr;
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
  const MappedFile source(text);
  require(!source.bytes().empty(), Code::kInvalidArgument, "text '", text.string(), "' is empty");
  TokenHeader header;
  header.vocabulary = static_cast<uint32_t>(tokenizer.vocabulary());
  header.token_bytes = tokenizer.vocabulary() <= kMaxVocabularyOfU16 ? 2 : 4;
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              XXH3_freeState);
  require(state != nullptr, Code::kOutOfMemory, "no memory for a digest");
  XXH3_128bits_reset(state.get());

  DurableFile file(out);
  file.append(&header, sizeof header);
  std::string_view rest(reinterpret_cast<const char*>(source.bytes().data()), source.bytes().size());
  while (!rest.empty()) {
    const size_t end = chunk_end(rest);
    const std::vector<int32_t> tokens = tokenizer.encode(rest.substr(0, end));
    rest.remove_prefix(end);
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
