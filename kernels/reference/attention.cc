// attention (Vaswani et al., 2017; grouped heads: Ainslie et al., 2023) and its gradient.
#include <limits>

#include "kernels/reference/common.h"
#include "kernels/reference/rows.h"

namespace cairn::kernels::reference {
namespace {

// Where q, k and v of one head lie in their tensors.
struct Layout {
  int64_t batch, time, heads, kv_heads, dim;
  bool packed, causal;
  double scale;

  Layout(const Signature& s, size_t q)
      : batch(s.in[q].shape[0]),
        time(s.in[q].shape[1]),
        heads(s.attrs->integer("heads")),
        kv_heads(s.attrs->integer("kv_heads", heads)),
        packed(!s.has_in(q + 1)),
        causal(s.attrs->integer("causal", 1) != 0) {
    dim = s.in[q].shape.last() / (packed ? heads + 2 * kv_heads : heads);
    scale = s.attrs->real("scale", 1.0 / std::sqrt(static_cast<double>(dim)));
  }
  int64_t group(int64_t h) const { return h / (heads / kv_heads); }
  int64_t seen(int64_t t) const { return causal ? t + 1 : time; }
  int64_t q_stride() const { return packed ? (heads + 2 * kv_heads) * dim : heads * dim; }
  int64_t kv_stride() const { return packed ? q_stride() : kv_heads * dim; }
  int64_t q(int64_t b, int64_t t, int64_t h) const { return (b * time + t) * q_stride() + h * dim; }
  int64_t k(int64_t b, int64_t t, int64_t g) const {
    return (b * time + t) * kv_stride() + ((packed ? heads : 0) + g) * dim;
  }
  int64_t v(int64_t b, int64_t t, int64_t g) const {
    return (b * time + t) * kv_stride() + ((packed ? heads + kv_heads : 0) + g) * dim;
  }
  int64_t y(int64_t b, int64_t t, int64_t h) const { return ((b * time + t) * heads + h) * dim; }
  int64_t lse(int64_t b, int64_t t, int64_t h) const { return (b * heads + h) * time + t; }
};

template <class A, class B>
double dot(const A* a, const B* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += load(a[i]) * load(b[i]);
  return sum;
}

template <class T>
class Attention : public Kernel {
 public:
  explicit Attention(const Signature& s) : l_(s, 0) {}
  int64_t workspace_bytes() const override { return l_.time * 8; }
  void run(const Call& c) const override {
    const T* q = c.in[0].as<T>();
    const T* k = l_.packed ? q : c.in[1].as<T>();
    const T* v = l_.packed ? q : c.in[2].as<T>();
    auto* p = static_cast<double*>(c.workspace);
    for (int64_t b = 0; b < l_.batch; ++b)
      for (int64_t h = 0; h < l_.heads; ++h)
        for (int64_t t = 0; t < l_.time; ++t) {
          const int64_t seen = l_.seen(t), g = l_.group(h);
          double largest = -std::numeric_limits<double>::infinity(), sum = 0;
          for (int64_t s = 0; s < seen; ++s) {
            p[s] = l_.scale * dot(q + l_.q(b, t, h), k + l_.k(b, s, g), l_.dim);
            largest = std::max(largest, p[s]);
          }
          for (int64_t s = 0; s < seen; ++s) sum += p[s] = std::exp(p[s] - largest);
          for (int64_t d = 0; d < l_.dim; ++d) {
            double y = 0;
            for (int64_t s = 0; s < seen; ++s) y += p[s] * load(v[l_.v(b, s, g) + d]);
            c.out[0].as<T>()[l_.y(b, t, h) + d] = store<T>(y / sum);
          }
          if (c.out.size() > 1 && c.out[1])
            c.out[1].as<Wide<T>>()[l_.lse(b, t, h)] = store<Wide<T>>(largest + std::log(sum));
        }
  }

 private:
  Layout l_;
};

// p = exp(score - lse); ds = p * (dy . v - dy . y) * scale. dk and dv of one group and dq of one row are
// summed in the workspace, then rounded once.
template <class T>
class AttentionGrad : public Kernel {
 public:
  explicit AttentionGrad(const Signature& s) : l_(s, 1) {}
  int64_t workspace_bytes() const override { return (2 * l_.time + 1) * l_.dim * 8; }
  void run(const Call& c) const override {
    const T *dy = c.in[0].as<T>(), *q = c.in[1].as<T>(), *y = c.in[4].as<T>();
    const T* k = l_.packed ? q : c.in[2].as<T>();
    const T* v = l_.packed ? q : c.in[3].as<T>();
    T* dq = c.out[0].as<T>();
    T* dk = l_.packed ? dq : c.out.size() > 1 ? c.out[1].as<T>() : nullptr;
    T* dv = l_.packed ? dq : c.out.size() > 2 ? c.out[2].as<T>() : nullptr;
    const auto* lse = c.in[5].as<Wide<T>>();
    auto* k_sum = static_cast<double*>(c.workspace);
    double* v_sum = k_sum + l_.time * l_.dim;
    double* q_sum = v_sum + l_.time * l_.dim;
    const int64_t dim = l_.dim;
    for (int64_t b = 0; b < l_.batch; ++b)
      for (int64_t g = 0; g < l_.kv_heads; ++g) {
        std::fill_n(k_sum, 2 * l_.time * dim, 0.0);
        for (int64_t h = 0; h < l_.heads; ++h) {
          if (l_.group(h) != g) continue;
          for (int64_t t = 0; t < l_.time; ++t) {
            const T *dy_row = dy + l_.y(b, t, h), *q_row = q + l_.q(b, t, h);
            const double delta = dot(dy_row, y + l_.y(b, t, h), dim), row_lse = load(lse[l_.lse(b, t, h)]);
            std::fill_n(q_sum, dim, 0.0);
            for (int64_t s = 0; s < l_.seen(t); ++s) {
              const T *k_row = k + l_.k(b, s, g), *v_row = v + l_.v(b, s, g);
              const double p = std::exp(l_.scale * dot(q_row, k_row, dim) - row_lse);
              const double ds = p * (dot(dy_row, v_row, dim) - delta) * l_.scale;
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
        for (int64_t t = 0; t < l_.time; ++t)
          for (int64_t d = 0; d < dim; ++d) {
            if (dk != nullptr) dk[l_.k(b, t, g) + d] = store<T>(k_sum[t * dim + d]);
            if (dv != nullptr) dv[l_.v(b, t, g) + d] = store<T>(v_sum[t * dim + d]);
          }
      }
  }

 private:
  Layout l_;
};

}  // namespace

std::unique_ptr<Kernel> make_attention(const Signature& s) { return make<Attention>(s, "TTT", "TP"); }
std::unique_ptr<Kernel> make_attention_grad(const Signature& s) {
  return make<AttentionGrad>(s, "TTTTTP", "TTT");
}

}  // namespace cairn::kernels::reference
