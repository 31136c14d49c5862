#include "runtime/device/cpu/copy.h"

#include <algorithm>
#include <cstring>
#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#include <emmintrin.h>
#define CAIRN_STREAM 1  // sanitizers see memcpy, but not streaming stores
#endif

#include "runtime/base/checked.h"

namespace cairn::device::cpu {
namespace {

constexpr int64_t kChunk = int64_t{1} << 20;

// Copies past the caches: what leaves or comes back is not read again soon, and the kernels running meanwhile
// need the cache for themselves.
void move_bytes(char* to, const char* from, int64_t bytes) {
#ifdef CAIRN_STREAM
  constexpr int64_t kLine = 64;
  if (bytes >= 4 * kPageBytes && reinterpret_cast<uintptr_t>(to) % kLine == 0) {
    const int64_t lines = bytes / kLine;
    for (int64_t i = 0; i < lines; ++i) {
      const auto* source = reinterpret_cast<const __m128i*>(from + i * kLine);
      auto* target = reinterpret_cast<__m128i*>(to + i * kLine);
      const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
      const __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
      _mm_stream_si128(target, a);
      _mm_stream_si128(target + 1, b);
      _mm_stream_si128(target + 2, c);
      _mm_stream_si128(target + 3, d);
    }
    _mm_sfence();
    to += lines * kLine, from += lines * kLine, bytes -= lines * kLine;
  }
#endif
  std::memcpy(to, from, static_cast<size_t>(bytes));
}

void memory_to_memory(Throttle* link, char* to, const char* from, int64_t bytes) {
  if (link == nullptr || !link->on()) return move_bytes(to, from, bytes);
  const Clock::time_point start = link->take(bytes);
  for (int64_t done = 0; done < bytes;) {
    const int64_t part = std::min(kChunk, bytes - done);
    move_bytes(to + done, from + done, part);
    done += part;
    link->pace(start, done);
  }
}

}  // namespace

void copy(State& state, const CpuBlock& to, int64_t to_offset, const CpuBlock& from, int64_t from_offset,
          int64_t bytes) {
  const auto at = [](const CpuBlock& block, int64_t offset) {
    return static_cast<char*>(block.address()) + offset;
  };
  if (to.tier() == Tier::kDisk) {
    require(from.tier() != Tier::kDisk, Code::kUnsupported, "copies from disk to disk");
    to.file().write(at(from, from_offset), to_offset, bytes);
  } else if (from.tier() == Tier::kDisk) {
    from.file().read(at(to, to_offset), from_offset, bytes);
  } else {
    Throttle* const between = to.tier() == Tier::kHost ? &state.out_link : &state.in_link;
    Throttle* const link = to.tier() == from.tier() ? nullptr : between;
    memory_to_memory(link, at(to, to_offset), at(from, from_offset), bytes);
  }
}

}  // namespace cairn::device::cpu
