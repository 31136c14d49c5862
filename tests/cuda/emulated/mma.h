// mma.h for the emulation. A matrix operation is one exchange: every lane lays what it gives into the warp's
// scratch memory, waits for the warp, and reads what it needs. Two scratch memories in turn make the second
// wait unnecessary.
#pragma once
#include <array>

#include "runtime/base/error.h"
#include "runtime/base/tensor.h"
#include "tests/cuda/emulated/simt.h"

namespace cairn::kernels::cuda {
namespace emulated {

struct Scratch {
  float a[16][16], b[8][16];  // b by columns
  const uint16_t* rows[32];
};

// Of the warp, for the operation that begins.
inline Scratch& next_scratch() {
  static thread_local std::array<Scratch, 32 * 2> scratch;
  static thread_local std::array<uint8_t, 1024> turn{};
  const unsigned thread = thread_index.x;
  turn[thread] ^= 1;
  return scratch[thread / 32 * 2 + turn[thread]];
}

template <class T>
float low_half(unsigned v) {
  return to_float(T{static_cast<uint16_t>(v & 0xffffu)});
}
template <class T>
float high_half(unsigned v) {
  return to_float(T{static_cast<uint16_t>(v >> 16)});
}

inline void load_matrices(unsigned (&to)[4], uintptr_t row, bool transposed) {
  require(row % 16 == 0, Code::kInternal, "ldmatrix from an address that is no multiple of 16");
  Scratch& scratch = next_scratch();
  const int lane = own_lane(), g = lane / 4, t = lane % 4;
  scratch.rows[lane] = reinterpret_cast<const uint16_t*>(row);
  sync_warp();
  for (int i = 0; i < 4; ++i) {
    const auto at = [&](int r, int c) -> unsigned {
      return transposed ? scratch.rows[8 * i + c][r] : scratch.rows[8 * i + r][c];
    };
    to[i] = at(g, 2 * t) | at(g, 2 * t + 1) << 16;
  }
}

}  // namespace emulated

using Shared = uintptr_t;

inline Shared shared_address(const void* p) { return reinterpret_cast<uintptr_t>(p); }

inline int thread_anew() { return static_cast<int>(emulated::thread_index.x); }

template <class T>
void mma_16x8x16(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  using namespace emulated;
  Scratch& scratch = next_scratch();
  const int lane = own_lane(), g = lane / 4, t = lane % 4;
  for (int i = 0; i < 4; ++i) {
    float* at = &scratch.a[g + i % 2 * 8][2 * t + i / 2 * 8];
    at[0] = low_half<T>(a[i]);
    at[1] = high_half<T>(a[i]);
  }
  float* column = &scratch.b[g][2 * t];
  column[0] = low_half<T>(b0);
  column[1] = high_half<T>(b0);
  column[8] = low_half<T>(b1);
  column[9] = high_half<T>(b1);
  sync_warp();
  for (int i = 0; i < 4; ++i) {
    const float *row = scratch.a[g + i / 2 * 8], *other = scratch.b[2 * t + i % 2];
    for (int k = 0; k < 16; ++k) c[i] += row[k] * other[k];
  }
}

inline void ldmatrix(unsigned (&to)[4], Shared row) { emulated::load_matrices(to, row, false); }
inline void ldmatrix_transposed(unsigned (&to)[4], Shared row) { emulated::load_matrices(to, row, true); }

inline void cp_async(Shared to, const void* from, bool there) {
  require(to % 16 == 0 && reinterpret_cast<uintptr_t>(from) % 16 == 0, Code::kInternal,
          "an asynchronous copy between addresses that are no multiples of 16");
  emulated::async_copy(reinterpret_cast<void*>(to), there ? from : nullptr);
}
inline void cp_async_commit() { emulated::async_commit(); }
template <int kLeft>
void cp_async_wait() {
  emulated::async_wait(kLeft);
}

template <class T>
unsigned pack_pair(float low, float high) {
  return static_cast<unsigned>(round_to<T>(low).bits) | static_cast<unsigned>(round_to<T>(high).bits) << 16;
}
inline float fast_exp2(float x) { return std::exp2(x); }

inline void store_shared(Shared to, unsigned v) { std::memcpy(reinterpret_cast<void*>(to), &v, sizeof v); }
inline void store_shared_16(Shared to, const uint4& v) {
  require(to % 16 == 0, Code::kInternal, "a vector at an address that is no multiple of 16");
  std::memcpy(reinterpret_cast<void*>(to), &v, sizeof v);
}
inline uint4 load_shared_16(Shared from) {
  require(from % 16 == 0, Code::kInternal, "a vector at an address that is no multiple of 16");
  return *reinterpret_cast<const uint4*>(from);
}
inline float load_shared_float(Shared from) { return *reinterpret_cast<const float*>(from); }
inline float2 load_shared_floats(Shared from) {
  require(from % 8 == 0, Code::kInternal, "a vector at an address that is no multiple of 8");
  return *reinterpret_cast<const float2*>(from);
}

}  // namespace cairn::kernels::cuda
