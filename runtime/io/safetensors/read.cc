// The safetensors reader: u64 length of the header, a JSON object, then the bytes of the tensors. Everything
// that a sloppy reader would let pass (holes, overlaps, names twice, unknown keys) is an error here.
#include <algorithm>
#include <cstring>

#include "runtime/io/limits.h"
#include "runtime/io/safetensors/dtypes.h"
#include "runtime/io/safetensors/foreign.h"
#include "runtime/io/safetensors/safetensors.h"
#include "runtime/plan/json/parse.h"

namespace cairn::io {
namespace {

using simdjson::dom::element;
using simdjson::dom::object;

struct Placed {
  SafeTensor tensor;
  uint64_t begin = 0, end = 0;
};

class Header {
 public:
  Header(std::string where, std::span<const std::byte> text) : where_(std::move(where)) {
    std::string padded;
    simdjson::dom::parser parser(kMaxSafetensorsHeader);
    element root;
    const auto error =
        plan::parse_json(parser, padded, {reinterpret_cast<const char*>(text.data()), text.size()}, root);
    require(!error, Code::kCorruptFile, where_, ": the header is not JSON: ", simdjson::error_message(error));
    object tensors;
    require(!root.get_object().get(tensors), Code::kCorruptFile, where_, ": the header is not a JSON object");
    bool metadata_seen = false;
    for (const auto& [key, value] : tensors) {
      if (key == "__metadata__") {
        require(!std::exchange(metadata_seen, true), Code::kCorruptFile, where_,
                ": __metadata__ is there twice");
        read_metadata(value);
      } else {
        read_tensor(std::string(key), value);
      }
    }
  }
  std::vector<Placed>& placed() { return placed_; }
  std::map<std::string, std::string>& metadata() { return metadata_; }

 private:
  void read_metadata(element value) {
    object entries;
    require(!value.get_object().get(entries), Code::kCorruptFile, where_, ": __metadata__ is not an object");
    for (const auto& [key, text] : entries) {
      std::string_view word;
      require(!text.get_string().get(word), Code::kCorruptFile, where_, ": metadata '", key,
              "' is not a text");
      require(metadata_.emplace(key, word).second, Code::kCorruptFile, where_, ": metadata '", key,
              "' is there twice");
    }
  }

  std::vector<uint64_t> numbers(const std::string& name, std::string_view key, element value) const {
    simdjson::dom::array array;
    require(!value.get_array().get(array), Code::kCorruptFile, where_, ": '", key, "' of '", name,
            "' is not a list");
    std::vector<uint64_t> list;
    for (element item : array) {
      uint64_t number = 0;
      require(item.is_uint64() && !item.get_uint64().get(number) && number < uint64_t{1} << 62,
              Code::kCorruptFile, where_, ": '", key, "' of '", name, "' holds something else than a size");
      list.push_back(number);
    }
    return list;
  }

  void read_tensor(std::string name, element value) {
    object fields;
    require(!value.get_object().get(fields), Code::kCorruptFile, where_, ": '", name, "' is not an object");
    std::string_view dtype;
    std::vector<uint64_t> shape, range;
    unsigned seen = 0;
    for (const auto& [key, field] : fields) {
      const unsigned bit = key == "dtype" ? 1 : key == "shape" ? 2 : key == "data_offsets" ? 4 : 0;
      require(bit != 0, Code::kCorruptFile, where_, ": '", name, "' has an unknown field '", key, "'");
      require(!(seen & bit), Code::kCorruptFile, where_, ": '", name, "' has '", key, "' twice");
      seen |= bit;
      if (bit == 1)
        require(!field.get_string().get(dtype), Code::kCorruptFile, where_, ": 'dtype' of '", name,
                "' is not a text");
      else
        (bit == 2 ? shape : range) = numbers(name, key, field);
    }
    require(seen == 7, Code::kCorruptFile, where_, ": '", name, "' lacks ",
            !(seen & 1)   ? "dtype"
            : !(seen & 2) ? "shape"
                          : "data_offsets");
    Placed placed;
    require(range.size() == 2 && range[0] <= range[1], Code::kCorruptFile, where_, ": 'data_offsets' of '",
            name, "' is not a range");
    placed.begin = range[0];
    placed.end = range[1];
    placed.tensor.bytes = placed.end - placed.begin;
    placed.tensor.name = std::move(name);
    placed.tensor.dtype = dtype;
    placed.tensor.shape = std::move(shape);
    describe(placed.tensor);
    placed_.push_back(std::move(placed));
  }

  // What cairn makes of the tensor, if anything: a type of the format that it has not, no elements, or more
  // dimensions than it takes are no error of the file. The bytes must be as many as type and shape say.
  void describe(SafeTensor& tensor) const {
    const int bits = safetensors_bits(tensor.dtype);
    require(bits > 0, Code::kUnsupported, where_, ": '", tensor.name, "' has dtype '", tensor.dtype,
            "', none of the format's; cairn knows ", safetensors_dtypes());
    int64_t elements = 1, all = 0;
    try {
      for (uint64_t d : tensor.shape) elements = checked_mul(elements, static_cast<int64_t>(d));
      all = checked_mul(elements, bits);
    } catch (const Error& error) {
      fail_as(Code::kCorruptFile, error, where_, ": '", tensor.name, "': ");
    }
    const std::string what = cat(tensor.dtype, to_string(tensor.shape));
    require(all % 8 == 0, Code::kCorruptFile, where_, ": '", tensor.name, "' is ", what, ", ", all,
            " bits, no whole number of bytes");
    require(tensor.bytes == static_cast<uint64_t>(all / 8), Code::kCorruptFile, where_, ": '", tensor.name,
            "' is ", what, ", ", all / 8, " bytes, but has ", tensor.bytes);
    const std::optional<DType> known = safetensors_dtype(tensor.dtype);
    if (!known) {
      tensor.unusable = tensor.dtype;
    } else if (elements == 0) {
      tensor.unusable = "empty";
    } else if (tensor.shape.size() > kMaxRank) {
      tensor.unusable = cat("of rank ", tensor.shape.size());
    } else {
      const std::vector<int64_t> dims(tensor.shape.begin(), tensor.shape.end());
      tensor.desc = {*known, Shape(std::span<const int64_t>(dims))};
    }
  }

  static std::string to_string(const std::vector<uint64_t>& shape) {
    std::string text = "[";
    for (uint64_t d : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(d);
    return text + "]";
  }

  std::string where_;
  std::vector<Placed> placed_;
  std::map<std::string, std::string> metadata_;
};

// Why `length`, a file's first eight bytes, is no header's: the file may be a text.
std::string not_a_length(uint64_t length) {
  char first[8];
  std::memcpy(first, &length, sizeof(first));
  if (first[0] == '{')
    return " is no safetensors file but a JSON text; where it is an index, give its directory";
  const bool text =
      std::all_of(first, first + 8, [](char c) { return (c >= ' ' && c <= '~') || c == '\n' || c == '\t'; });
  if (text) return " is no safetensors file but a text";
  return cat(": a header of ", length, " bytes is above ", kMaxSafetensorsHeader);
}

}  // namespace

bool looks_like_safetensors(std::span<const std::byte> head, uint64_t file_bytes) {
  uint64_t length = 0;
  if (head.size() < 9) return false;
  std::memcpy(&length, head.data(), 8);
  return length <= file_bytes - 8 && head[8] == std::byte{'{'};
}

SafeTensors::SafeTensors(const std::filesystem::path& path) : file_(std::make_shared<const InputFile>(path)) {
  const std::string where = "'" + path.string() + "'";
  require(file_->size() >= 10, Code::kCorruptFile, where, " has ", file_->size(),
          " bytes; it is no safetensors file");
  uint64_t length = 0;
  file_->read(0, &length, 8);
  std::byte head[9];
  file_->read(0, head, sizeof head);
  const std::string foreign = looks_like_safetensors(head, file_->size()) ? "" : foreign_file(head);
  require(foreign.empty(), Code::kCorruptFile, where, " is no safetensors file but ", foreign);
  require(length <= kMaxSafetensorsHeader, Code::kCorruptFile, where,
          length <= kMaxSafetensorsHeader ? "" : not_a_length(length));
  require(length >= 2 && length <= file_->size() - 8, Code::kCorruptFile, where, ": a header of ", length,
          " bytes does not fit a file of ", file_->size());
  const auto storage = std::make_unique_for_overwrite<std::byte[]>(length);
  const std::span<const std::byte> text(storage.get(), length);
  file_->read(8, storage.get(), length);
  require(text[0] == std::byte{'{'}, Code::kCorruptFile, where, ": the header does not begin with '{'");
  size_t last = text.size();
  while (last > 0 && text[last - 1] == std::byte{' '}) --last;
  require(text[last - 1] == std::byte{'}'}, Code::kCorruptFile, where, ": the header does not end with '}'");

  Header header(where, text.first(last));
  metadata_ = std::move(header.metadata());
  std::vector<Placed>& placed = header.placed();
  std::sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);  // an empty one before what follows it
  });
  const uint64_t data = file_->size() - 8 - length;
  uint64_t at = 0;
  for (Placed& p : placed) {
    require(p.begin == at, Code::kCorruptFile, where, ": '", p.tensor.name, "' begins at ", p.begin, ", ",
            p.begin < at ? "inside the tensor before it" : "after a hole", "; ", at, " is expected");
    at = p.end;
    require(at <= data, Code::kCorruptFile, where, ": '", p.tensor.name, "' ends at ", at,
            ", after the data's ", data, " bytes");
    p.tensor.offset = 8 + length + p.begin;
    tensors_.push_back(std::move(p.tensor));
  }
  require(at == data, Code::kCorruptFile, where, ": ", data - at, " bytes belong to no tensor");
  std::vector<std::string_view> names;
  for (const SafeTensor& tensor : tensors_) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  require(twice == names.end(), Code::kCorruptFile, where, ": tensor '", twice == names.end() ? "" : *twice,
          "' is there twice");
}

const SafeTensor* SafeTensors::find(std::string_view name) const {
  for (const SafeTensor& tensor : tensors_)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

}  // namespace cairn::io
