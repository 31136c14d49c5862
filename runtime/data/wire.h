// The protobuf wire format, as much as a sentencepiece model needs: a sequence of (field number, wire type,
// value).
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "runtime/base/error.h"

namespace cairn::data {

enum class Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Reads one message. Everything that is not the wire format is kCorruptFile, naming `where` and the offset in
// the file; groups, which protobuf gave up, are not read.
class WireReader {
 public:
  // `offset`: where the message begins in the file.
  WireReader(std::string_view message, uint64_t offset, const std::string& where)
      : message_(message), offset_(offset), where_(where) {}

  // The next field; false at the end of the message.
  bool next() {
    if (at_ == message_.size()) return false;
    const size_t begin = at_;
    const uint64_t key = read_varint();
    if (key >> 3 == 0 || key >> 3 > kMaxField) corrupt(begin, "a field number outside 1..2^29-1");
    field_ = static_cast<uint32_t>(key >> 3);
    switch (key & 7) {
      case 0:
        value_ = read_varint();
        break;
      case 1:
        bytes_ = take(8);
        break;
      case 2:
        bytes_ = take(read_varint());
        break;
      case 5:
        bytes_ = take(4);
        break;
      default:
        corrupt(begin, "a field of an unknown wire type");
    }
    wire_ = static_cast<Wire>(key & 7);
    return true;
  }
  uint32_t field() const { return field_; }

  // The value of the field read last; kCorruptFile if it is of another wire type.
  uint64_t varint() const {
    expect(Wire::kVarint, "a number");
    return value_;
  }
  bool boolean() const { return varint() != 0; }
  float real() const {
    expect(Wire::kFixed32, "a float");
    uint32_t bits;
    std::memcpy(&bits, bytes_.data(), sizeof bits);
    return std::bit_cast<float>(bits);
  }
  std::string_view bytes() const {
    expect(Wire::kBytes, "a string");
    return bytes_;
  }
  WireReader message() const {
    expect(Wire::kBytes, "a message");
    return {bytes_, offset_ + static_cast<uint64_t>(bytes_.data() - message_.data()), where_};
  }

 private:
  static constexpr uint64_t kMaxField = (uint64_t{1} << 29) - 1;

  uint64_t read_varint() {
    const size_t begin = at_;
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == message_.size()) corrupt(begin, "a number that is cut off");
      const auto byte = static_cast<uint8_t>(message_[at_++]);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) {
        if (shift == 63 && byte > 1) corrupt(begin, "a number above 2^64-1");
        return value;
      }
    }
    corrupt(begin, "a number of more than 10 bytes");
  }
  std::string_view take(uint64_t size) {
    if (size > message_.size() - at_) corrupt(at_, "a field that goes on after the end");
    const std::string_view taken = message_.substr(at_, size);
    at_ += size;
    return taken;
  }
  void expect(Wire wire, const char* what) const {
    require(wire_ == wire, Code::kCorruptFile, where_, ": the field before byte ", offset_ + at_, " is not ",
            what);
  }
  [[noreturn]] void corrupt(size_t at, const char* what) const {
    fail(Code::kCorruptFile, where_, ": not a sentencepiece model: byte ", offset_ + at, " begins ", what);
  }

  std::string_view message_;
  uint64_t offset_;
  const std::string& where_;
  size_t at_ = 0;
  uint32_t field_ = 0;
  Wire wire_ = Wire::kVarint;
  uint64_t value_ = 0;
  std::string_view bytes_;
};

// Appends fields to a message.
class WireWriter {
 public:
  WireWriter& varint(uint32_t field, uint64_t value) {
    key(field, Wire::kVarint);
    number(value);
    return *this;
  }
  WireWriter& signed_varint(uint32_t field, int64_t value) {
    return varint(field, static_cast<uint64_t>(value));
  }
  WireWriter& real(uint32_t field, float value) {
    key(field, Wire::kFixed32);
    char bits[sizeof value];
    std::memcpy(bits, &value, sizeof value);
    message_.append(bits, sizeof bits);
    return *this;
  }
  WireWriter& bytes(uint32_t field, std::string_view value) {
    key(field, Wire::kBytes);
    number(value.size());
    message_ += value;
    return *this;
  }
  const std::string& message() const { return message_; }

 private:
  void key(uint32_t field, Wire wire) { number(uint64_t{field} << 3 | static_cast<uint64_t>(wire)); }
  void number(uint64_t value) {
    for (; value >= 0x80; value >>= 7) message_ += static_cast<char>(value | 0x80);
    message_ += static_cast<char>(value);
  }

  std::string message_;
};

}  // namespace cairn::data
