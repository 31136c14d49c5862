// The few instructions of sm_80 and later that CUDA C++ has no word for: products of 16-bit matrices by a
// warp, matrices from shared memory into registers, copies to shared memory that nobody waits for. The
// emulation has the same functions (tests/cuda/emulated/mma.h), so the layout of fragments is tested as well.
// All lanes of a warp call them together, the copies and the conversions excepted.
//
// Lane l = 4g + t of a warp holds, two 16-bit numbers to a register, the lower column in the lower half:
//   A[16 x 16], rows:    a[0] (g, 2t), a[1] (g + 8, 2t), a[2] (g, 2t + 8), a[3] (g + 8, 2t + 8), each with its
//                        right neighbour
//   B[16 x 8], columns:  b0 (2t, g), b1 (2t + 8, g), each with the element below
//   C[16 x 8]:           c[0], c[1] (g, 2t), (g, 2t + 1); c[2], c[3] the same columns of row g + 8
#pragma once
#include <type_traits>

#include "kernels/cuda/common/platform.h"
#include "runtime/base/tensor.h"

#ifndef __CUDACC__
#include <emulated/mma.h>
#else

namespace cairn::kernels::cuda {

// An address in shared memory; arithmetic in bytes.
using Shared = unsigned;

__device__ __forceinline__ Shared shared_address(const void* p) {
  return static_cast<Shared>(__cvta_generic_to_shared(p));
}

// threadIdx.x, read again, so that the compiler does not keep what is computed from it in registers between two uses.
__device__ __forceinline__ int thread_anew() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;\n" : "=r"(thread));
  return thread;
}

// c += a b, of T: bf16 or f16.
template <class T>
__device__ __forceinline__ void mma_16x8x16(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  if constexpr (std::is_same_v<T, bf16>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Four 8 x 8 matrices of 16-bit numbers: lanes 8i..8i+7 give the addresses of the rows of matrix i (16 bytes
// each, aligned); lane 4g + t gets elements 2t and 2t + 1 of row g of matrix i in to[i]; transposed: of
// column g.
__device__ __forceinline__ void ldmatrix(unsigned (&to)[4], Shared row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}
__device__ __forceinline__ void ldmatrix_transposed(unsigned (&to)[4], Shared row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}

// 16 bytes, both ends aligned; zeros unless `there`. Done when this thread has waited for the group that it
// is committed in; other threads see it after a barrier.
__device__ __forceinline__ void cp_async(Shared to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;\n" ::"r"(to),
               "l"(__cvta_generic_to_global(from)), "r"(there ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
// Until at most kLeft of this thread's groups are under way.
template <int kLeft>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kLeft) : "memory");
}

// Two numbers, rounded to nearest even, in one register.
template <class T>
__device__ __forceinline__ unsigned pack_pair(float low, float high) {
  unsigned packed;
  if constexpr (std::is_same_v<T, bf16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(packed) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;\n" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

// 2^x within 2 units in the last place; subnormal results are 0.
__device__ __forceinline__ float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ void store_shared(Shared to, unsigned v) {
  asm volatile("st.shared.b32 [%0], %1;\n" ::"r"(to), "r"(v) : "memory");
}
__device__ __forceinline__ void store_shared_16(Shared to, const uint4& v) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};\n" ::"r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}
__device__ __forceinline__ uint4 load_shared_16(Shared from) {
  uint4 v;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(from)
               : "memory");
  return v;
}
__device__ __forceinline__ float load_shared_float(Shared from) {
  float v;
  asm volatile("ld.shared.f32 %0, [%1];\n" : "=f"(v) : "r"(from) : "memory");
  return v;
}
__device__ __forceinline__ float2 load_shared_floats(Shared from) {
  float2 v;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];\n" : "=f"(v.x), "=f"(v.y) : "r"(from) : "memory");
  return v;
}

}  // namespace cairn::kernels::cuda
#endif
