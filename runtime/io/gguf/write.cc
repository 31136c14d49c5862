#include "runtime/io/gguf/write.h"

#include <cstring>
#include <limits>
#include <set>

#include "runtime/base/os/file.h"
#include "runtime/base/text/utf8.h"
#include "runtime/io/limits.h"
#include "runtime/plan/json/parse.h"

namespace cairn::io {
namespace {

using simdjson::dom::element;
using simdjson::dom::object;

template <class T>
void put(std::string& out, T number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}
void put_text(std::string& out, std::string_view text) {
  put(out, uint64_t{text.size()});
  out += text;
}

template <class T>
void put_number(std::string& out, element value, std::string_view key) {
  bool fits = false;
  T number{};
  if constexpr (std::is_floating_point_v<T>) {
    double given = 0;
    fits = !value.get_double().get(given);
    number = static_cast<T>(given);
  } else if constexpr (std::is_signed_v<T>) {
    int64_t given = 0;
    fits = !value.get_int64().get(given) && given >= std::numeric_limits<T>::min() &&
           given <= std::numeric_limits<T>::max();
    number = static_cast<T>(given);
  } else {
    uint64_t given = 0;
    fits = !value.get_uint64().get(given) && given <= std::numeric_limits<T>::max();
    number = static_cast<T>(given);
  }
  require(fits, Code::kInvalidArgument, "metadata: a value of '", key, "' is no number of its type");
  put(out, number);
}

void put_one(std::string& out, GgufType type, element value, std::string_view key) {
  std::string_view text;
  bool flag = false;
  switch (type) {
    case GgufType::kU8:
      return put_number<uint8_t>(out, value, key);
    case GgufType::kI8:
      return put_number<int8_t>(out, value, key);
    case GgufType::kU16:
      return put_number<uint16_t>(out, value, key);
    case GgufType::kI16:
      return put_number<int16_t>(out, value, key);
    case GgufType::kU32:
      return put_number<uint32_t>(out, value, key);
    case GgufType::kI32:
      return put_number<int32_t>(out, value, key);
    case GgufType::kU64:
      return put_number<uint64_t>(out, value, key);
    case GgufType::kI64:
      return put_number<int64_t>(out, value, key);
    case GgufType::kF32:
      return put_number<float>(out, value, key);
    case GgufType::kF64:
      return put_number<double>(out, value, key);
    case GgufType::kBool:
      require(!value.get_bool().get(flag), Code::kInvalidArgument, "metadata: a value of '", key,
              "' is no bool");
      return put(out, static_cast<uint8_t>(flag));
    case GgufType::kText:
      require(!value.get_string().get(text), Code::kInvalidArgument, "metadata: a value of '", key,
              "' is no text");
      return put_text(out, text);
    case GgufType::kArray:
      break;
  }
  fail(Code::kInvalidArgument, "metadata: '", key, "' has arrays in an array");
}

void put_typed(std::string& out, GgufType type, element value, std::string_view key) {
  simdjson::dom::array list;
  if (value.get_array().get(list)) {
    put(out, static_cast<uint32_t>(type));
    return put_one(out, type, value, key);
  }
  put(out, static_cast<uint32_t>(GgufType::kArray));
  put(out, static_cast<uint32_t>(type));
  uint64_t count = 0;
  for ([[maybe_unused]] element each : list) ++count;
  put(out, count);
  for (element each : list) put_one(out, type, each, key);
}

void put_value(std::string& out, element value, std::string_view key) {
  object typed;
  if (!value.get_object().get(typed)) {
    require(typed.size() == 1, Code::kInvalidArgument, "metadata: '", key,
            "' is no object of one member, whose name is a type");
    for (const auto& [name, inner] : typed) {
      const auto type = gguf_type(std::string_view(name));
      require(type && *type != GgufType::kArray, Code::kInvalidArgument, "metadata: '", key,
              "': there is no type '", std::string_view(name), "'");
      put_typed(out, *type, inner, key);
    }
    return;
  }
  require(!value.is_number() && !value.is_null(), Code::kInvalidArgument, "metadata: '", key,
          "' is a number without a type; wanted: an object as {\"u32\": 1}");
  put_typed(out, value.is_bool() ? GgufType::kBool : GgufType::kText, value, key);
}

// Vectors that come with the metadata.
GgufSource vector_of(std::string_view name, element value) {
  simdjson::dom::array list;
  std::vector<float> numbers;
  require(!value.get_array().get(list), Code::kInvalidArgument, "the tensor '", name,
          "' is no list of numbers");
  for (element each : list) {
    double number = 0;
    require(!each.get_double().get(number), Code::kInvalidArgument, "the tensor '", name,
            "' is no list of numbers");
    numbers.push_back(static_cast<float>(number));
  }
  const int64_t count = static_cast<int64_t>(numbers.size());
  return {std::string(name), Shape{count}, gguf_block(DType::kF32),
          [numbers](const auto& append) { append(numbers.data(), numbers.size() * sizeof(float)); }};
}

uint64_t bytes_of(const GgufSource& tensor) {
  return static_cast<uint64_t>(tensor.shape.elements()) / tensor.block->values * tensor.block->bytes;
}

constexpr uint64_t padded(uint64_t bytes) {
  return (bytes + kGgufAlignment - 1) / kGgufAlignment * kGgufAlignment;
}

}  // namespace

const GgufBlock& gguf_block_for(std::string_view name, const Shape& shape, const GgufBlock& wanted) {
  static constexpr std::string_view kAlways[] = {".ffn_gate_inp.weight", "position_embd.weight",
                                                 "token_types.weight"};
  static constexpr std::string_view kMatrices[] = {".weight", ".lora_a", ".lora_b"};
  const auto ends = [&](std::string_view ending) { return name.ends_with(ending); };
  const bool plain = shape.rank <= 1 || ends("_norm.weight") || std::ranges::any_of(kAlways, ends) ||
                     std::ranges::none_of(kMatrices, ends);
  if (plain) return *gguf_block(DType::kF32);
  return shape.last() % wanted.values == 0 ? wanted : *gguf_block(DType::kF16);
}

void write_gguf(const std::filesystem::path& path, std::string_view text, std::vector<GgufSource> sources) {
  std::string copy;
  simdjson::dom::parser parser;
  element root;
  const auto error = plan::parse_json(parser, copy, text, root);
  require(!error, Code::kInvalidArgument, "the metadata are no JSON: ", simdjson::error_message(error));
  object whole, metadata, vectors;
  require(!root.get_object().get(whole) && !whole["metadata"].get_object().get(metadata),
          Code::kInvalidArgument, "the metadata are no JSON object with the member 'metadata'");
  if (!whole["tensors"].get_object().get(vectors)) {
    std::vector<GgufSource> all;
    for (const auto& [name, value] : vectors) all.push_back(vector_of(name, value));
    for (GgufSource& source : sources) all.push_back(std::move(source));
    sources = std::move(all);
  }
  std::string head(kGgufMagic), keys, table;
  uint64_t count = 0, at = 0;
  std::set<std::string_view> names;
  for (const auto& [key, value] : metadata) {
    require(names.insert(key).second, Code::kInvalidArgument, "metadata: the key '", std::string_view(key),
            "' is there twice");
    put_text(keys, key);
    put_value(keys, value, key);
    ++count;
  }
  names.clear();
  for (const GgufSource& tensor : sources) {
    require(names.insert(tensor.name).second, Code::kInvalidArgument, "cannot write '", path.string(),
            "': two tensors are named '", tensor.name, "'");
    require(tensor.shape.rank <= static_cast<int>(kMaxGgufRank), Code::kInvalidArgument, "cannot write '",
            path.string(), "': '", tensor.name, "' has ", tensor.shape.rank, " dimensions; at most ",
            kMaxGgufRank);
    put_text(table, tensor.name);
    put(table, static_cast<uint32_t>(tensor.shape.rank));
    for (int d = tensor.shape.rank; d-- > 0;) put(table, static_cast<uint64_t>(tensor.shape[d]));
    put(table, tensor.block->number);
    put(table, at);
    at += padded(bytes_of(tensor));
  }
  put(head, kGgufVersion);
  put(head, uint64_t{sources.size()});
  put(head, count);
  head += keys + table;
  head.resize(padded(head.size()));
  DurableFile file(path);
  file.append(head.data(), head.size());
  for (const GgufSource& tensor : sources) {
    const uint64_t begin = file.size();
    tensor.write([&](const void* bytes, uint64_t n) { file.append(bytes, n); });
    require(file.size() - begin == bytes_of(tensor), Code::kInternal, "'", tensor.name, "' has other bytes");
    static constexpr char kZeros[kGgufAlignment] = {};
    file.append(kZeros, padded(file.size()) - file.size());
  }
  file.commit();
}

}  // namespace cairn::io
