// Chapter 8: text, tokens, batches.
#ifndef CAIRN_CPP_DATA_HPP_
#define CAIRN_CPP_DATA_HPP_

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "instance.hpp"

namespace cairn {
inline namespace CAIRN_HPP_NAMESPACE {

// Text to tokens and back. Immutable, and of all threads.
class Tokenizer : public detail::Handle<cairn_tokenizer_t, cairn_tokenizer_retain, cairn_tokenizer_release> {
 public:
  using Handle::Handle;
  static Outcome<Tokenizer> bytes(const Instance& instance) { return open(instance, "bytes", nullptr); }
  // A sentencepiece model. errors: NOT_FOUND, CORRUPT_FILE, UNSUPPORTED (models of words or characters).
  static Outcome<Tokenizer> bpe(const Instance& instance, Text path) { return open(instance, "bpe", path); }
  // That of a published model: its directory or one of its files. errors: NOT_FOUND, CORRUPT_FILE, UNSUPPORTED (a part that is
  // not known).
  static Outcome<Tokenizer> pretrained(const Instance& instance, Text path) {
    return open(instance, "pretrained", path);
  }
  // Trains a vocabulary on a text file and writes the model. blocks: until done. errors: IO.
  static Outcome<void> train(const Instance& instance, Text text_path, uint32_t vocabulary, Text model_path) {
    return detail::call({text_path, model_path}, [&](auto* error) {
      return cairn_tokenizer_train(instance.get(), text_path.c_str(), vocabulary, model_path.c_str(), error);
    });
  }
  uint32_t vocabulary() const { return cairn_tokenizer_vocabulary(handle_); }
  Outcome<std::vector<int32_t>> encode(std::string_view text) const {
    cairn_text_t* made = nullptr;
    return detail::call(
        {},
        [&](auto* error) { return cairn_tokenizer_encode(handle_, text.data(), text.size(), &made, error); },
        [&] { return numbers<int32_t>(detail::TextHandle(made).get()); });
  }
  // The bytes of a text that a token stands for.
  struct Offset {
    uint32_t begin, end;
  };
  // By flags (CAIRN_ENCODE_SPECIAL); offsets, unless null: one for each token.
  Outcome<std::vector<int32_t>> encode(std::string_view text, uint32_t flags,
                                       std::vector<Offset>* offsets) const {
    cairn_text_t *made = nullptr, *places = nullptr;
    return detail::call(
        {},
        [&](auto* error) {
          return cairn_tokenizer_encode_with(handle_, text.data(), text.size(), flags, &made,
                                             offsets != nullptr ? &places : nullptr, error);
        },
        [&] {
          const detail::TextHandle tokens(made), at(places);
          if (offsets != nullptr) *offsets = numbers<Offset>(at.get());
          return numbers<int32_t>(tokens.get());
        });
  }
  Outcome<std::string> decode(Span<const int32_t> tokens) const {
    return detail::make_text({}, [&](auto* out, auto* error) {
      return cairn_tokenizer_decode(handle_, tokens.data(), tokens.size(), out, error);
    });
  }
  // By flags (CAIRN_DECODE_SKIP_SPECIAL, CAIRN_DECODE_BYTES).
  Outcome<std::string> decode(Span<const int32_t> tokens, uint32_t flags) const {
    return detail::make_text({}, [&](auto* out, auto* error) {
      return cairn_tokenizer_decode_with(handle_, tokens.data(), tokens.size(), flags, out, error);
    });
  }
  // A token as the vocabulary spells it, and the number of one that is spelled so. errors: INVALID_ARGUMENT; NOT_FOUND.
  Outcome<std::string> token(int32_t id) const {
    return detail::make_text(
        {}, [&](auto* out, auto* error) { return cairn_tokenizer_token(handle_, id, out, error); });
  }
  Outcome<int32_t> find(std::string_view token) const {
    return detail::fill({}, int32_t{0}, [&](auto* out, auto* error) {
      return cairn_tokenizer_find(handle_, token.data(), token.size(), out, error);
    });
  }
  // Writes the file that opens the tokenizer again, durably. errors: IO.
  Outcome<void> save(Text path) const {
    return detail::call({path},
                        [&](auto* error) { return cairn_tokenizer_save(handle_, path.c_str(), error); });
  }
  // Writes the token file of a text file, durably. errors: IO, NOT_FOUND.
  Outcome<void> write(Text text_path, Text token_path) const {
    return detail::call({text_path, token_path}, [&](auto* error) {
      return cairn_tokenizer_write(handle_, text_path.c_str(), token_path.c_str(), error);
    });
  }

 private:
  template <class Number>
  static std::vector<Number> numbers(const cairn_text_t* text) {
    std::vector<Number> found(cairn_text_size(text) / sizeof(Number));
    if (!found.empty()) std::memcpy(found.data(), cairn_text_data(text), found.size() * sizeof(Number));
    return found;
  }
  static Outcome<Tokenizer> open(const Instance& instance, const char* kind, Text path) {
    return detail::make<Tokenizer>({path}, [&](auto* out, auto* error) {
      return cairn_tokenizer_open(instance.get(), kind, path.c_str(), out, error);
    });
  }
};

// A chat template. Immutable, and of all threads.
class Template : public detail::Handle<cairn_template_t, cairn_template_retain, cairn_template_release> {
 public:
  using Handle::Handle;
  // name: what errors call it. errors: CORRUPT_FILE, UNSUPPORTED (a tag, filter or test that is not known).
  static Outcome<Template> create(std::string_view source, Text name = "template") {
    return detail::make<Template>({name}, [&](auto* out, auto* error) {
      return cairn_template_create(source.data(), source.size(), name.c_str(), out, error);
    });
  }
  // The text that it makes of a JSON object: messages, tools, add_generation_prompt and so on. errors: INVALID_ARGUMENT (also what
  // the template raises), UNSUPPORTED (more steps or bytes than are allowed).
  Outcome<std::string> render(std::string_view values) const {
    return detail::make_text({}, [&](auto* out, auto* error) {
      return cairn_template_render(handle_, values.data(), values.size(), out, error);
    });
  }
};

// Windows of length + 1 tokens. Immutable, and of all threads.
class Dataset : public detail::Handle<cairn_dataset_t, cairn_dataset_retain, cairn_dataset_release> {
 public:
  using Handle::Handle;
  // Of a token file. errors: NOT_FOUND, IO, CORRUPT_FILE.
  static Outcome<Dataset> open(const Instance& instance, Text token_path, uint32_t length) {
    return detail::make<Dataset>({token_path}, [&](auto* out, auto* error) {
      return cairn_dataset_open(instance.get(), token_path.c_str(), length, out, error);
    });
  }
  // Of tokens drawn from the seed.
  static Outcome<Dataset> random(const Instance& instance, uint64_t seed, uint32_t vocabulary,
                                 uint32_t length) {
    return detail::make<Dataset>({}, [&](auto* out, auto* error) {
      return cairn_dataset_random(instance.get(), seed, vocabulary, length, out, error);
    });
  }
  Outcome<cairn_dataset_info_t> info() const {
    return detail::fill({}, cairn_dataset_info_t CAIRN_DATASET_INFO_INIT,
                        [&](auto* out, auto* error) { return cairn_dataset_info(handle_, out, error); });
  }
  // Micro-batch number `index` since the start of training: `rows` rows of as many inputs and targets as the length says;
  // returns the rows filled. The vectors are made as long as that; spans must be, or longer.
  Outcome<uint32_t> batch(uint64_t seed, uint64_t index, uint32_t rows, std::vector<int32_t>& inputs,
                          std::vector<int32_t>& targets) const {
    const bool possible = rows > 0 && rows <= 0x7fffffff;  // the library says what is wrong with others
    const size_t numbers = possible ? size_t{rows} * length() : 1;
    inputs.resize(numbers);
    targets.resize(numbers);
    return fill_batch(seed, index, rows, inputs.data(), targets.data());
  }
  Outcome<uint32_t> batch(uint64_t seed, uint64_t index, uint32_t rows, Span<int32_t> inputs,
                          Span<int32_t> targets) const {
    const size_t numbers = size_t{rows} * length(), room = std::min(inputs.size(), targets.size());
    if (room < numbers)
      return detail::failed<uint32_t>(
          Error(CAIRN_STATUS_INVALID_ARGUMENT,
                "a batch of " + std::to_string(rows) + " rows has " + std::to_string(numbers) +
                    " inputs and targets each; there is room for " + std::to_string(room)));
    return fill_batch(seed, index, rows, inputs.data(), targets.data());
  }

 private:
  size_t length() const noexcept {
    cairn_dataset_info_t info = CAIRN_DATASET_INFO_INIT;
    return cairn_dataset_info(handle_, &info, nullptr) == CAIRN_STATUS_OK ? info.length : 0;
  }
  Outcome<uint32_t> fill_batch(uint64_t seed, uint64_t index, uint32_t rows, int32_t* inputs,
                               int32_t* targets) const {
    return detail::fill({}, uint32_t{0}, [&](auto* out, auto* error) {
      return cairn_dataset_batch(handle_, seed, index, rows, inputs, targets, out, error);
    });
  }
};

}  // namespace CAIRN_HPP_NAMESPACE
}  // namespace cairn
#endif  // CAIRN_CPP_DATA_HPP_
