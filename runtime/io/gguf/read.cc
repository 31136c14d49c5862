// The GGUF reader: magic, version, how many tensors and keys, the metadata, the table of tensors, padding, the data. All
// that a sloppy reader would let pass (keys twice, sizes that wrap, tensors that overlap or lie elsewhere than one after
// the other) is an error here.
#include <bit>
#include <cstring>
#include <set>

#include "runtime/base/checked.h"
#include "runtime/base/text/utf8.h"
#include "runtime/io/gguf/gguf.h"
#include "runtime/io/limits.h"

namespace cairn::io {
namespace {

// What stands before the tensors, one field after the other.
class GgufHeader {
 public:
  GgufHeader(const InputFile& file, std::string where) : file_(file), where_(std::move(where)) {}

  const std::string& where() const { return where_; }
  uint64_t at() const { return at_; }

  void take(void* to, uint64_t bytes) {
    check(bytes);
    auto* into = static_cast<char*>(to);
    while (bytes > 0) {
      if (at_ == begin_ + buffer_.size()) fill();
      const uint64_t here = std::min<uint64_t>(bytes, begin_ + buffer_.size() - at_);
      std::memcpy(into, buffer_.data() + (at_ - begin_), here);
      into += here;
      at_ += here;
      bytes -= here;
    }
  }
  template <class T>
  T number() {
    T value;
    take(&value, sizeof value);
    return value;
  }
  // A count of things that take so many bytes each.
  uint64_t count(uint64_t each, std::string_view what) {
    const auto value = number<uint64_t>();
    require(value <= left() / each, Code::kCorruptFile, where_, ": ", what, " ", value,
            " do not fit the file");
    return value;
  }
  std::string text(std::string_view what, uint64_t most) {
    const auto size = number<uint64_t>();
    require(size <= left(), Code::kCorruptFile, where_, ": ", what, " of ", size,
            " bytes does not fit the file");
    require(size <= most, Code::kCorruptFile, where_, ": ", what, " of ", size, " bytes is above ", most);
    std::string text(size, '\0');
    take(text.data(), size);
    return text;
  }

 private:
  static constexpr uint64_t kRead = uint64_t{1} << 20;

  uint64_t left() const { return std::min(file_.size(), kMaxGgufBytes) - at_; }
  void check(uint64_t bytes) const {
    require(bytes <= file_.size() - at_, Code::kCorruptFile, where_, " ends inside its header, at byte ",
            file_.size());
    require(bytes <= left(), Code::kCorruptFile, where_, ": its metadata are above ", kMaxGgufBytes,
            " bytes");
  }
  void fill() {
    begin_ = at_;
    buffer_.resize(std::min(kRead, file_.size() - at_));
    file_.read(at_, buffer_.data(), buffer_.size());
  }

  const InputFile& file_;
  std::string where_, buffer_;
  uint64_t at_ = 0, begin_ = 0;
};

class Metadata {
 public:
  explicit Metadata(GgufHeader& header) : header_(header) {}

  void read(uint64_t count, std::map<std::string, GgufValue>& into) {
    for (uint64_t i = 0; i < count; ++i) {
      std::string key = header_.text("a key", kMaxGgufKeyBytes);
      require(!key.empty() && is_utf8(key), Code::kCorruptFile, header_.where(), ": the name of key ", i,
              key.empty() ? " is empty" : " is not UTF-8");
      key_ = key;
      GgufValue value;
      value.type = type();
      value_of(value, 0);
      require(into.emplace(std::move(key), std::move(value)).second, Code::kCorruptFile, header_.where(),
              ": the key '", key_, "' is there twice");
    }
  }

 private:
  GgufType type() {
    const auto number = header_.number<uint32_t>();
    require(gguf_type(number) != nullptr, Code::kUnsupported, header_.where(), ": the key '", key_,
            "' has a value of type ", number, ", which the format does not have");
    return static_cast<GgufType>(number);
  }

  void value_of(GgufValue& value, int depth) {
    if (value.type == GgufType::kText) {
      value.bytes = header_.text("a text", kMaxGgufBytes);
    } else if (value.is_array()) {
      array(value, depth);
    } else {
      value.bytes.resize(gguf_type(static_cast<uint32_t>(value.type))->bytes);
      header_.take(value.bytes.data(), value.bytes.size());
      check_bools(value);
    }
  }

  void array(GgufValue& value, int depth) {
    require(depth < kMaxGgufDepth, Code::kCorruptFile, header_.where(), ": the key '", key_,
            "' has arrays in arrays deeper than ", kMaxGgufDepth);
    value.element = type();
    const uint64_t each = gguf_type(static_cast<uint32_t>(value.element))->bytes;
    if (each > 0) {
      value.count = header_.count(each, "an array's values,");
      value.bytes.resize(value.count * each);
      header_.take(value.bytes.data(), value.bytes.size());
      check_bools(value);
    } else if (value.element == GgufType::kText) {
      value.count = header_.count(8, "an array's texts,");
      for (uint64_t i = 0; i < value.count; ++i) {
        value.bytes += header_.text("a text", kMaxGgufBytes);
        value.ends.push_back(value.bytes.size());
      }
    } else {
      value.count = header_.count(12, "an array's arrays,");
      arrays_ += value.count;
      require(arrays_ <= kMaxGgufArrays, Code::kCorruptFile, header_.where(), ": the key '", key_, "' has ",
              value.count, " arrays in an array; at most ", kMaxGgufArrays, " in a file");
      for (uint64_t i = 0; i < value.count; ++i) {
        GgufValue& inner = value.inner.emplace_back();
        inner.type = GgufType::kArray;
        array(inner, depth + 1);
      }
    }
  }

  void check_bools(const GgufValue& value) const {
    if (value.scalar() != GgufType::kBool) return;
    for (const char c : value.bytes)
      require(c == 0 || c == 1, Code::kCorruptFile, header_.where(), ": the key '", key_,
              "' has a bool that is neither 0 nor 1");
  }

  GgufHeader& header_;
  std::string key_;
  uint64_t arrays_ = 0;
};

GgufTensor read_tensor(GgufHeader& header, uint64_t number) {
  GgufTensor tensor;
  tensor.name = header.text("the name of a tensor", kMaxGgufNameBytes);
  require(!tensor.name.empty() && is_utf8(tensor.name), Code::kCorruptFile, header.where(),
          ": the name of tensor ", number, tensor.name.empty() ? " is empty" : " is not UTF-8");
  const auto in_tensor = [&] { return cat(header.where(), ": '", tensor.name, "'"); };
  const auto rank = header.number<uint32_t>();
  require(rank <= kMaxGgufRank, Code::kCorruptFile, in_tensor(), " has ", rank, " dimensions; at most ",
          kMaxGgufRank);
  int64_t elements = 1;
  for (uint32_t d = 0; d < rank; ++d) tensor.shape.insert(tensor.shape.begin(), header.number<uint64_t>());
  const auto type = header.number<uint32_t>();
  tensor.block = gguf_block(type);
  require(tensor.block != nullptr, Code::kUnsupported, in_tensor(), " is of block type ", type,
          ", which is not known; known: ", gguf_blocks());
  try {
    for (const uint64_t d : tensor.shape) {
      require(d > 0 && d < uint64_t{1} << 62, Code::kCorruptFile, "a dimension of ", d);
      elements = checked_mul(elements, static_cast<int64_t>(d));
    }
    const uint64_t row = rank == 0 ? 1 : tensor.shape.back();
    require(row % tensor.block->values == 0, Code::kCorruptFile, "rows of ", row, " values do not divide by ",
            tensor.block->values, ", the block of ", tensor.block->name);
    tensor.bytes = static_cast<uint64_t>(
        checked_mul(elements / tensor.block->values, static_cast<int64_t>(tensor.block->bytes)));
  } catch (const Error& error) {
    fail_as(Code::kCorruptFile, error, in_tensor(), ": ");
  }
  tensor.offset = header.number<uint64_t>();
  return tensor;
}

uint64_t alignment_of(const std::map<std::string, GgufValue>& metadata, const std::string& where) {
  const auto found = metadata.find("general.alignment");
  if (found == metadata.end()) return kGgufAlignment;
  require(found->second.type == GgufType::kU32, Code::kCorruptFile, where, ": general.alignment is no u32");
  uint32_t value = 0;
  std::memcpy(&value, found->second.bytes.data(), sizeof value);
  require(std::has_single_bit(value) && value <= kMaxGgufAlignment, Code::kCorruptFile, where,
          ": general.alignment is ", value, "; wanted: a power of two, at most ", kMaxGgufAlignment);
  return value;
}

}  // namespace

std::string_view GgufValue::text(uint64_t index) const {
  if (!is_array()) return bytes;
  const uint64_t begin = index == 0 ? 0 : ends[index - 1];
  return std::string_view(bytes).substr(begin, ends[index] - begin);
}

std::optional<double> GgufValue::number(uint64_t index) const {
  const auto as = [&](auto zero) {
    std::memcpy(&zero, bytes.data() + index * sizeof zero, sizeof zero);
    return static_cast<double>(zero);
  };
  switch (scalar()) {
    case GgufType::kU8:
    case GgufType::kBool:
      return as(uint8_t{});
    case GgufType::kI8:
      return as(int8_t{});
    case GgufType::kU16:
      return as(uint16_t{});
    case GgufType::kI16:
      return as(int16_t{});
    case GgufType::kU32:
      return as(uint32_t{});
    case GgufType::kI32:
      return as(int32_t{});
    case GgufType::kF32:
      return as(float{});
    case GgufType::kU64:
      return as(uint64_t{});
    case GgufType::kI64:
      return as(int64_t{});
    case GgufType::kF64:
      return as(double{});
    default:
      return std::nullopt;
  }
}

const GgufValue* Gguf::find(std::string_view key) const {
  const auto found = metadata_.find(std::string(key));
  return found == metadata_.end() ? nullptr : &found->second;
}

Gguf::Gguf(const std::filesystem::path& path) : file_(std::make_shared<const InputFile>(path)) {
  GgufHeader header(*file_, "'" + path.string() + "'");
  const std::string& where = header.where();
  char magic[4] = {};
  require(file_->size() >= 24, Code::kCorruptFile, where, " has ", file_->size(),
          " bytes; it is no GGUF file");
  header.take(magic, sizeof magic);
  require(std::string_view(magic, 4) == kGgufMagic, Code::kCorruptFile, where, " is no GGUF file");
  version_ = header.number<uint32_t>();
  const bool big_endian = version_ > 0xffff && (version_ & 0xffff) == 0;
  require(!big_endian, Code::kUnsupported, where,
          " is a big-endian GGUF file; only little-endian ones are read");
  require(version_ == 2 || version_ == kGgufVersion, Code::kUnsupported, where, " is GGUF version ", version_,
          "; 2 and 3 are read", version_ == 1 ? ": llama.cpp makes a newer file of it" : "");
  const auto tensors = header.count(24, "tensors,"), keys = header.count(13, "keys,");
  require(tensors <= kMaxValues && keys <= kMaxGgufKeys, Code::kCorruptFile, where, " has ", tensors,
          " tensors and ", keys, " keys; at most ", kMaxValues, " and ", kMaxGgufKeys);
  Metadata(header).read(keys, metadata_);
  alignment_ = alignment_of(metadata_, where);
  std::set<std::string_view> names;
  tensors_.reserve(tensors);
  for (uint64_t i = 0; i < tensors; ++i) tensors_.push_back(read_tensor(header, i));
  const auto padded = [&](uint64_t bytes) { return (bytes + alignment_ - 1) / alignment_ * alignment_; };
  const uint64_t data = padded(header.at()), size = file_->size();
  uint64_t at = 0, end = data;
  for (GgufTensor& tensor : tensors_) {
    require(names.insert(tensor.name).second, Code::kCorruptFile, where, ": tensor '", tensor.name,
            "' is there twice");
    require(tensor.offset == at, Code::kCorruptFile, where, ": '", tensor.name, "' begins at ", tensor.offset,
            " of the data; ", at, " is expected, after the tensor before it and a multiple of ", alignment_);
    require(data <= size && tensor.bytes <= size - data && at <= size - data - tensor.bytes,
            Code::kCorruptFile, where, " has ", size, " bytes; '", tensor.name, "', ", tensor.bytes,
            " bytes at ", data + at, ", does not fit: the file is cut short");
    tensor.offset = data + at;
    end = tensor.offset + tensor.bytes;
    at = padded(at + tensor.bytes);
  }
  require(tensors_.empty() || size <= data + at, Code::kCorruptFile, where, ": ", size - std::min(size, end),
          " bytes belong to no tensor");
}

bool looks_like_gguf(std::span<const std::byte> head, uint64_t) {
  return head.size() >= 4 && std::memcmp(head.data(), kGgufMagic.data(), 4) == 0;
}

bool is_gguf(const std::filesystem::path& path) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) return false;
  const InputFile file(path);
  std::byte head[4] = {};
  file.read(0, head, std::min<uint64_t>(file.size(), sizeof head));
  return looks_like_gguf(head, file.size());
}

}  // namespace cairn::io
