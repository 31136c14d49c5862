#include "kernels/cpu/simd/isa.h"

#include <cstdlib>

#include "kernels/cpu/simd/dispatch.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace cairn::kernels::cpu {
namespace {

constexpr std::string_view kNames[] = {"portable", "avx2", "avx512", "avx512_bf16", "amx"};
constexpr int kSets = sizeof kNames / sizeof *kNames;

#if defined(__x86_64__)
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
// VDPBF16PS: on Intel's cores one in two cycles beside two multiply-adds of float32 a cycle (measured on Sapphire
// Rapids), so that widening is faster there; on AMD's as many of both.
bool dots_are_fast() {
  constexpr unsigned kAuth = 0x68747541, kHygo = 0x6f677948;  // of "AuthenticAMD", "HygonGenuine"
  const unsigned vendor = cpuid(0, 0).b;
  return vendor == kAuth || vendor == kHygo;
}
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
#else
bool amx_bits() { return false; }
bool avx512_bf16_bit() { return false; }
bool dots_are_fast() { return false; }
bool tiles_granted() { return false; }
#endif

InstructionSet probe() {
  const int64_t targets = hwy::SupportedTargets();
  if ((targets & HWY_AVX2) == 0) return InstructionSet::kPortable;
  if ((targets & HWY_AVX3) == 0) return InstructionSet::kAvx2;
  if (!avx512_bf16_bit()) return InstructionSet::kAvx512;
  return amx_bits() && tiles_granted() ? InstructionSet::kAmx : InstructionSet::kAvx512Bf16;
}

std::string names(int count) {
  std::string text;
  for (int i = count; i-- > 0;) text.append(text.empty() ? "" : ", ").append(kNames[i]);
  return text;
}

// What is used where nothing is asked for.
InstructionSet fastest() {
  const InstructionSet best = best_isa();
  return best == InstructionSet::kAvx512Bf16 && !dots_are_fast() ? InstructionSet::kAvx512 : best;
}

struct Choice {
  InstructionSet isa = fastest();
  std::string refusal;

  Choice() {
    const char* const word = std::getenv("CAIRN_ISA");
    if (word == nullptr || *word == '\0') return;
    const int best = static_cast<int>(best_isa());
    for (int i = 0; i <= best; ++i)
      if (word == kNames[i]) {
        isa = static_cast<InstructionSet>(i);
        return;
      }
    bool known = false;
    for (const std::string_view name : kNames) known = known || name == word;
    refusal = std::string("CAIRN_ISA=").append(word);
    refusal += known ? ": this processor lacks it; it has "
                     : " is no instruction set; known are " + names(kSets) + ", and this processor has ";
    refusal += names(best + 1) + ": set one of these, or leave CAIRN_ISA unset for the best";
  }
};
const Choice& choice() {
  static const Choice made;
  return made;
}

}  // namespace

std::string_view isa_name(InstructionSet isa) { return kNames[static_cast<int>(isa)]; }
InstructionSet best_isa() {
  static const InstructionSet best = probe();
  return best;
}
InstructionSet isa() { return choice().isa; }
const std::string& isa_refusal() { return choice().refusal; }
bool amx_palette_hidden() {
#if defined(__x86_64__)
  return amx_bits() && cpuid(0x1d, 0).a == 0;
#else
  return false;
#endif
}

const hwy::ChosenTarget& chosen_target() {
  static const struct Chosen {
    hwy::ChosenTarget target;
    Chosen() {
      constexpr int64_t kAvx512 = HWY_AVX3 | HWY_AVX3_DL;
      int64_t allowed = hwy::SupportedTargets();
      if (isa() < InstructionSet::kAvx512) allowed &= ~kAvx512;
      if (isa() < InstructionSet::kAvx2) allowed &= ~static_cast<int64_t>(HWY_AVX2);
      target.Update(allowed);
    }
  } made;
  return made.target;
}

}  // namespace cairn::kernels::cpu
