// GGUF files as bytes, right ones and wrong ones.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::test {

class GgufSample {
 public:
  struct Tensor {
    std::string name;
    std::vector<uint64_t> dims;  // as in the file: columns first
    uint32_t type;
    uint64_t offset;
  };
  uint32_t version = 3;
  std::string keys;
  uint64_t key_count = 0;
  std::vector<Tensor> tensors;
  uint64_t alignment = 32;
  std::string data;

  template <class T>
  static std::string number(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
  }
  static std::string text(std::string_view words) {
    return number(uint64_t{words.size()}) + std::string(words);
  }

  GgufSample& key(std::string_view name, uint32_t type, const std::string& value) {
    keys += text(name) + number(type) + value;
    ++key_count;
    return *this;
  }
  GgufSample& word(std::string_view name, std::string_view value) { return key(name, 8, text(value)); }
  GgufSample& flag(std::string_view name, bool value) { return key(name, 7, std::string(1, value ? 1 : 0)); }
  GgufSample& words(std::string_view name, const std::vector<std::string>& values) {
    std::string list = number(uint32_t{8}) + number(uint64_t{values.size()});
    for (const std::string& value : values) list += text(value);
    return key(name, 9, list);
  }
  template <class T>
  GgufSample& numbers(std::string_view name, uint32_t type, const std::vector<T>& values) {
    std::string list = number(type) + number(uint64_t{values.size()});
    for (const T value : values) list += number(value);
    return key(name, 9, list);
  }
  // Bytes of its data; the next tensor begins at a multiple of the alignment.
  GgufSample& tensor(std::string name, std::vector<uint64_t> dims, uint32_t type, const std::string& bytes) {
    tensors.push_back({std::move(name), std::move(dims), type, data.size()});
    data += bytes;
    data.resize((data.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  std::string bytes() const {
    std::string file = "GGUF" + number(version) + number(uint64_t{tensors.size()}) + number(key_count) + keys;
    for (const Tensor& t : tensors) {
      file += text(t.name) + number(static_cast<uint32_t>(t.dims.size()));
      for (const uint64_t dim : t.dims) file += number(dim);
      file += number(t.type) + number(t.offset);
    }
    file.resize((file.size() + alignment - 1) / alignment * alignment);
    return file + data;
  }
};

// A file with a value of every type and four tensors.
inline GgufSample gguf_sample() {
  GgufSample sample;
  sample.word("general.architecture", "llama");
  sample.key("u8", 0, GgufSample::number(uint8_t{200}));
  sample.key("i8", 1, GgufSample::number(int8_t{-3}));
  sample.key("u16", 2, GgufSample::number(uint16_t{60000}));
  sample.key("i16", 3, GgufSample::number(int16_t{-3}));
  sample.key("u32", 4, GgufSample::number(uint32_t{1} << 31));
  sample.key("i32", 5, GgufSample::number(int32_t{-3}));
  sample.key("f32", 6, GgufSample::number(1e-5f));
  sample.flag("yes", true);
  sample.key("u64", 10, GgufSample::number(uint64_t{1} << 63));
  sample.key("i64", 11, GgufSample::number(int64_t{-3}));
  sample.key("f64", 12, GgufSample::number(0.1));
  sample.words("words", {"a", "", "\xC3\xA4"});
  sample.numbers<float>("scores", 6, {-1.0f, 0.5f});
  sample.key("lists", 9,
             GgufSample::number(uint32_t{9}) + GgufSample::number(uint64_t{2}) +
                 GgufSample::number(uint32_t{4}) + GgufSample::number(uint64_t{1}) +
                 GgufSample::number(uint32_t{7}) + GgufSample::number(uint32_t{8}) +
                 GgufSample::number(uint64_t{0}));
  sample.tensor("f32.weight", {4, 3}, 0, std::string(48, '\1'));
  sample.tensor("f16.weight", {5}, 1, std::string(10, '\2'));
  sample.tensor("q4_0.weight", {32, 2}, 2, std::string(36, '\3'));
  sample.tensor("q2_k.weight", {256}, 10, std::string(84, '\4'));
  return sample;
}

}  // namespace cairn::test
