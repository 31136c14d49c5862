// How a FlatBuffer lies in a file: the buffer, padded with zeros to 16 bytes, then the XXH3-128 (low, high)
// of all bytes before. Opening checks size, identifier, digest and the verifier, in this order. Private to
// runtime/io.
#pragma once
#include <flatbuffers/flatbuffers.h>

#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/tensor.h"
#include "runtime/io/limits.h"

namespace cairn::io {

inline constexpr uint32_t kFormatVersion = 1;
static_assert(std::endian::native == std::endian::little, "lists are copied out of files as they are");

std::vector<std::byte> seal(const flatbuffers::FlatBufferBuilder& builder);

// The buffer inside a sealed file, aligned; a copy only where the bytes given are not.
class Opened {
 public:
  // kCorruptFile: too short, foreign, or the digest differs. `what`: "model", "plan", ... for messages.
  Opened(std::span<const std::byte> file, const char* identifier, std::string_view what);

  template <class Root>
  const Root* root() const {
    flatbuffers::Verifier verifier(data(), buffer_.size(), kMaxDepth, kMaxTables);
    require(verifier.VerifyBuffer<Root>(identifier_), Code::kCorruptFile, what_,
            ": the structure is damaged");
    const Root* root = flatbuffers::GetRoot<Root>(data());
    require(root->version() == kFormatVersion, Code::kCorruptFile, what_, ": version ", root->version(),
            " is not known; this library reads version ", kFormatVersion);
    return root;
  }
  Budget budget() const { return Budget(what_, buffer_.size()); }

 private:
  const uint8_t* data() const { return reinterpret_cast<const uint8_t*>(buffer_.data()); }
  std::vector<std::max_align_t> aligned_;
  std::span<const std::byte> buffer_;
  const char* identifier_;
  std::string what_;
};

bool has_identifier(std::span<const std::byte> file, const char* identifier);

// ---- checked reads; absent optional fields are empty.
std::string text_of(const flatbuffers::String* text, Budget& budget, uint64_t limit = kMaxMadeNameBytes);
TensorDesc desc_of(uint8_t dtype, const flatbuffers::Vector<int64_t>* shape, Budget& budget);
template <class T>
std::vector<T> list_of(const flatbuffers::Vector<T>* list, Budget& budget) {
  if (list == nullptr) return {};
  budget.take(list->size() * sizeof(T));
  // Copied, not read in place: the verifier does not look at the alignment of a vector's items.
  std::vector<T> copy(list->size());
  if (!copy.empty()) std::memcpy(copy.data(), list->Data(), copy.size() * sizeof(T));
  return copy;
}
template <class T>
uint64_t count_of(const flatbuffers::Vector<T>* list, uint64_t limit, std::string_view of, Budget& budget) {
  const uint64_t count = list == nullptr ? 0 : list->size();
  require(count <= limit, Code::kCorruptFile, budget.what(), ": ", count, " ", of, " are more than ", limit);
  budget.take(count);
  return count;
}

}  // namespace cairn::io
