// The growth rule of structs with struct_size, in one place. Smaller than ours: missing fields are zero.
// Larger: fine if the tail that we do not know is all zero, else kUnsupported, so that a new caller with an
// old library is told.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "capi/src/boundary.h"

namespace cairn::capi {

template <class Struct>
size_t known_size(const Struct* given, std::string_view name) {
  static_assert(std::is_trivially_copyable_v<Struct> && offsetof(Struct, struct_size) == 0);
  const size_t size = given->struct_size;
  require(size >= sizeof(size_t), Code::kInvalidArgument, name, ".struct_size is ", size,
          "; set the struct up with its _INIT macro");
  require(size <= (1u << 20), Code::kInvalidArgument, name, ".struct_size is ", size,
          ": not a size of this struct");
  const char* bytes = reinterpret_cast<const char*>(given);
  for (size_t i = sizeof(Struct); i < size; ++i)
    require(bytes[i] == 0, Code::kUnsupported, name, " has a field at byte ", i,
            " that this library (1.0) does not know, and it is set");
  return std::min(size, sizeof(Struct));
}

// A copy of the caller's options; `otherwise` for NULL.
template <class Struct>
Struct read_struct(const Struct* given, const Struct& otherwise, std::string_view name) {
  if (given == nullptr) return otherwise;
  Struct copy{};
  std::memcpy(&copy, given, known_size(given, name));
  copy.struct_size = sizeof(Struct);
  return copy;
}

template <class Struct>
Struct read_struct(const Struct* given, std::string_view name) {
  not_null(given, name);
  return read_struct(given, Struct{}, name);
}

// Checks the caller's struct before any work is done, and fills it afterwards: as much as it has room for.
template <class Struct>
class OutStruct {
 public:
  OutStruct(Struct* out, std::string_view name) : out_(out) {
    not_null(out, name);
    size_ = known_size(out, name);
  }
  void write(const Struct& values) const {
    constexpr size_t first = sizeof(size_t);
    std::memcpy(reinterpret_cast<char*>(out_) + first, reinterpret_cast<const char*>(&values) + first,
                size_ - first);
  }

 private:
  Struct* out_;
  size_t size_;
};

// Cuts `text` to fit into a char array, at a UTF-8 character's start, ended by NUL.
template <size_t N>
void copy_text(char (&to)[N], std::string_view text) noexcept {
  size_t n = std::min(text.size(), N - 1);
  if (n < text.size())
    while (n > 0 && (static_cast<unsigned char>(text[n]) & 0xC0u) == 0x80u) --n;
  std::memcpy(to, text.data(), n);
  to[n] = 0;
}

}  // namespace cairn::capi
