#include "runtime/device/host/splitter.h"

#include <cstring>
#if defined(__SSE2__) && !defined(CAIRN_SANITIZED)
#include <emmintrin.h>
#define CAIRN_STREAM 1  // sanitizers see memcpy, but not streaming stores
#endif

#include "runtime/base/checked.h"

namespace cairn::device::host {
namespace {

constexpr int64_t kMinShared = 64 * 1024;  // below, waking the helper costs more than it saves

// Copies past the caches: what leaves or comes back is not read again soon, and the kernels running meanwhile
// need the cache for themselves.
void move_bytes(char* to, const char* from, int64_t bytes) {
#ifdef CAIRN_STREAM
  if (bytes >= 4 * kPageBytes && reinterpret_cast<uintptr_t>(to) % kAlignment == 0) {
    const int64_t lines = bytes / kAlignment;
    for (int64_t i = 0; i < lines; ++i) {
      const auto* source = reinterpret_cast<const __m128i*>(from + i * kAlignment);
      auto* target = reinterpret_cast<__m128i*>(to + i * kAlignment);
      const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
      const __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
      _mm_stream_si128(target, a);
      _mm_stream_si128(target + 1, b);
      _mm_stream_si128(target + 2, c);
      _mm_stream_si128(target + 3, d);
    }
    _mm_sfence();
    to += lines * kAlignment, from += lines * kAlignment, bytes -= lines * kAlignment;
  }
#endif
  std::memcpy(to, from, static_cast<size_t>(bytes));
}

}  // namespace

Splitter::Splitter(bool helper) {
  if (helper) helper_.start<&Splitter::loop>("cairn/copy-help", this);
}

Splitter::~Splitter() {
  if (!helper_.started()) return;
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  helper_.join();
}

void Splitter::move(char* to, const char* from, int64_t bytes) {
  if (!helper_.started() || bytes < kMinShared) return move_bytes(to, from, bytes);
  const int64_t half = align_up(bytes / 2, kAlignment);
  {
    std::lock_guard lock(mutex_);
    to_ = to + half;
    from_ = from + half;
    bytes_ = bytes - half;
  }
  changed_.notify_all();
  move_bytes(to, from, half);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return to_ == nullptr; });
}

void Splitter::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return to_ != nullptr || ending_; });
    if (to_ == nullptr) return;
    char* const to = to_;
    const char* const from = from_;
    const int64_t bytes = bytes_;
    lock.unlock();
    move_bytes(to, from, bytes);
    lock.lock();
    to_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace cairn::device::host
