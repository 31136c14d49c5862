// What the attention kernels share: geometry, which keys a row sees, and the row steps between their products.
#pragma once
#include <cstdint>
#include <optional>

#include "runtime/base/kernel.h"

namespace cairn::kernels::cpu {

inline constexpr int64_t kQueryRows = 64;  // rows of scores that exist at a time, per thread

// A run of keys.
struct KeyRange {
  int64_t begin = 0, end = 0;
  bool empty() const { return begin >= end; }
  int64_t size() const { return end - begin; }
};

struct AttentionShape {
  int64_t batch, length, keys, heads, kv_heads, dim;  // length: rows of q; keys: rows of k and v
  int64_t q_ld, kv_ld, y_ld;                          // elements from one position to the next
  bool causal, packed;
  DType type;            // of q, k, v, y
  float scale, softcap;  // softcap 0: there is none
  int64_t window;        // as large as any distance where there is none
  size_t sinks;          // the operand; sequences, lengths, position and distances follow it

  int64_t group() const { return heads / kv_heads; }
  // The most keys that so many rows see.
  int64_t most_keys(int64_t rows) const;

  // Elements from the start of q, k, v (or of the packed tensor) to head h of position t of sequence b.
  int64_t q_at(int64_t b, int64_t h, int64_t t) const { return (b * length + t) * q_ld + h * dim; }
  int64_t k_at(int64_t b, int64_t g, int64_t t) const {
    return (b * keys + t) * kv_ld + (packed ? heads + g : g) * dim;
  }
  int64_t v_at(int64_t b, int64_t g, int64_t t) const {
    return (b * keys + t) * kv_ld + (packed ? heads + kv_heads + g : g) * dim;
  }
  int64_t y_at(int64_t b, int64_t h, int64_t t) const { return (b * length + t) * y_ld + h * dim; }
  int64_t distances() const { return length + keys - 1; }
  // From the start of all heads' distances to that of row t and key s.
  int64_t distance_at(int64_t h, int64_t t, int64_t s) const { return h * distances() + s - t + length - 1; }
  int64_t lse_at(int64_t b, int64_t h, int64_t t) const { return (b * heads + h) * length + t; }
};

// From the signature of attention (first = 0) or attention_grad (first = 1: q is operand 1); nothing if an
// operand is of a type that these kernels do not take.
std::optional<AttentionShape> attention_shape(const Signature& s, size_t first);

// Products q . k of a row and n keys, of which it sees those in `seen`, and of these, where there are ids, those with
// its own.
struct ScoreRow {
  KeyRange seen;
  int64_t n;
  float scale, softcap;
  const int32_t* ids;  // nullptr: it sees all in `seen`
  int32_t own;
  const float* sink;             // one more score; nullptr: there is none
  DType type;                    // of what is made of the products
  const float* added = nullptr;  // to the scaled product of each key, by its distance; nullptr: nothing
  float* added_sums = nullptr;   // what the gradients of these are summed in; nullptr: nobody asks for them
};

// What the rows of one call see.
class AttentionMask {
 public:
  AttentionMask(const AttentionShape& a, const Call& call);

  KeyRange row(int64_t b, int64_t t) const;
  // The keys that rows [t, t_end) see, and some between them.
  KeyRange block(int64_t b, int64_t t, int64_t t_end) const;
  // Row t of head h, whose products are of the n keys from `first` on.
  ScoreRow scores(int64_t b, int64_t h, int64_t t, int64_t first, int64_t n, DType type) const;
  const float* sinks() const { return sinks_; }

 private:
  const AttentionShape& a_;
  const float *sinks_, *distances_;
  const int32_t *sequences_, *lengths_, *position_;
};

// p = softmax(scores), 0 for keys that are not seen; p may be s. Returns the log-sum-exp, -infinity if the row sees no
// key.
float score_row(const ScoreRow& row, float* s, void* p);
// p = exp(score - lse), ds = scale * slope * p (dp - delta), 0 for keys that are not seen; may overwrite s and dp when
// in float32. slope: the softcap's derivative.
void score_grad_row(const ScoreRow& row, const float* s, const float* dp, float lse, float delta, void* p,
                    void* ds);
float dot(DType type, const void* a, const void* b, int64_t n);

// Sums of the gradients of sinks, a number for each head of each sequence, in the order of the rows.
class SinkSums {
 public:
  static int64_t bytes(const AttentionShape& a) { return a.batch * a.heads * 8; }
  SinkSums(const AttentionShape& a, const AttentionMask& mask, const Call& call, void* space);
  void add(int64_t b, int64_t h, float lse, float delta);
  void store() const;  // after all rows

 private:
  const AttentionShape& a_;
  const Call& call_;
  const float* sinks_;  // nullptr: nobody asks for a gradient
  double* sums_;
};

// Sums of the gradients of distances, of each head of each sequence, in the order of the rows.
class DistanceSums {
 public:
  static int64_t bytes(const AttentionShape& a) { return a.batch * a.heads * a.distances() * 4; }
  DistanceSums(const AttentionShape& a, const Call& call, void* space);
  // Lets a row of the mask's, whose products are of the keys from `first` on, add to them.
  ScoreRow of(ScoreRow row, int64_t b, int64_t h, int64_t t, int64_t first) const;
  void store() const;  // after all rows

 private:
  const AttentionShape& a_;
  const Call& call_;
  float* sums_;  // nullptr: nobody asks for a gradient
};

// Workspace of both sums, after the threads' shares.
int64_t sums_bytes(const AttentionShape& a, const Signature& s);

}  // namespace cairn::kernels::cpu
