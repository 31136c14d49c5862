// XXH3-128 over bytes that come piece by piece. Private to runtime/io.
#pragma once
#include <xxhash.h>

#include <cstdint>
#include <memory>
#include <span>

#include "runtime/base/error.h"

namespace cairn::io {

class Digest {
 public:
  Digest() : state_(XXH3_createState(), XXH3_freeState) {
    require(state_ != nullptr, Code::kOutOfMemory, "no memory for a digest");
    restart();
  }
  void restart() { XXH3_128bits_reset(state_.get()); }
  void add(std::span<const std::byte> bytes) {
    XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
  }
  uint64_t low() const { return XXH3_128bits_digest(state_.get()).low64; }
  uint64_t high() const { return XXH3_128bits_digest(state_.get()).high64; }
  bool is(uint64_t low64, uint64_t high64) const { return low() == low64 && high() == high64; }

 private:
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_;
};

}  // namespace cairn::io
