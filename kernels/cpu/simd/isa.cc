#include "kernels/cpu/simd/isa.h"

#include <cstdlib>

#include "kernels/cpu/simd/dispatch.h"
#include "kernels/cpu/simd/features.h"

namespace cairn::kernels::cpu {
namespace {

constexpr bool kOfAny = true;
#if defined(__x86_64__)
constexpr bool kOfX86 = true, kOfAArch64 = false;
#elif defined(__aarch64__)
constexpr bool kOfX86 = false, kOfAArch64 = true;
#else
constexpr bool kOfX86 = false, kOfAArch64 = false;
#endif

constexpr IsaRow kRows[] = {
#define ISA(architecture, set, word, name, needs, targets, products, f32, bf16) \
  {InstructionSet::set, word, name, needs, targets, Bf16Products::products, f32, bf16, kOf##architecture},
#include "kernels/cpu/simd/isa.def"
#undef ISA
};

// The words of the rows that `take` takes, the best first.
template <class Take>
std::string words(const Take& take) {
  std::string text;
  for (const IsaRow& row : kRows)
    if (take(row)) text = std::string(row.word).append(text.empty() ? "" : ", ").append(text);
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
    bool known = false;
    for (const IsaRow& row : kRows) {
      if (row.word != word || !row.of_this_architecture) continue;
      known = true;
      if (!has_isa(row.set)) continue;
      isa = row.set;
      return;
    }
    const auto here = [](const IsaRow& row) { return row.of_this_architecture; };
    refusal = std::string("CAIRN_ISA=").append(word);
    refusal += known ? ": this processor lacks it; it has "
                     : " is no instruction set; known are " + words(here) + ", and this processor has ";
    refusal += words([](const IsaRow& row) { return has_isa(row.set); }) +
               ": set one of these, or leave CAIRN_ISA unset for the best";
  }
};
const Choice& choice() {
  static const Choice made;
  return made;
}

thread_local int portable_scopes = 0;

}  // namespace

const IsaRow& isa_row(InstructionSet isa) { return kRows[static_cast<size_t>(isa)]; }
bool has_isa(InstructionSet isa) {
  const IsaRow& row = isa_row(isa);
  return row.of_this_architecture && (row.needs & ~features()) == 0;
}
InstructionSet best_isa() {
  InstructionSet best = InstructionSet::kPortable;
  for (const IsaRow& row : kRows)
    if (has_isa(row.set)) best = row.set;
  return best;
}
InstructionSet isa() { return portable_scopes > 0 ? InstructionSet::kPortable : choice().isa; }
PortableIsa::PortableIsa() { ++portable_scopes; }
PortableIsa::~PortableIsa() { --portable_scopes; }
const std::string& isa_refusal() { return choice().refusal; }

// The set's own target, and what Highway compiles for every processor.
const hwy::ChosenTarget& chosen_target() {
  static const struct Chosen {
    hwy::ChosenTarget target;
    Chosen() { target.Update(isa_row(choice().isa).targets | HWY_SCALAR | HWY_EMU128); }
  } made;
  return made.target;
}

}  // namespace cairn::kernels::cpu
