// Several texts at once, with keys and values of what was read in caches of the store. One thread at a time.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/exec/session.h"
#include "runtime/generate/sampler.h"

namespace cairn::generate {

inline constexpr int32_t kNoToken = -1;

class Generator {
 public:
  // Sessions on one store, which it keeps. vocabulary: of the tokenizer, where logits have more columns; 0: all of them.
  // kInvalidArgument: of other forms than README.md says; kWrongState: not one store.
  explicit Generator(std::vector<std::shared_ptr<engine::Session>> sessions, int64_t vocabulary = 0);

  int64_t samples() const { return samples_; }        // B: texts at once
  int64_t vocabulary() const { return vocabulary_; }  // V
  // Tokens that fit into the caches of a sample; nothing: they are all rings, and it has no end.
  std::optional<int64_t> capacity() const { return capacity_; }
  int64_t cache_bytes() const { return cache_bytes_; }

  // A sample begins with these tokens, in the place of what it had. kInvalidArgument: there is none, one is outside the
  // vocabulary, or they do not fit into the cache; a number of `sampling`.
  void begin(int64_t sample, std::span<const int32_t> prompt, const Sampling& sampling);
  // The same for a text that begins as what the sample has: keys and values of the tokens that both begin with are kept, so the
  // rest is read token by token. A cache that is a ring goes on where all that was read is kept, and is begun anew otherwise.
  void extend(int64_t sample, std::span<const int32_t> text, const Sampling& sampling);
  void end(int64_t sample);  // it makes no more tokens
  // A token for each sample that began: out[B], kNoToken for the others. Prompts that came new are read first.
  // kInvalidArgument: the cache of one is full. kNonFinite: logits are. Errors of Session::run. After an error all samples
  // are as before, and next() may be called again.
  void next(std::span<int32_t> out);
  // The text of a sample so far, prompt and all; the token that was made last is in it.
  std::span<const int32_t> text(int64_t sample) const { return at(sample).tokens; }
  // Logits[V] that the last token of a sample was drawn from; empty before the first.
  std::span<const float> logits(int64_t sample) const;

  struct Work {
    double seconds = 0;
    int64_t tokens = 0;
  };
  const Work& prefill() const { return prefill_; }  // prompts
  const Work& decode() const { return decode_; }    // tokens after the first of each sample

 private:
  struct Program {
    std::shared_ptr<engine::Session> session;
    int64_t length;  // T
    int32_t tokens, logits;
    int32_t position = -1, positions = -1, count = -1, lengths = -1, last = -1;
  };
  struct Sample {
    std::vector<int32_t> tokens = {};
    int64_t read = 0;  // tokens whose keys and values are in the caches
    bool active = false;
    Sampling sampling = {};
    std::vector<float> logits = {};
  };

  Program program(std::shared_ptr<engine::Session> session) const;
  void find_caches();
  // Reads the next tokens of each sample, so many of them; adds to Sample::read. Leaves logits of those that are read to their end.
  // prompts: a prompt is among them, which counts with its seconds.
  void read(const Program& program, std::span<const int64_t> counts, bool prompts);
  Sample& at(int64_t sample);
  const Sample& at(int64_t sample) const { return const_cast<Generator*>(this)->at(sample); }

  std::vector<Program> programs_;  // by length; the first decodes
  std::vector<Sample> all_;
  int64_t samples_ = 0, vocabulary_ = 0, cache_bytes_ = 0;
  std::optional<int64_t> capacity_;
  bool rings_ = false;  // a cache keeps the last tokens alone
  uint64_t runs_ = 0;
  Sampler sampler_;
  std::vector<std::byte> row_;  // of logits, as the device has them
  Work prefill_, decode_;
};

}  // namespace cairn::generate
