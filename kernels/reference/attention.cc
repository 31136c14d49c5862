// attention (Vaswani et al., 2017; grouped heads: Ainslie et al., 2023) and its gradient.
#include <limits>

#include "kernels/reference/common.h"
#include "kernels/reference/rows.h"
#include "runtime/base/relative_buckets.h"

namespace cairn::kernels::reference {
namespace {

// Where q, k and v of one head lie in their tensors, and what row t sees.
struct Layout {
  int64_t batch, time, keys, heads, kv_heads, dim;
  bool packed, causal;
  double scale, softcap;
  int64_t window;

  Layout(const Signature& s, size_t q)
      : batch(s.in[q].shape[0]),
        time(s.in[q].shape[1]),
        heads(s.attrs->integer("heads")),
        kv_heads(s.attrs->integer("kv_heads", heads)),
        packed(!s.has_in(q + 1)),
        causal(s.attrs->integer("causal", 1) != 0),
        softcap(s.attrs->real("softcap", 0)),
        window(s.attrs->integer("window", std::numeric_limits<int64_t>::max())) {
    keys = packed ? time : s.in[q + 1].shape[1];
    dim = s.in[q].shape.last() / (packed ? heads + 2 * kv_heads : heads);
    scale = s.attrs->real("scale", 1.0 / std::sqrt(static_cast<double>(dim)));
  }
  int64_t group(int64_t h) const { return h / (heads / kv_heads); }
  int64_t q_stride() const { return packed ? (heads + 2 * kv_heads) * dim : heads * dim; }
  int64_t kv_stride() const { return packed ? q_stride() : kv_heads * dim; }
  int64_t q(int64_t b, int64_t t, int64_t h) const { return (b * time + t) * q_stride() + h * dim; }
  int64_t k(int64_t b, int64_t t, int64_t g) const {
    return (b * keys + t) * kv_stride() + ((packed ? heads : 0) + g) * dim;
  }
  int64_t v(int64_t b, int64_t t, int64_t g) const {
    return (b * keys + t) * kv_stride() + ((packed ? heads + kv_heads : 0) + g) * dim;
  }
  int64_t y(int64_t b, int64_t t, int64_t h) const { return ((b * time + t) * heads + h) * dim; }
  int64_t lse(int64_t b, int64_t t, int64_t h) const { return (b * heads + h) * time + t; }

  // Of a product q . k and what is added by distance; `slope`: how much a score changes with their sum.
  double score(double product, double added, double* slope = nullptr) const {
    const double x = scale * product + added, bent = softcap > 0 ? std::tanh(x / softcap) : 0;
    if (slope != nullptr) *slope = 1 - bent * bent;
    return softcap > 0 ? softcap * bent : x;
  }
};

// The operands that say what a row sees, from operand `first` on; sinks come before them.
struct Seen {
  const Layout& l;
  const int32_t *sequences, *lengths, *position;

  Seen(const Layout& layout, const Call& c, size_t first)
      : l(layout), sequences(at(c, first)), lengths(at(c, first + 1)), position(at(c, first + 2)) {}
  bool operator()(int64_t b, int64_t t, int64_t s) const {
    const int64_t stands = t + (position != nullptr ? position[b] : 0);
    if (l.causal ? s > stands : s - stands >= l.window) return false;
    if (stands - s >= l.window || (lengths != nullptr && s >= lengths[b])) return false;
    if (sequences == nullptr) return true;
    const int32_t own = sequences[b * l.time + t];
    return own >= 0 && own == sequences[b * l.time + s];
  }

 private:
  static const int32_t* at(const Call& c, size_t i) {
    return i < c.in.size() && c.in[i] ? c.in[i].as<int32_t>() : nullptr;
  }
};

// What is added to scores by distance: of head h, row t and key s.
template <class W>
struct Distances {
  const Layout& l;
  const W* from;  // null: nothing

  Distances(const Layout& layout, const Call& c, size_t i)
      : l(layout), from(i < c.in.size() && c.in[i] ? c.in[i].as<W>() : nullptr) {}
  int64_t count() const { return l.time + l.keys - 1; }
  int64_t place(int64_t h, int64_t t, int64_t s) const { return h * count() + s - t + l.time - 1; }
  double at(int64_t h, int64_t t, int64_t s) const {
    return from == nullptr ? 0 : load(from[place(h, t, s)]);
  }
};

template <class A, class B>
double dot(const A* a, const B* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += load(a[i]) * load(b[i]);
  return sum;
}

template <class T>
const Wide<T>* sinks_of(const Call& c, size_t i) {
  return i < c.in.size() && c.in[i] ? c.in[i].as<Wide<T>>() : nullptr;
}

constexpr double kNothing = -std::numeric_limits<double>::infinity();

template <class T>
class Attention : public Kernel {
 public:
  explicit Attention(const Signature& s) : l_(s, 0) {}
  int64_t workspace_bytes() const override { return l_.keys * 8; }
  void run(const Call& c) const override {
    const T* q = c.in[0].as<T>();
    const T* k = l_.packed ? q : c.in[1].as<T>();
    const T* v = l_.packed ? q : c.in[2].as<T>();
    const Wide<T>* sinks = sinks_of<T>(c, 3);
    const Seen seen(l_, c, 4);
    const Distances<Wide<T>> distances(l_, c, 7);
    auto* p = static_cast<double*>(c.workspace);
    for (int64_t b = 0; b < l_.batch; ++b)
      for (int64_t h = 0; h < l_.heads; ++h)
        for (int64_t t = 0; t < l_.time; ++t) {
          const int64_t g = l_.group(h);
          double largest = kNothing, sum = 0;
          bool any = false;
          for (int64_t s = 0; s < l_.keys; ++s) {
            const bool here = seen(b, t, s);
            p[s] = here ? l_.score(dot(q + l_.q(b, t, h), k + l_.k(b, s, g), l_.dim), distances.at(h, t, s))
                        : kNothing;
            largest = std::max(largest, p[s]);
            any = any || here;
          }
          if (any && sinks != nullptr) {
            const double sink = load(sinks[h]);
            largest = std::max(largest, sink);
            sum = std::exp(sink - largest);
          }
          for (int64_t s = 0; s < l_.keys; ++s) sum += p[s] = p[s] == kNothing ? 0 : std::exp(p[s] - largest);
          for (int64_t d = 0; d < l_.dim; ++d) {
            double y = 0;
            for (int64_t s = 0; s < l_.keys; ++s)
              if (p[s] != 0) y += p[s] * load(v[l_.v(b, s, g) + d]);  // what is not seen may be anything
            c.out[0].as<T>()[l_.y(b, t, h) + d] = store<T>(any ? y / sum : 0);
          }
          if (c.out.size() > 1 && c.out[1])
            c.out[1].as<Wide<T>>()[l_.lse(b, t, h)] =
                store<Wide<T>>(any ? largest + std::log(sum) : kNothing);
        }
  }

 private:
  Layout l_;
};

// p = exp(score - lse); ds = p * (dy . v - dy . y) * scale * the score's slope, and without the scale what is added by
// distance has as its gradient. dk and dv of one group and dq of one row
// are summed in the workspace, then rounded once. A sink takes part in the sum and has no value: its gradient is
// -p (dy . y), over all rows of its head.
template <class T>
class AttentionGrad : public Kernel {
 public:
  explicit AttentionGrad(const Signature& s)
      : l_(s, 1), distances_(s.has_out(4) ? l_.heads * (l_.time + l_.keys - 1) : 0) {}
  int64_t workspace_bytes() const override {
    return ((2 * l_.keys + 1) * l_.dim + l_.heads + distances_) * 8;
  }
  void run(const Call& c) const override {
    const T *dy = c.in[0].as<T>(), *q = c.in[1].as<T>(), *y = c.in[4].as<T>();
    const T* k = l_.packed ? q : c.in[2].as<T>();
    const T* v = l_.packed ? q : c.in[3].as<T>();
    T* dq = c.out[0].as<T>();
    T* dk = l_.packed ? dq : c.out.size() > 1 ? c.out[1].as<T>() : nullptr;
    T* dv = l_.packed ? dq : c.out.size() > 2 ? c.out[2].as<T>() : nullptr;
    const auto* lse = c.in[5].as<Wide<T>>();
    const Wide<T>* sinks = sinks_of<T>(c, 6);
    const Seen sees(l_, c, 7);
    const Distances<Wide<T>> distances(l_, c, 10);
    auto* k_sum = static_cast<double*>(c.workspace);
    double* v_sum = k_sum + l_.keys * l_.dim;
    double* q_sum = v_sum + l_.keys * l_.dim;
    double* sink_sum = q_sum + l_.dim;
    const int64_t dim = l_.dim;
    double* distance_sum = sink_sum + l_.heads;
    std::fill_n(sink_sum, l_.heads + distances_, 0.0);
    for (int64_t b = 0; b < l_.batch; ++b)
      for (int64_t g = 0; g < l_.kv_heads; ++g) {
        std::fill_n(k_sum, 2 * l_.keys * dim, 0.0);
        for (int64_t h = 0; h < l_.heads; ++h) {
          if (l_.group(h) != g) continue;
          for (int64_t t = 0; t < l_.time; ++t) {
            const T *dy_row = dy + l_.y(b, t, h), *q_row = q + l_.q(b, t, h);
            const double delta = dot(dy_row, y + l_.y(b, t, h), dim), row_lse = load(lse[l_.lse(b, t, h)]);
            std::fill_n(q_sum, dim, 0.0);
            if (sinks != nullptr && row_lse > kNothing)
              sink_sum[h] -= std::exp(load(sinks[h]) - row_lse) * delta;
            for (int64_t s = 0; s < l_.keys; ++s) {
              if (!sees(b, t, s)) continue;
              const T *k_row = k + l_.k(b, s, g), *v_row = v + l_.v(b, s, g);
              double slope;
              const double p =
                  std::exp(l_.score(dot(q_row, k_row, dim), distances.at(h, t, s), &slope) - row_lse);
              const double added = p * (dot(dy_row, v_row, dim) - delta) * slope, ds = added * l_.scale;
              if (distances_ > 0) distance_sum[distances.place(h, t, s)] += added;
              for (int64_t d = 0; d < dim; ++d) {
                q_sum[d] += ds * load(k_row[d]);
                k_sum[s * dim + d] += ds * load(q_row[d]);
                v_sum[s * dim + d] += p * load(dy_row[d]);
              }
            }
            if (dq != nullptr)
              for (int64_t d = 0; d < dim; ++d) dq[l_.q(b, t, h) + d] = store<T>(q_sum[d]);
          }
        }
        for (int64_t t = 0; t < l_.keys; ++t)
          for (int64_t d = 0; d < dim; ++d) {
            if (dk != nullptr) dk[l_.k(b, t, g) + d] = store<T>(k_sum[t * dim + d]);
            if (dv != nullptr) dv[l_.v(b, t, g) + d] = store<T>(v_sum[t * dim + d]);
          }
      }
    if (c.out.size() > 3 && c.out[3])
      for (int64_t h = 0; h < l_.heads; ++h) put<Wide<T>>(c, 3, h, sink_sum[h]);
    if (c.out.size() > 4 && c.out[4])
      for (int64_t i = 0; i < distances_; ++i) put<Wide<T>>(c, 4, i, distance_sum[i]);
  }

 private:
  Layout l_;
  int64_t distances_;  // whose gradients are asked for
};

struct RelativeBias : Kernel {
  int64_t queries, keys, heads;
  RelativeBuckets buckets;
  explicit RelativeBias(const Signature& s)
      : queries(s.attrs->integer("queries")),
        keys(s.attrs->integer("keys")),
        heads(s.in[0].shape[1]),
        buckets(*s.attrs, s.in[0].shape[0]) {}
  void run(const Call& c) const override {
    const int64_t count = queries + keys - 1;
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < count; ++i)
        set(c.out[0], h * count + i, at(c.in[0], buckets(i - queries + 1) * heads + h));
  }
};

struct RelativeBiasGrad : Kernel {
  int64_t queries, keys, heads, count;
  RelativeBuckets buckets;
  explicit RelativeBiasGrad(const Signature& s)
      : queries(s.attrs->integer("queries")),
        keys(s.attrs->integer("keys")),
        heads(s.in[0].shape[0]),
        count(s.attrs->integer("buckets")),
        buckets(*s.attrs, count) {}
  int64_t workspace_bytes() const override { return count * 8; }
  void run(const Call& c) const override {
    const int64_t distances = queries + keys - 1;
    auto* sums = static_cast<double*>(c.workspace);
    for (int64_t h = 0; h < heads; ++h) {
      std::fill_n(sums, count, 0.0);
      for (int64_t i = 0; i < distances; ++i)
        sums[buckets(i - queries + 1)] += at(c.in[0], h * distances + i);
      for (int64_t b = 0; b < count; ++b) {
        const int64_t to = b * heads + h;
        set(c.out[0], to, (c.accumulate & 1u ? at(c.out[0], to) : 0) + sums[b]);
      }
    }
  }
};

}  // namespace

std::unique_ptr<Kernel> make_attention(const Signature& s) { return make<Attention>(s, "TTTPIIIP", "TP"); }
std::unique_ptr<Kernel> make_attention_grad(const Signature& s) {
  return make<AttentionGrad>(s, "TTTTTPPIIIP", "TTTPP");
}
std::unique_ptr<Kernel> make_relative_bias(const Signature& s) { return make_any<RelativeBias>(s, "F", "F"); }
std::unique_ptr<Kernel> make_relative_bias_grad(const Signature& s) {
  return make_any<RelativeBiasGrad>(s, "F", "F");
}

}  // namespace cairn::kernels::reference
