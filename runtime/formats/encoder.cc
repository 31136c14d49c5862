#include "runtime/formats/encoder.h"

#include <algorithm>

namespace cairn::formats {
namespace {

// body(place in the part, values, row) for what is known together: rows, or all. It ends where body says false.
template <class Body>
bool for_known(Scope scope, int64_t length, int64_t first, int64_t count, const Body& body) {
  const bool by_row = scope == Scope::kRow;
  for (int64_t at = 0, here = 0; at < count; at += here) {
    const int64_t row = by_row ? (first + at) / length : 0;
    here = by_row ? std::min(count - at, (row + 1) * length - first - at) : count;
    if (!body(at, here, static_cast<size_t>(row))) return false;
  }
  return true;
}

}  // namespace

void Encoder::measure(int64_t first, std::span<const float> part) {
  const auto count = static_cast<int64_t>(part.size());
  for_known(codec_.scope, row_, first, count, [&](int64_t at, int64_t here, size_t row) {
    known_.resize(std::max(known_.size(), row + 1));
    codec_.measure(part.data() + at, here, known_[row]);
    return true;
  });
}

bool Encoder::encode(int64_t first, std::span<const float> part, void* to) const {
  const auto count = static_cast<int64_t>(part.size());
  return for_known(codec_.scope, row_, first, count, [&](int64_t at, int64_t here, size_t row) {
    return codec_.encode_part(part.data() + at, here, row < known_.size() ? known_[row] : Known{},
                              static_cast<char*>(to) + at / codec_.block * codec_.block_bytes);
  });
}

}  // namespace cairn::formats
