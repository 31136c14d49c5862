// Chapter 9: generation.
#include "runtime/generate/generator.h"

#include "capi/src/session.h"
#include "capi/src/structs.h"

using namespace cairn::capi;
using cairn::Code;
using cairn::require;
namespace generate = cairn::generate;

struct cairn_generator : cairn::capi::Handle<cairn_generator> {
  std::unique_ptr<generate::Generator> generator;
};

namespace {

generate::Sampling sampling_of(const cairn_sampling_t* given) {
  const cairn_sampling_t s = read_struct(given, cairn_sampling_t CAIRN_SAMPLING_INIT, "sampling");
  require(s.top_k <= INT32_MAX, Code::kInvalidArgument, "top_k is ", s.top_k, "; it must be below 2^31");
  return {.temperature = s.temperature,
          .repetition_penalty = s.repetition_penalty,
          .top_k = static_cast<int32_t>(s.top_k),
          .top_p = s.top_p,
          .min_p = s.min_p,
          .seed = s.seed};
}

}  // namespace

cairn_status_t cairn_sampling_draw(const cairn_sampling_t* sampling, const float* logits, size_t count,
                                   const int32_t* seen, size_t seen_count, int32_t* out_token,
                                   cairn_error_t* error) {
  return guard(error, [&] {
    not_null(logits, "logits");
    if (seen_count > 0) not_null(seen, "seen");
    not_null(out_token, "out_token");
    const generate::Sampling by = sampling_of(sampling);
    generate::check(by);
    require(count > 0 && count <= INT32_MAX, Code::kInvalidArgument, "there are ", count,
            " logits; wanted: 1 to 2^31 - 1");
    for (size_t i = 0; i < seen_count; ++i)
      require(seen[i] >= 0 && static_cast<size_t>(seen[i]) < count, Code::kInvalidArgument, "token ", seen[i],
              " is outside of the vocabulary, 0 to ", count - 1);
    *out_token = generate::Sampler().draw({logits, count}, {seen, seen_count}, by);
  });
}

cairn_status_t cairn_generator_create(cairn_session_t* const* sessions, size_t count, uint32_t vocabulary,
                                      cairn_generator_t** out_generator, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(sessions, "sessions");
    not_null(out_generator, "out_generator");
    std::vector<std::shared_ptr<cairn::engine::Session>> given;
    for (size_t i = 0; i < count; ++i) {
      not_null(sessions[i], cairn::cat("sessions[", i, "]"));
      given.push_back(sessions[i]->session);
    }
    auto made = std::make_unique<cairn_generator>();
    made->generator = std::make_unique<generate::Generator>(std::move(given), vocabulary);
    *out_generator = made.release();
  });
}
void cairn_generator_retain(cairn_generator_t* generator) { retain(generator); }
void cairn_generator_release(cairn_generator_t* generator) { release(generator); }

cairn_status_t cairn_generator_begin(cairn_generator_t* generator, uint32_t sample, const int32_t* prompt,
                                     size_t count, const cairn_sampling_t* sampling, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(generator, "generator");
    if (count > 0) not_null(prompt, "prompt");
    generator->generator->begin(sample, {prompt, count}, sampling_of(sampling));
  });
}

cairn_status_t cairn_generator_extend(cairn_generator_t* generator, uint32_t sample, const int32_t* text,
                                      size_t count, const cairn_sampling_t* sampling, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(generator, "generator");
    if (count > 0) not_null(text, "text");
    generator->generator->extend(sample, {text, count}, sampling_of(sampling));
  });
}

cairn_status_t cairn_generator_end(cairn_generator_t* generator, uint32_t sample, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(generator, "generator");
    generator->generator->end(sample);
  });
}

cairn_status_t cairn_generator_next(cairn_generator_t* generator, int32_t* out_tokens, size_t count,
                                    cairn_error_t* error) {
  return guard(error, [&] {
    not_null(generator, "generator");
    not_null(out_tokens, "out_tokens");
    generator->generator->next({out_tokens, count});
  });
}

cairn_status_t cairn_generator_logits(const cairn_generator_t* generator, uint32_t sample, float* out_logits,
                                      size_t count, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(generator, "generator");
    not_null(out_logits, "out_logits");
    const std::span<const float> logits = generator->generator->logits(sample);
    require(!logits.empty(), Code::kWrongState, "sample ", sample, " has made no token yet");
    require(count == logits.size(), Code::kInvalidArgument, "room for ", count, " logits; there are ",
            logits.size());
    std::copy(logits.begin(), logits.end(), out_logits);
  });
}

cairn_status_t cairn_generator_info(const cairn_generator_t* generator, cairn_generator_info_t* out_info,
                                    cairn_error_t* error) {
  return guard(error, [&] {
    not_null(generator, "generator");
    const OutStruct out(out_info, "out_info");
    const generate::Generator& from = *generator->generator;
    cairn_generator_info_t info = CAIRN_GENERATOR_INFO_INIT;
    info.samples = static_cast<uint64_t>(from.samples());
    info.vocabulary = static_cast<uint64_t>(from.vocabulary());
    info.capacity = static_cast<uint64_t>(from.capacity().value_or(0));
    info.cache_bytes = static_cast<uint64_t>(from.cache_bytes());
    info.prefill_tokens = static_cast<uint64_t>(from.prefill().tokens);
    info.decode_tokens = static_cast<uint64_t>(from.decode().tokens);
    info.prefill_seconds = from.prefill().seconds;
    info.decode_seconds = from.decode().seconds;
    out.write(info);
  });
}
