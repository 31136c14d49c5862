// What the attention kernels share: geometry, and the row steps between their products.
#pragma once
#include <cstdint>
#include <optional>

#include "runtime/base/kernel.h"

namespace cairn::kernels::cpu {

inline constexpr int64_t kQueryRows = 64;  // rows of scores that exist at a time, per thread

struct AttentionShape {
  int64_t batch, length, heads, kv_heads, dim;
  int64_t q_ld, kv_ld, y_ld;  // elements from one position to the next
  bool causal, packed;
  DType type;  // of q, k, v, y
  float scale;

  int64_t group() const { return heads / kv_heads; }
  // Keys that the queries [q, q_end) see at most.
  int64_t keys(int64_t q_end) const { return causal ? q_end : length; }
  int64_t visible(int64_t query) const { return causal ? query + 1 : length; }

  // Elements from the start of q, k, v (or of the packed tensor) to head h of position t of sequence b.
  int64_t q_at(int64_t b, int64_t h, int64_t t) const { return (b * length + t) * q_ld + h * dim; }
  int64_t k_at(int64_t b, int64_t g, int64_t t) const {
    return (b * length + t) * kv_ld + (packed ? heads + g : g) * dim;
  }
  int64_t v_at(int64_t b, int64_t g, int64_t t) const {
    return (b * length + t) * kv_ld + (packed ? heads + kv_heads + g : g) * dim;
  }
  int64_t y_at(int64_t b, int64_t h, int64_t t) const { return (b * length + t) * y_ld + h * dim; }
  int64_t lse_at(int64_t b, int64_t h, int64_t t) const { return (b * heads + h) * length + t; }
};

// From the signature of attention (first = 0) or attention_grad (first = 1: q is operand 1); nothing if an
// operand is of a type that these kernels do not take.
std::optional<AttentionShape> attention_shape(const Signature& s, size_t first);

// p = softmax(scale * s) over the first `visible` of n scores, the others 0; p may be s. Returns the
// log-sum-exp.
float score_row(float* s, int64_t visible, int64_t n, float scale, DType type, void* p);
// p = exp(scale * s - lse), ds = scale * p (dp - delta) over the first `visible` of n, the others 0; may
// overwrite s and dp when in float32.
void score_grad_row(const float* s, const float* dp, int64_t visible, int64_t n, float scale, float lse,
                    float delta, DType type, void* p, void* ds);
float dot(DType type, const void* a, const void* b, int64_t n);

}  // namespace cairn::kernels::cpu
