#include "kernels/cpu/simd/features.h"

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif

namespace cairn::kernels::cpu {

#if defined(__x86_64__)
namespace {

struct Leaf {
  unsigned a = 0, b = 0, c = 0, d = 0;
};
Leaf cpuid(unsigned leaf, unsigned sub) {
  Leaf r;
  if (static_cast<unsigned>(__get_cpuid_max(0, nullptr)) >= leaf)
    __cpuid_count(leaf, sub, r.a, r.b, r.c, r.d);
  return r;
}
bool amx_bits() {
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;
  return (cpuid(7, 0).d & (kBf16 | kTile)) == (kBf16 | kTile);
}
bool avx512_bf16_bit() { return (cpuid(7, 1).a & 1u << 5) != 0; }
bool tiles_granted() {
  constexpr unsigned kOsxsave = 1u << 27;
  if (!(cpuid(1, 0).c & kOsxsave)) return false;
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr unsigned kTiles = 3u << 17;
  if ((low & kTiles) != kTiles) return false;
  constexpr int kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

}  // namespace

uint32_t features() {
  static const uint32_t found = [] {
    const int64_t targets = hwy::SupportedTargets();
    uint32_t bits = 0;
    if ((targets & HWY_AVX2) != 0) bits |= kHasAvx2;
    if ((targets & HWY_AVX3) != 0) bits |= kHasAvx512;
    if (avx512_bf16_bit()) bits |= kHasDots;
    if (bits == (kHasAvx2 | kHasAvx512 | kHasDots) && amx_bits() && tiles_granted()) bits |= kHasTiles;
    return bits;
  }();
  return found;
}

// VDPBF16PS: on Intel's cores one in two cycles, and two multiply-adds of float32 a cycle (measured on Sapphire
// Rapids), so that widening is faster there; on AMD's as many of both.
bool dots_are_fast() {
  constexpr unsigned kAuth = 0x68747541, kHygo = 0x6f677948;  // of "AuthenticAMD", "HygonGenuine"
  const unsigned vendor = cpuid(0, 0).b;
  return vendor == kAuth || vendor == kHygo;
}

bool amx_palette_hidden() { return amx_bits() && cpuid(0x1d, 0).a == 0; }

#elif defined(__aarch64__)
#if defined(__linux__)
namespace {
// Longer vectors than this exist in emulators alone; blocks of products in registers would become too wide.
constexpr int kMostSveBytes = 64;
// The vector length of this thread, which threads that it starts inherit.
int sve_bytes() { return prctl(PR_SVE_GET_VL) & PR_SVE_VL_LEN_MASK; }
}  // namespace
#endif

// Every AArch64 processor has NEON. Highway's own list is not used, as it names NEON only if there is cryptography, too.
uint32_t features() {
  uint32_t bits = kHasNeon;
#if defined(__linux__)
  constexpr unsigned long kSve = 1ul << 22, kBf16 = 1ul << 14;  // HWCAP_SVE, HWCAP2_BF16
  if ((HWY_TARGETS & HWY_SVE) != 0 && (getauxval(AT_HWCAP) & kSve) != 0 && sve_bytes() <= kMostSveBytes)
    bits |= kHasSve;
  if (CAIRN_BFMMLA && (getauxval(AT_HWCAP2) & kBf16) != 0) bits |= kHasMatrices;
#endif
  return bits;
}
bool dots_are_fast() { return true; }
bool amx_palette_hidden() { return false; }

#else
uint32_t features() { return 0; }
bool dots_are_fast() { return true; }
bool amx_palette_hidden() { return false; }
#endif

}  // namespace cairn::kernels::cpu
