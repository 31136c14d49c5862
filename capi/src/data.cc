// Chapter 8: data.
#include "runtime/data/data.h"

#include <string_view>

#include "capi/src/instance.h"
#include "capi/src/structs.h"
#include "capi/src/text.h"
#include "runtime/data/template/template.h"
#include "runtime/io/gguf/tokenizer.h"

using namespace cairn::capi;
using cairn::Code;
using cairn::require;
namespace data = cairn::data;

struct cairn_tokenizer : cairn::capi::Handle<cairn_tokenizer> {
  std::unique_ptr<data::Tokenizer> tokenizer;
};

struct cairn_dataset : cairn::capi::Handle<cairn_dataset> {
  std::unique_ptr<data::Dataset> dataset;
};

struct cairn_template : cairn::capi::PlainHandle {
  std::unique_ptr<const data::Template> parsed;
};

namespace {

constexpr int32_t kIgnore = -100;  // what losses ignore by default

int32_t positive(uint32_t value, std::string_view name) {
  require(value >= 1 && value <= INT32_MAX, Code::kInvalidArgument, "argument '", name, "' is ", value,
          "; it must be in 1..2^31-1");
  return static_cast<int32_t>(value);
}

std::unique_ptr<data::Tokenizer> open_tokenizer(std::string_view kind, const char* path) {
  if (kind == "bytes") {
    require(path == nullptr, Code::kInvalidArgument, "the tokenizer 'bytes' has no file; path must be NULL");
    return data::bytes_tokenizer();
  }
  require(kind == "bpe" || kind == "pretrained" || kind == "auto", Code::kInvalidArgument,
          "there is no tokenizer '", kind, "'; known: bytes, bpe, pretrained");
  not_null(path, "path");
  if (kind == "bpe") return data::load_bpe(path);
  if (!cairn::io::is_gguf(path)) return data::load_pretrained(path);
  return data::pretrained_tokenizer(cairn::io::gguf_tokenizer_json(cairn::io::Gguf(path)),
                                    cairn::cat("'", path, "'"));
}

void check_flags(uint32_t flags, uint32_t known) {
  require((flags & ~known) == 0, Code::kInvalidArgument, "argument 'flags' is ", flags,
          "; known are the bits of ", known);
}

// Numbers as a text's bytes.
template <class Number>
std::unique_ptr<cairn_text> as_text(const std::vector<Number>& numbers) {
  return std::make_unique<cairn_text>(
      std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)));
}

cairn_status_t make_dataset(cairn_dataset_t** out_dataset, cairn_error_t* error, auto&& make) {
  return guard(error, [&] {
    not_null(out_dataset, "out_dataset");
    auto made = std::make_unique<cairn_dataset>();
    made->dataset = make();
    *out_dataset = made.release();
  });
}

}  // namespace

cairn_status_t cairn_tokenizer_open(cairn_instance_t* instance, const char* kind, const char* path,
                                    cairn_tokenizer_t** out_tokenizer, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(instance, "instance");
    not_null(kind, "kind");
    not_null(out_tokenizer, "out_tokenizer");
    auto made = std::make_unique<cairn_tokenizer>();
    made->tokenizer = open_tokenizer(kind, path);
    *out_tokenizer = made.release();
  });
}

cairn_status_t cairn_tokenizer_train(cairn_instance_t* instance, const char* text_path, uint32_t vocabulary,
                                     const char* model_path, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(instance, "instance");
    not_null(text_path, "text_path");
    not_null(model_path, "model_path");
    data::train_bpe(text_path, positive(vocabulary, "vocabulary"))->save(model_path);
  });
}
void cairn_tokenizer_retain(cairn_tokenizer_t* tokenizer) { retain(tokenizer); }
void cairn_tokenizer_release(cairn_tokenizer_t* tokenizer) { release(tokenizer); }

uint32_t cairn_tokenizer_vocabulary(const cairn_tokenizer_t* tokenizer) {
  return tokenizer == nullptr ? 0 : static_cast<uint32_t>(tokenizer->tokenizer->vocabulary());
}

cairn_status_t cairn_tokenizer_encode(const cairn_tokenizer_t* tokenizer, const char* text, size_t size,
                                      cairn_text_t** out_tokens, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(tokenizer, "tokenizer");
    array_not_null(text, size, "text");
    not_null(out_tokens, "out_tokens");
    *out_tokens = as_text(tokenizer->tokenizer->encode({text, size})).release();
  });
}

cairn_status_t cairn_tokenizer_encode_with(const cairn_tokenizer_t* tokenizer, const char* text, size_t size,
                                           uint32_t flags, cairn_text_t** out_tokens,
                                           cairn_text_t** out_offsets, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(tokenizer, "tokenizer");
    array_not_null(text, size, "text");
    check_flags(flags, CAIRN_ENCODE_SPECIAL);
    not_null(out_tokens, "out_tokens");
    std::vector<data::Offset> offsets;
    auto tokens = as_text(tokenizer->tokenizer->encode_with({text, size}, (flags & CAIRN_ENCODE_SPECIAL) != 0,
                                                            out_offsets != nullptr ? &offsets : nullptr));
    if (out_offsets != nullptr) *out_offsets = as_text(offsets).release();
    *out_tokens = tokens.release();
  });
}

cairn_status_t cairn_tokenizer_decode(const cairn_tokenizer_t* tokenizer, const int32_t* tokens, size_t count,
                                      cairn_text_t** out_text, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(tokenizer, "tokenizer");
    array_not_null(tokens, count, "tokens");
    not_null(out_text, "out_text");
    *out_text = std::make_unique<cairn_text>(tokenizer->tokenizer->decode({tokens, count})).release();
  });
}

cairn_status_t cairn_tokenizer_decode_with(const cairn_tokenizer_t* tokenizer, const int32_t* tokens,
                                           size_t count, uint32_t flags, cairn_text_t** out_text,
                                           cairn_error_t* error) {
  return guard(error, [&] {
    not_null(tokenizer, "tokenizer");
    array_not_null(tokens, count, "tokens");
    check_flags(flags, CAIRN_DECODE_SKIP_SPECIAL | CAIRN_DECODE_BYTES);
    not_null(out_text, "out_text");
    *out_text = std::make_unique<cairn_text>(tokenizer->tokenizer->decode_with(
                                                 {tokens, count}, (flags & CAIRN_DECODE_SKIP_SPECIAL) != 0,
                                                 (flags & CAIRN_DECODE_BYTES) != 0))
                    .release();
  });
}

cairn_status_t cairn_tokenizer_token(const cairn_tokenizer_t* tokenizer, int32_t id, cairn_text_t** out_token,
                                     cairn_error_t* error) {
  return guard(error, [&] {
    not_null(tokenizer, "tokenizer");
    not_null(out_token, "out_token");
    const int32_t vocabulary = tokenizer->tokenizer->vocabulary();
    require(id >= 0 && id < vocabulary, Code::kInvalidArgument, "token ", id,
            " is outside the vocabulary of ", vocabulary);
    *out_token = std::make_unique<cairn_text>(tokenizer->tokenizer->token(id)).release();
  });
}

cairn_status_t cairn_tokenizer_find(const cairn_tokenizer_t* tokenizer, const char* token, size_t size,
                                    int32_t* out_id, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(tokenizer, "tokenizer");
    array_not_null(token, size, "token");
    not_null(out_id, "out_id");
    const int32_t id = tokenizer->tokenizer->find({token, size});
    require(id >= 0, Code::kNotFound, "the vocabulary has no token '",
            std::string_view(token, size).substr(0, 128), "'");
    *out_id = id;
  });
}

cairn_status_t cairn_tokenizer_save(const cairn_tokenizer_t* tokenizer, const char* path,
                                    cairn_error_t* error) {
  return guard(error, [&] {
    not_null(tokenizer, "tokenizer");
    not_null(path, "path");
    tokenizer->tokenizer->save(path);
  });
}

cairn_status_t cairn_tokenizer_write(const cairn_tokenizer_t* tokenizer, const char* text_path,
                                     const char* token_path, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(tokenizer, "tokenizer");
    not_null(text_path, "text_path");
    not_null(token_path, "token_path");
    data::write_tokens(text_path, *tokenizer->tokenizer, token_path);
  });
}

cairn_status_t cairn_dataset_open(cairn_instance_t* instance, const char* token_path, uint32_t length,
                                  cairn_dataset_t** out_dataset, cairn_error_t* error) {
  return make_dataset(out_dataset, error, [&] {
    not_null(instance, "instance");
    not_null(token_path, "token_path");
    return data::Dataset::open(token_path, positive(length, "length"));
  });
}

cairn_status_t cairn_dataset_random(cairn_instance_t* instance, uint64_t seed, uint32_t vocabulary,
                                    uint32_t length, cairn_dataset_t** out_dataset, cairn_error_t* error) {
  return make_dataset(out_dataset, error, [&] {
    not_null(instance, "instance");
    return data::Dataset::random(seed, positive(vocabulary, "vocabulary"), positive(length, "length"));
  });
}
void cairn_dataset_retain(cairn_dataset_t* dataset) { retain(dataset); }
void cairn_dataset_release(cairn_dataset_t* dataset) { release(dataset); }

cairn_status_t cairn_dataset_info(const cairn_dataset_t* dataset, cairn_dataset_info_t* out_info,
                                  cairn_error_t* error) {
  return guard(error, [&] {
    not_null(dataset, "dataset");
    const OutStruct out(out_info, "out_info");
    cairn_dataset_info_t info = CAIRN_DATASET_INFO_INIT;
    info.tokens = static_cast<uint64_t>(dataset->dataset->tokens());
    info.windows = static_cast<uint64_t>(dataset->dataset->windows());
    info.vocabulary = static_cast<uint32_t>(dataset->dataset->vocabulary());
    info.length = static_cast<uint32_t>(dataset->dataset->length());
    out.write(info);
  });
}

cairn_status_t cairn_dataset_batch(const cairn_dataset_t* dataset, uint64_t seed, uint64_t index,
                                   uint32_t batch, int32_t* inputs, int32_t* targets, uint32_t* out_rows,
                                   cairn_error_t* error) {
  return guard(error, [&] {
    not_null(dataset, "dataset");
    not_null(inputs, "inputs");
    not_null(targets, "targets");
    not_null(out_rows, "out_rows");
    *out_rows = static_cast<uint32_t>(
        dataset->dataset->batch(seed, index, positive(batch, "batch"), inputs, targets, kIgnore));
  });
}

cairn_status_t cairn_template_create(const char* source, size_t size, const char* name,
                                     cairn_template_t** out_template, cairn_error_t* error) {
  return guard(error, [&] {
    array_not_null(source, size, "source");
    not_null(out_template, "out_template");
    auto made = std::make_unique<cairn_template>();
    made->parsed = data::Template::parse({source, size}, name != nullptr ? name : "");
    *out_template = made.release();
  });
}
void cairn_template_retain(cairn_template_t* chat_template) { retain(chat_template); }
void cairn_template_release(cairn_template_t* chat_template) { release(chat_template); }

cairn_status_t cairn_template_render(const cairn_template_t* chat_template, const char* values, size_t size,
                                     cairn_text_t** out_text, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(chat_template, "chat_template");
    array_not_null(values, size, "values");
    not_null(out_text, "out_text");
    *out_text = std::make_unique<cairn_text>(chat_template->parsed->render({values, size})).release();
  });
}
