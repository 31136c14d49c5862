// Gated linear units: the words of glu's attribute `activation`, and which function each applies to the gate.
#pragma once
#include <string_view>

#include "runtime/base/attrs.h"

namespace cairn {

//   GLU(word, function of elementwise.def)
//   GLU_LIMITED(word): a function of gate and up of its own, with the attribute `limit`
// The first one is the default.
#define CAIRN_GLUS(GLU, GLU_LIMITED) \
  GLU(silu, silu)                    \
  GLU(gelu, gelu_erf)                \
  GLU(gelu_tanh, gelu_tanh)          \
  GLU(relu, relu)                    \
  GLU_LIMITED(swish_clamped)

struct GluRow {
  std::string_view word;
  bool limited;
};
inline constexpr GluRow kGlus[] = {
#define GLU(word, function) {#word, false},
#define GLU_LIMITED(word) {#word, true},
    CAIRN_GLUS(GLU, GLU_LIMITED)
#undef GLU
#undef GLU_LIMITED
};

// Which of them an op's attributes name.
inline size_t glu_of(const Attrs* attrs) {
  const std::string word = attrs != nullptr ? attrs->word("activation") : "";
  for (size_t i = 0; i < std::size(kGlus); ++i)
    if (kGlus[i].word == word) return i;
  return 0;
}
inline double glu_limit(const Attrs* attrs) { return attrs != nullptr ? attrs->real("limit", 7) : 7; }

// swish_clamped multiplies its gate by the sigmoid of so many times the gate.
inline constexpr double kSwishSlope = 1.702;

}  // namespace cairn
