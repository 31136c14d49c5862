// Shape rules of attention.
#include <cmath>

#include "runtime/base/relative_buckets.h"
#include "runtime/ops/shapes/shapes.h"

namespace cairn::ops {
namespace {

struct Heads {
  int64_t heads = 0, kv_heads = 0, dim = 0;
  bool packed = false;
};

// q is operand i; k and v follow it.
Heads check_heads(const Operands& o, int i) {
  o.floating(i);
  o.rank(i, 3);
  Heads h;
  h.heads = o.attrs().integer("heads");
  h.kv_heads = o.attrs().integer("kv_heads", h.heads);
  o.check_attr(h.heads > 0 && h.heads <= o.shape(i).last(), "heads", h.heads,
               "it must be positive, and at most the last dimension, ", o.shape(i).last());
  o.check_attr(h.kv_heads > 0 && h.heads % h.kv_heads == 0, "kv_heads", h.kv_heads,
               "it must divide heads = ", h.heads);
  const int64_t causal = o.attrs().integer("causal", 1);
  o.check_attr(causal == 0 || causal == 1, "causal", causal, "it must be 0 or 1");
  const double scale = o.attrs().real("scale", 1.0);
  o.check_attr(scale > 0, "scale", scale, "it must be positive");
  o.check(o.has(i + 1) == o.has(i + 2), i, "k and v must be given both, or neither (q packed as q|k|v)");
  h.packed = !o.has(i + 1);
  const int64_t width = o.shape(i).last(), slots = h.packed ? h.heads + 2 * h.kv_heads : h.heads;
  const std::string sum =
      h.packed ? cat(" = heads + 2 * kv_heads (q, k and v side by side, kv_heads = ", h.kv_heads, ")")
               : " = heads";
  o.check(width % slots == 0, i, "its last dimension is no multiple of ", slots, sum);
  h.dim = width / slots;
  if (h.packed) return h;
  for (int j = i + 1; j <= i + 2; ++j) {
    o.same_dtype(j, i);
    const int64_t keys = o.shape(i + 1).rank == 3 ? o.shape(i + 1)[1] : o.shape(i)[1];
    const Shape wanted{o.shape(i)[0], keys, h.kv_heads * h.dim};
    o.check_pair(o.shape(j) == wanted, j, i, "it must be of shape ", to_string(wanted));
  }
  return h;
}

// The operands that say what a row sees, from operand `first` on: sinks, sequences, lengths, position and distances; q is
// operand i.
void check_mask(const Operands& o, int i, int first, const Heads& h) {
  const int sinks = first, sequences = first + 1, lengths = first + 2, position = first + 3,
            distances = first + 4;
  const int64_t batch = o.shape(i)[0], rows = o.shape(i)[1], keys = h.packed ? rows : o.shape(i + 1)[1];
  const auto numbers = [&](int j, const Shape& shape) {
    o.integers(j);
    o.check_pair(o.shape(j) == shape, j, i, "it must be of shape ", to_string(shape));
  };
  if (o.attrs().has("window")) {
    const int64_t window = o.attrs().integer("window");
    o.check_attr(window >= 1, "window", window,
                 "it counts the keys that a row sees, its own among them, and must be positive");
  }
  if (o.attrs().has("softcap")) {
    const double cap = o.attrs().real("softcap");
    o.check_attr(cap > 0 && std::isfinite(cap), "softcap", cap, "it must be positive and finite");
  }
  if (o.has(sinks)) {
    o.parameter(sinks, i);
    o.check_pair(o.shape(sinks) == Shape{h.heads}, sinks, i, "it must be of shape ",
                 to_string(Shape{h.heads}), ", one number per head");
  }
  if (o.has(distances)) {
    const Shape wanted{h.heads, rows + keys - 1};
    o.parameter(distances, i);
    o.check_pair(o.shape(distances) == wanted, distances, i, "it must be of shape ", to_string(wanted),
                 ", a number per head and distance of ", rows, " rows from ", keys, " keys");
    o.check(!o.has(position), distances,
            "it does not go together with position, which says that rows stand elsewhere");
  }
  if (o.has(lengths)) numbers(lengths, {batch});
  if (o.has(position)) numbers(position, {batch});
  if (o.has(sequences)) {
    numbers(sequences, {batch, rows});
    if (keys != rows)
      o.check_pair(false, sequences, i + 1,
                   "sequences are of rows that attend to each other: as many keys as rows of q, ", rows);
    o.check(!o.has(position), sequences,
            "it does not go together with position, which says that rows stand elsewhere");
  }
  if (keys == rows || o.has(position)) return;
  const bool causal = o.attrs().integer("causal", 1) != 0;
  o.check_pair(
      !causal && !o.attrs().has("window"), i + 1, i, "with ",
      causal ? "causal = 1 (the default)" : "a window",
      ", another number of keys than of rows needs the operand position, which says where the rows stand");
}

Shape lse_shape(const Operands& o, int i, const Heads& h) { return {o.shape(i)[0], h.heads, o.shape(i)[1]}; }

}  // namespace

void shape_attention(const ShapeQuery& q) {
  const Operands o(q);
  const Heads h = check_heads(o, 0);
  check_mask(o, 0, 3, h);
  o.put(desc(o.dtype(0), with_last(o.shape(0), h.heads * h.dim)));
  o.put(desc(wide(o.dtype(0)), lse_shape(o, 0, h)));
}

void shape_attention_grad(const ShapeQuery& q) {
  const Operands o(q);
  const Heads h = check_heads(o, 1);
  const Shape y = with_last(o.shape(1), h.heads * h.dim);
  for (int i : {0, 4}) {
    o.same_dtype(i, 1);
    o.check_pair(o.shape(i) == y, i, 1, "it must be of shape ", to_string(y));
  }
  o.parameter(5, 1);
  o.check_pair(o.shape(5) == lse_shape(o, 1, h), 5, 1, "it must be of shape ", to_string(lse_shape(o, 1, h)));
  check_mask(o, 1, 6, h);
  o.put(o[1]);
  constexpr int kSinks = 6, kDistances = 10;
  if (!h.packed || o.has(kSinks) || o.has(kDistances)) {
    o.put(h.packed ? TensorDesc{} : o[2]);
    o.put(h.packed ? TensorDesc{} : o[3]);
  }
  if (o.has(kSinks) || o.has(kDistances)) o.put(o.has(kSinks) ? o[kSinks] : TensorDesc{});
  if (o.has(kDistances)) o.put(o[kDistances]);
}

namespace {

// Checks a call's attributes; returns how many distances there are.
int64_t check_buckets(const Operands& o, int64_t buckets) {
  const Attrs& attrs = o.attrs();
  const int64_t queries = attrs.integer("queries"), keys = attrs.integer("keys"),
                both = attrs.integer("bidirectional", 1), farthest = attrs.integer("farthest", 128);
  constexpr int64_t kFar = int64_t{1} << 30;
  o.check_attr(queries >= 1 && queries <= kFar, "queries", queries, "it must be positive, and at most ",
               kFar);
  o.check_attr(keys >= 1 && keys <= kFar, "keys", keys, "it must be positive, and at most ", kFar);
  o.check_attr(both == 0 || both == 1, "bidirectional", both, "it must be 0 or 1");
  const int64_t least = both ? 4 : 2, exact = (both ? buckets / 2 : buckets) / 2;
  o.check_attr(buckets >= least && buckets <= RelativeBuckets::kMost, "buckets", buckets, "it must be from ",
               least, " to ", RelativeBuckets::kMost);
  o.check_attr(farthest > exact && farthest <= kFar, "farthest", farthest,
               "it must be more than the distances that have a bucket of their own, ", exact,
               ", and at most ", kFar);
  return queries + keys - 1;
}

}  // namespace

void shape_relative_bias(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  o.rank(0, 2);
  const int64_t distances = check_buckets(o, o.shape(0)[0]);
  o.put(desc(wide(o.dtype(0)), {o.shape(0)[1], distances}));
}

void shape_relative_bias_grad(const ShapeQuery& q) {
  const Operands o(q);
  o.floating(0);
  o.rank(0, 2);
  const int64_t buckets = o.attrs().integer("buckets"), distances = check_buckets(o, buckets);
  o.check(o.shape(0)[1] == distances, 0, "its rows must have queries + keys - 1 = ", distances, " numbers");
  o.put(desc(wide(o.dtype(0)), {buckets, o.shape(0)[0]}));
}

}  // namespace cairn::ops
