// Chapter 9: text, token by token.
#ifndef CAIRN_CPP_GENERATOR_HPP_
#define CAIRN_CPP_GENERATOR_HPP_

#include <string>
#include <vector>

#include "session.hpp"

namespace cairn {
inline namespace CAIRN_HPP_NAMESPACE {

// cairn_sampling_t, whose numbers change nothing until they are set.
struct Sampling : cairn_sampling_t {
  Sampling() : cairn_sampling_t CAIRN_SAMPLING_INIT {}
  // A token from logits that the caller has. seen: the text so far. errors: NON_FINITE (logits).
  Outcome<int32_t> draw(Span<const float> logits, Span<const int32_t> seen) const {
    int32_t token = 0;
    return detail::call(
        {},
        [&](auto* error) {
          return cairn_sampling_draw(this, logits.data(), logits.size(), seen.data(), seen.size(), &token,
                                     error);
        },
        [&] { return token; });
  }
};

// Several texts at once. It counts as its sessions: one call at a time.
class Generator : public detail::Handle<cairn_generator_t, cairn_generator_retain, cairn_generator_release> {
 public:
  using Handle::Handle;
  // Of sessions on one store, which it keeps: one program for one token of each sample, others for prompts. vocabulary: tokens to
  // draw from, where there are more logits; 0: all. errors: WRONG_STATE (sessions of several stores).
  static Outcome<Generator> create(const std::vector<Session>& sessions, uint32_t vocabulary = 0) {
    std::vector<cairn_session_t*> raw;
    for (const Session& session : sessions) raw.push_back(session.get());
    return detail::make<Generator>({}, [&](auto* out, auto* error) {
      return cairn_generator_create(raw.data(), raw.size(), vocabulary, out, error);
    });
  }
  // A sample begins with this prompt, instead of what it had.
  Outcome<void> begin(uint32_t sample, Span<const int32_t> prompt, const Sampling& sampling = {}) {
    return detail::call({}, [&](auto* error) {
      return cairn_generator_begin(handle_, sample, prompt.data(), prompt.size(), &sampling, error);
    });
  }
  // The same for a text that begins as what the sample has: what both begin with is not read again.
  Outcome<void> extend(uint32_t sample, Span<const int32_t> text, const Sampling& sampling = {}) {
    return detail::call({}, [&](auto* error) {
      return cairn_generator_extend(handle_, sample, text.data(), text.size(), &sampling, error);
    });
  }
  Outcome<void> end(uint32_t sample) {
    return detail::call({}, [&](auto* error) { return cairn_generator_end(handle_, sample, error); });
  }
  // The next token of each sample that began, -1 of others. blocks: for the runs. errors: NON_FINITE, those of Session::run.
  Outcome<std::vector<int32_t>> next() {
    std::vector<int32_t> tokens(count(&cairn_generator_info_t::samples));
    return detail::call(
        {}, [&](auto* error) { return cairn_generator_next(handle_, tokens.data(), tokens.size(), error); },
        [&] { return tokens; });
  }
  // What a sample's last token was drawn from. errors: WRONG_STATE (no token yet).
  Outcome<std::vector<float>> logits(uint32_t sample) const {
    std::vector<float> numbers(count(&cairn_generator_info_t::vocabulary));
    return detail::call(
        {},
        [&](auto* error) {
          return cairn_generator_logits(handle_, sample, numbers.data(), numbers.size(), error);
        },
        [&] { return numbers; });
  }
  Outcome<cairn_generator_info_t> info() const {
    return detail::fill({}, cairn_generator_info_t CAIRN_GENERATOR_INFO_INIT,
                        [&](auto* out, auto* error) { return cairn_generator_info(handle_, out, error); });
  }

 private:
  // 1 of an empty object, with which the call then fails.
  size_t count(uint64_t cairn_generator_info_t::*field) const {
    cairn_generator_info_t info = CAIRN_GENERATOR_INFO_INIT;
    const bool known = cairn_generator_info(handle_, &info, nullptr) == CAIRN_STATUS_OK;
    return known ? static_cast<size_t>(info.*field) : 1;
  }
};

}  // namespace CAIRN_HPP_NAMESPACE
}  // namespace cairn

#endif  // CAIRN_CPP_GENERATOR_HPP_
