// Words whose tokens were found before. Bounded: when it is full, it is emptied.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace cairn::tokenizer {

class WordCache {
 public:
  static constexpr size_t kMostBytes = 255;  // of a word

  struct Found {
    const int32_t* ids;
    const uint8_t* sizes;
    uint32_t count;
  };

  // Whether the word is there. `hash` is for put().
  bool find(std::string_view word, uint64_t& hash, Found& found) const {
    hash = hash_of(word);
    if (slots_.empty()) return false;
    for (size_t step = 0, at = hash & kMask; step < kMostSteps; ++step, at = (at + 1) & kMask) {
      const Slot slot = slots_[at];
      if (slot.place == 0) return false;
      if (slot.check != static_cast<uint32_t>(hash >> 32)) continue;
      const uint32_t* const entry = arena_.data() + slot.place - 1;
      const uint32_t size = entry[0] & 0xFF, count = entry[0] >> 8;
      const auto* const bytes = reinterpret_cast<const uint8_t*>(entry + 1 + count);
      if (size != word.size() || std::memcmp(bytes + count, word.data(), size) != 0) continue;
      found = {reinterpret_cast<const int32_t*>(entry + 1), bytes, count};
      return true;
    }
    return false;
  }

  template <class Pieces>
  void put(std::string_view word, uint64_t hash, const Pieces* pieces, size_t count) {
    if (slots_.empty() || used_ >= kMostWords || arena_.size() > kMostArena) {
      slots_.assign(kMask + 1, Slot());
      arena_.clear();
      used_ = 0;
    }
    const size_t bytes = count + word.size(), place = arena_.size();
    arena_.resize(place + 1 + count + (bytes + 3) / 4);
    uint32_t* const entry = arena_.data() + place;
    entry[0] = static_cast<uint32_t>(word.size() | count << 8);
    auto* const tail = reinterpret_cast<uint8_t*>(entry + 1 + count);
    for (size_t i = 0; i < count; ++i) {
      entry[1 + i] = static_cast<uint32_t>(pieces[i].id);
      tail[i] = static_cast<uint8_t>(pieces[i].end - pieces[i].begin);
    }
    std::memcpy(tail + count, word.data(), word.size());
    size_t at = hash & kMask;
    for (size_t step = 1; step < kMostSteps && slots_[at].place != 0; ++step) at = (at + 1) & kMask;
    if (slots_[at].place == 0) ++used_;
    slots_[at] = {static_cast<uint32_t>(hash >> 32), static_cast<uint32_t>(place + 1)};
  }

 private:
  static constexpr size_t kMask = (size_t{1} << 16) - 1, kMostSteps = 8, kMostWords = (kMask + 1) / 2;
  static constexpr size_t kMostArena = size_t{1} << 20;  // of 4 bytes

  struct Slot {
    uint32_t check = 0, place = 0;  // place 0: free
  };

  static uint64_t mix(uint64_t a, uint64_t b) {
    a *= 0x9E3779B97F4A7C15u;
    a ^= a >> 32;
    a = (a ^ b) * 0xD6E8FEB86659FD93u;
    return a ^ a >> 32;
  }
  static uint64_t load(const char* at, size_t bytes) {
    uint64_t value = 0;
    std::memcpy(&value, at, bytes);
    return value;
  }
  static uint64_t hash_of(std::string_view word) {
    const char* const text = word.data();
    const size_t size = word.size();
    if (size >= 8) {
      uint64_t hash = size;
      for (size_t at = 0; at + 8 < size; at += 8) hash = mix(hash, load(text + at, 8));
      return mix(hash, load(text + size - 8, 8));
    }
    if (size >= 4) return mix(load(text, 4) << 32 | load(text + size - 4, 4), size);
    return mix(uint64_t{static_cast<uint8_t>(text[0])} << 16 |
                   uint64_t{static_cast<uint8_t>(text[size / 2])} << 8 | static_cast<uint8_t>(text[size - 1]),
               size);
  }

  std::vector<Slot> slots_;
  std::vector<uint32_t> arena_;
  size_t used_ = 0;
};

}  // namespace cairn::tokenizer
