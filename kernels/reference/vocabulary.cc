// Lookup and fused loss on a part of the vocabulary. What a row's parts hand on is `seen` (the largest logit, the
// target's, with accuracy the largest before it and whether one was not a number) and the sum of exponentials.
#include <limits>

#include "kernels/reference/common.h"
#include "kernels/reference/rows.h"

namespace cairn::kernels::reference {
namespace {

constexpr double kLowest = -3.0e38;  // below every logit that float32 holds but the last few
constexpr int64_t kSeen = 4, kOpen = 64;

bool present(std::span<const Tensor> list, size_t i) { return i < list.size() && list[i]; }

class EmbeddingPart : public Kernel {
 public:
  explicit EmbeddingPart(const Signature& s)
      : first_(s.attrs->integer("first")), n_(s.in[0].shape[0]), width_(s.in[0].shape[1]) {}
  void run(const Call& c) const override {
    const int64_t rows = c.in[1].desc.shape.elements();
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t id = c.in[1].as<int32_t>()[r] - first_;
      for (int64_t i = r * width_, k = 0; k < width_; ++i, ++k)
        set(c.out[0], i,
            id >= 0 && id < n_ ? at(c.in[0], id * width_ + k)
            : present(c.in, 2) ? at(c.in[2], i)
                               : 0);
    }
  }

 private:
  int64_t first_, n_, width_;
};

template <class T>
class EmbeddingPartGrad : public Kernel {
 public:
  explicit EmbeddingPartGrad(const Signature& s)
      : first_(s.attrs->integer("first")), n_(s.out[0].shape[0]), width_(s.out[0].shape[1]) {}
  void run(const Call& c) const override {
    const int64_t rows = c.in[0].desc.shape.elements();
    for (int64_t v = 0; v < n_; ++v)
      for (int64_t i = 0; i < width_; ++i) {
        double sum = 0;
        for (int64_t r = 0; r < rows; ++r)
          if (c.in[0].as<int32_t>()[r] == first_ + v) sum += load(c.in[1].as<T>()[r * width_ + i]);
        put<Wide<T>>(c, 0, v * width_ + i, sum);
      }
  }

 private:
  int64_t first_, n_, width_;
};

// The part's logits = x w^T, and what the ops know about a row's target.
template <class T>
struct Part {
  int64_t rows, n, k, first, vocab, ignore;
  Logits logits;

  explicit Part(const Signature& s)
      : rows(s.in[0].shape.rows()),
        n(s.in[1].shape[0]),
        k(s.in[1].shape[1]),
        first(s.attrs->integer("first")),
        vocab(s.attrs->integer("vocab")),
        ignore(s.attrs->integer("ignore_index", -100)),
        logits(*s.attrs) {}
  double logit(const Call& c, const Weight<T>& w, int64_t r, int64_t v) const {
    double dot = 0;
    for (int64_t i = 0; i < k; ++i) dot += load(c.in[0].as<T>()[r * k + i]) * w[v * k + i];
    return logits.of(dot);
  }
};

template <class T>
class Max : public Kernel {
 public:
  explicit Max(const Signature& s) : p_(s), accuracy_(s.attrs->integer("accuracy") != 0) {}
  void run(const Call& c) const override {
    const Weight<T> w(c.in[1]);
    for (int64_t r = 0; r < p_.rows; ++r) {
      double seen[kSeen] = {kLowest, 0, accuracy_ ? kLowest : 0, 0};
      for (int64_t i = 0; i < kSeen; ++i)
        if (present(c.in, 3)) seen[i] = at(c.in[3], r * kSeen + i);
      for (int64_t v = 0; v < p_.n; ++v) {
        const double logit = p_.logit(c, w, r, v);
        const int64_t target = c.in[2].as<int32_t>()[r];
        seen[0] = std::max(seen[0], logit);
        if (p_.first + v == target) seen[1] = logit;
        if (accuracy_ && p_.first + v < target) seen[2] = std::max(seen[2], logit);
        if (accuracy_ && std::isnan(logit)) seen[3] = 1;
      }
      for (int64_t i = 0; i < kSeen; ++i) set(c.out[0], r * kSeen + i, seen[i]);
    }
  }

 private:
  Part<T> p_;
  bool accuracy_;
};

// No block is left open: the rest is zero.
template <class T>
class Sum : public Kernel {
 public:
  explicit Sum(const Signature& s) : p_(s) {}
  void run(const Call& c) const override {
    const Weight<T> w(c.in[1]);
    for (int64_t r = 0; r < p_.rows; ++r) {
      double sum = present(c.in, 3) ? at(c.in[3], r) : 0;
      for (int64_t i = 0; i < kOpen; ++i) {
        if (present(c.in, 4)) sum += at(c.in[4], r * kOpen + i);
        if (present(c.out, 1)) set(c.out[1], r * kOpen + i, 0);
      }
      for (int64_t v = 0; v < p_.n; ++v) sum += std::exp(p_.logit(c, w, r, v) - at(c.in[2], r * kSeen));
      set(c.out[0], r, sum);
    }
  }

 private:
  Part<T> p_;
};

class Loss : public Kernel {
 public:
  explicit Loss(const Signature& s)
      : vocab_(s.attrs->integer("vocab")), ignore_(s.attrs->integer("ignore_index", -100)) {}
  void run(const Call& c) const override {
    double loss = 0, weights = 0, hits = 0, count = 0;
    for (int64_t r = 0; r < c.in[1].desc.shape.elements(); ++r) {
      const int64_t target = c.in[2].as<int32_t>()[r];
      const double weight = target == ignore_ ? 0 : present(c.in, 3) ? at(c.in[3], r) : 1;
      if (weight == 0) continue;
      const bool valid = target >= 0 && target < vocab_;
      const auto seen = [&](int64_t i) { return at(c.in[0], r * kSeen + i); };
      loss += weight * (valid ? std::log(at(c.in[1], r)) + seen(0) - seen(1) : kNaN);
      weights += weight;
      count += 1;
      hits += valid && seen(3) == 0 && seen(1) >= seen(0) && (target == 0 || seen(2) < seen(1)) ? 1 : 0;
    }
    const double sums[] = {loss, weights, hits, count};
    for (size_t i = 0; i < c.out.size(); ++i)
      if (c.out[i]) *c.out[i].as<double>() = sums[i];
  }

 private:
  int64_t vocab_, ignore_;
};

template <class T>
class PartGrad : public Kernel {
 public:
  explicit PartGrad(const Signature& s) : p_(s) {}
  void run(const Call& c) const override {
    const Weight<T> w(c.in[1]);
    std::vector<double> of_logits;  // gradients: of a row, then of a token
    for (int64_t r = 0; present(c.out, 0) && r < p_.rows; ++r) {
      of_logits.clear();
      for (int64_t v = 0; v < p_.n; ++v) of_logits.push_back(gradient(c, w, r, v));
      for (int64_t i = 0; i < p_.k; ++i) {
        double sum = present(c.in, 7) ? at(c.in[7], r * p_.k + i) : 0;
        for (int64_t v = 0; v < p_.n; ++v) sum += of_logits[v] * w[v * p_.k + i];
        set(c.out[0], r * p_.k + i, sum);
      }
    }
    for (int64_t v = 0; present(c.out, 1) && v < p_.n; ++v) {
      of_logits.clear();
      for (int64_t r = 0; r < p_.rows; ++r) of_logits.push_back(gradient(c, w, r, v));
      for (int64_t i = 0; i < p_.k; ++i) {
        double sum = 0;
        for (int64_t r = 0; r < p_.rows; ++r) sum += of_logits[r] * load(c.in[0].as<T>()[r * p_.k + i]);
        put<Wide<T>>(c, 1, v * p_.k + i, sum);
      }
    }
  }

 private:
  double gradient(const Call& c, const Weight<T>& w, int64_t r, int64_t v) const {
    const int64_t target = c.in[2].as<int32_t>()[r];
    const double weight = target == p_.ignore ? 0 : present(c.in, 3) ? at(c.in[3], r) : 1;
    if (weight == 0) return 0;
    if (target < 0 || target >= p_.vocab) return kNaN;
    const double scale = present(c.in, 6) ? at(c.in[6], 0) : 1;
    const double logit = p_.logit(c, w, r, v), p = std::exp(logit - at(c.in[4], r * kSeen)) / at(c.in[5], r);
    return scale * weight * p_.logits.slope(logit) * (p - (p_.first + v == target ? 1.0 : 0.0));
  }

  Part<T> p_;
};

}  // namespace

std::unique_ptr<Kernel> make_embedding_part(const Signature& s) {
  return make_any<EmbeddingPart>(s, "BIF", "F");
}
std::unique_ptr<Kernel> make_embedding_part_grad(const Signature& s) {
  return make<EmbeddingPartGrad>(s, "IT", "P");
}
std::unique_ptr<Kernel> make_linear_cross_entropy_max(const Signature& s) {
  return make<Max>(s, "TWIP", "P");
}
std::unique_ptr<Kernel> make_linear_cross_entropy_sum(const Signature& s) {
  return make<Sum>(s, "TWPDA", "DA");
}
std::unique_ptr<Kernel> make_linear_cross_entropy_loss(const Signature& s) {
  return make_any<Loss>(s, "FDIF", "DDDD");
}
std::unique_ptr<Kernel> make_linear_cross_entropy_part(const Signature& s) {
  return make<PartGrad>(s, "TWIPPDDP", "PP");
}

}  // namespace cairn::kernels::reference
