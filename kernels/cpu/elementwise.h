// Elementwise functions, one function per family, dispatched to the best instruction set at run time.
#pragma once
#include <cstdint>

#include "runtime/base/glu.h"
#include "runtime/base/tensor.h"

namespace cairn::kernels::cpu {

enum class Map : uint8_t {
#define FUNCTION(name, ...) k_##name, k_##name##_grad,
#define PLAIN(name, ...) k_##name, k_##name##_grad,
#include "runtime/base/elementwise.def"
#define GLU(word, ...) kGlu_##word, kGlu_##word##_grad,
  CAIRN_GLUS(GLU, GLU)
#undef GLU
      kAdd,
  kMul,
  kScale
};

// Elements [begin, end) of up to three inputs and two outputs of one type; factor: kScale's, or the limit of a glu.
void map_elements(Map map, DType type, const void* const in[3], void* const out[2], int64_t begin,
                  int64_t end, float factor);
// y = a (+ or *) b for one row of n elements; b may be float32 with a bfloat16 a.
void combine_row(Map map, DType type_a, DType type_b, const void* a, const void* b, void* y, int64_t n);
// y = x in another type; add: y += x (float32 y).
void convert(DType type_x, DType type_y, bool add, const void* x, void* y, int64_t n);

}  // namespace cairn::kernels::cpu
