#include "kernels/cpu/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace cairn::kernels::cpu {

#if defined(__x86_64__)
namespace {

struct Leaf {
  unsigned a = 0, b = 0, c = 0, d = 0;
};
Leaf cpuid(unsigned leaf, unsigned sub) {
  Leaf r;
  if (__get_cpuid_max(0, nullptr) >= leaf) __cpuid_count(leaf, sub, r.a, r.b, r.c, r.d);
  return r;
}
bool amx_bits() {
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;
  return (cpuid(7, 0).d & (kBf16 | kTile)) == (kBf16 | kTile);
}
bool probe_amx() {
  if (!amx_bits() || !has_avx512()) return false;
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

bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
bool has_amx() {
  static const bool yes = probe_amx();
  return yes;
}
bool amx_palette_hidden() { return amx_bits() && cpuid(0x1d, 0).a == 0; }
#else
bool has_avx2() { return false; }
bool has_avx512() { return false; }
bool has_amx() { return false; }
bool amx_palette_hidden() { return false; }
#endif

}  // namespace cairn::kernels::cpu
