// Mixture of experts: route, what moves rows to their experts and back, products of each expert's rows.
#include "runtime/base/experts.h"

#include "kernels/reference/common.h"
#include "kernels/reference/rows.h"

namespace cairn::kernels::reference {
namespace {

template <class T>
class Route : public Kernel {
 public:
  explicit Route(const Signature& s)
      : experts_(s.in[0].shape.last()),
        k_(s.attrs->integer("k")),
        normalise_(s.attrs->integer("normalise", 1) != 0) {}
  void run(const Call& c) const override {
    const int64_t rows = c.in[0].desc.shape.rows();
    for (int64_t r = 0; r < rows; ++r) {
      const T* logits = c.in[0].as<T>() + r * experts_;
      Wide<T>* weights = c.out[0].as<Wide<T>>() + r * k_;
      int32_t* chosen = c.out[1].as<int32_t>() + r * k_;
      std::vector<bool> taken(static_cast<size_t>(experts_));
      double sum = 0;
      for (int64_t j = 0; j < k_; ++j) {
        int64_t best = -1;
        for (int64_t e = 0; e < experts_; ++e)
          if (!taken[static_cast<size_t>(e)] &&
              (best < 0 || experts::ahead(load(logits[e]), load(logits[best]))))
            best = e;
        taken[static_cast<size_t>(best)] = true;
        chosen[j] = static_cast<int32_t>(best);
        sum += std::exp(load(logits[best]) - load(logits[chosen[0]]));
      }
      for (int64_t e = 0; !normalise_ && e < experts_; ++e)
        if (!taken[static_cast<size_t>(e)]) sum += std::exp(load(logits[e]) - load(logits[chosen[0]]));
      for (int64_t j = 0; j < k_; ++j)
        weights[j] = store<Wide<T>>(std::exp(load(logits[chosen[j]]) - load(logits[chosen[0]])) / sum);
    }
  }

 private:
  int64_t experts_, k_;
  bool normalise_;
};

// T: the type of the weights; logits are of any.
template <class T>
class RouteGrad : public Kernel {
 public:
  explicit RouteGrad(const Signature& s)
      : experts_(s.out[0].shape.last()),
        k_(s.in[0].shape.last()),
        normalise_(s.attrs->integer("normalise", 1) != 0) {}
  void run(const Call& c) const override {
    const int64_t rows = c.in[0].desc.shape.rows();
    for (int64_t r = 0; r < rows; ++r) {
      const T *dweights = c.in[0].as<T>() + r * k_, *weights = c.in[1].as<T>() + r * k_;
      const int32_t* chosen = c.in[2].as<int32_t>() + r * k_;
      T* dlogits = c.out[0].as<T>() + r * experts_;
      double mean = 0, largest = -HUGE_VAL, sum = 0;
      for (int64_t j = 0; j < k_; ++j) mean += load(dweights[j]) * load(weights[j]);
      for (int64_t e = 0; !normalise_ && e < experts_; ++e)
        largest = std::max(largest, at(c.in[3], r * experts_ + e));
      for (int64_t e = 0; !normalise_ && e < experts_; ++e)
        sum += std::exp(at(c.in[3], r * experts_ + e) - largest);
      for (int64_t e = 0; e < experts_; ++e) {
        double v = normalise_ ? 0 : -mean * std::exp(at(c.in[3], r * experts_ + e) - largest) / sum;
        for (int64_t j = 0; j < k_; ++j)
          if (chosen[j] == e) v += load(weights[j]) * (load(dweights[j]) - (normalise_ ? mean : 0));
        dlogits[e] = store<T>(v);
      }
    }
  }

 private:
  int64_t experts_, k_;
  bool normalise_;
};

class GroupRows : public Kernel {
 public:
  explicit GroupRows(const Signature& s) : experts_(s.attrs->integer("experts")) {}
  void run(const Call& c) const override {
    const int64_t count = c.in[0].desc.shape.elements();
    auto *order = c.out[0].as<int32_t>(), *places = c.out[1].as<int32_t>(), *starts = c.out[2].as<int32_t>();
    int32_t place = 0;
    for (int64_t e = 0; e < experts_; ++e) {
      starts[e] = place;
      for (int64_t i = 0; i < count; ++i)
        if (experts::nearest(c.in[0].as<int32_t>()[i], experts_) == e) {
          order[place] = static_cast<int32_t>(i);
          places[i] = place++;
        }
    }
    starts[experts_] = place;
  }

 private:
  int64_t experts_;
};

class CountChoices : public Kernel {
 public:
  explicit CountChoices(const Signature& s) : experts_(s.attrs->integer("experts")) {}
  void run(const Call& c) const override {
    for (int64_t e = 0; e < experts_; ++e) {
      int64_t count = 0;
      for (int64_t i = 0; i < c.in[0].desc.shape.elements(); ++i)
        count += experts::nearest(c.in[0].as<int32_t>()[i], experts_) == e ? 1 : 0;
      set(c.out[0], e, static_cast<double>(count));
    }
  }

 private:
  int64_t experts_;
};

// The weight of choice i; 1 without weights.
template <class T>
double weight_of(const Call& c, int64_t i) {
  return c.in.size() > 3 && c.in[3] ? load(c.in[3].as<Wide<T>>()[i]) : 1;
}

template <class T>
class GatherRows : public Kernel {
 public:
  explicit GatherRows(const Signature& s)
      : choices_(s.in[2].shape.elements()), k_(s.in[2].shape.last()), width_(s.in[0].shape.last()) {}
  void run(const Call& c) const override {
    for (int64_t m = 0; m < choices_; ++m) {
      const int64_t from = c.in[1].as<int32_t>()[m];
      const bool inside = from >= 0 && from < choices_;
      for (int64_t i = 0; i < width_; ++i)
        c.out[0].as<T>()[m * width_ + i] =
            store<T>(inside ? weight_of<T>(c, from) * load(c.in[0].as<T>()[from / k_ * width_ + i]) : 0);
    }
  }

 private:
  int64_t choices_, k_, width_;
};

template <class T>
class CombineRows : public Kernel {
 public:
  explicit CombineRows(const Signature& s)
      : choices_(s.in[2].shape.elements()), k_(s.in[2].shape.last()), width_(s.in[0].shape.last()) {}
  void run(const Call& c) const override {
    for (int64_t r = 0; r < choices_ / k_; ++r)
      for (int64_t i = 0; i < width_; ++i) {
        double sum = 0;
        for (int64_t j = r * k_; j < (r + 1) * k_; ++j)
          if (const int64_t m = c.in[2].as<int32_t>()[j]; m >= 0 && m < choices_)
            sum += weight_of<T>(c, j) * load(c.in[0].as<T>()[m * width_ + i]);
        c.out[0].as<T>()[r * width_ + i] = store<T>(sum);
      }
  }

 private:
  int64_t choices_, k_, width_;
};

template <class T>
class CombineRowsGrad : public Kernel {
 public:
  explicit CombineRowsGrad(const Signature& s)
      : choices_(s.in[2].shape.elements()), k_(s.in[2].shape.last()), width_(s.in[0].shape.last()) {}
  void run(const Call& c) const override {
    for (int64_t j = 0; j < choices_; ++j) {
      const int64_t m = c.in[2].as<int32_t>()[j];
      double sum = 0;
      for (int64_t i = 0; m >= 0 && m < choices_ && i < width_; ++i)
        sum += load(c.in[0].as<T>()[j / k_ * width_ + i]) * load(c.in[1].as<T>()[m * width_ + i]);
      c.out[0].as<Wide<T>>()[j] = store<Wide<T>>(sum);
    }
  }

 private:
  int64_t choices_, k_, width_;
};

// The rows of other experts than the weights': those of `before`, the last operand if there is one, or zero.
template <class T>
void other_rows(const Call& c, size_t before, const experts::Grouped& z, int64_t width) {
  const auto* starts = c.in[2].as<int32_t>();
  const bool given = before < c.in.size() && c.in[before];
  T* y = c.out[0].as<T>();
  for (int64_t m = 0; m < z.rows; ++m)
    if (m < starts[z.first] || m >= starts[z.first + z.experts])
      for (int64_t i = m * width; i < (m + 1) * width; ++i)
        y[i] = given ? c.in[before].as<T>()[i] : store<T>(0);
}

template <class T>
class GroupedLinear : public Kernel {
 public:
  explicit GroupedLinear(const Signature& s) : z_(s, s.in[1]) {}
  void run(const Call& c) const override {
    const T* x = c.in[0].as<T>();
    const Weight<T> w(c.in[1]);
    const auto* b = c.in.size() > 3 ? c.in[3].as<Wide<T>>() : nullptr;
    other_rows<T>(c, 4, z_, z_.n);
    for (int64_t e = 0; e < z_.experts; ++e) {
      const experts::Rows rows = experts::rows_of(c.in[2].as<int32_t>(), z_.first + e, z_.rows);
      for (int64_t m = rows.begin; m < rows.end; ++m)
        for (int64_t n = 0; n < z_.n; ++n) {
          double sum = b != nullptr ? load(b[(z_.first + e) * z_.n + n]) : 0;
          for (int64_t k = 0; k < z_.k; ++k) sum += load(x[m * z_.k + k]) * w[z_.at(e, n, k)];
          c.out[0].as<T>()[m * z_.n + n] = store<T>(sum);
        }
    }
  }

 private:
  experts::Grouped z_;
};

template <class T>
class GroupedLinearGradInput : public Kernel {
 public:
  explicit GroupedLinearGradInput(const Signature& s) : z_(s, s.in[1]) {}
  void run(const Call& c) const override {
    const T* dy = c.in[0].as<T>();
    const Weight<T> w(c.in[1]);
    other_rows<T>(c, 3, z_, z_.k);
    for (int64_t e = 0; e < z_.experts; ++e) {
      const experts::Rows rows = experts::rows_of(c.in[2].as<int32_t>(), z_.first + e, z_.rows);
      for (int64_t m = rows.begin; m < rows.end; ++m)
        for (int64_t k = 0; k < z_.k; ++k) {
          double sum = 0;
          for (int64_t n = 0; n < z_.n; ++n) sum += load(dy[m * z_.n + n]) * w[z_.at(e, n, k)];
          c.out[0].as<T>()[m * z_.k + k] = store<T>(sum);
        }
    }
  }

 private:
  experts::Grouped z_;
};

template <class T>
class GroupedLinearGradWeight : public Kernel {
 public:
  explicit GroupedLinearGradWeight(const Signature& s) : z_(s, s.out[0]), bias_(s.has_out(1)) {}
  void run(const Call& c) const override {
    const T *x = c.in[0].as<T>(), *dy = c.in[1].as<T>();
    const int64_t all = c.in[2].desc.shape[0] - 1;
    for (int64_t e = 0; bias_ && e < all; ++e)
      for (int64_t n = 0; (e < z_.first || e >= z_.first + z_.experts) && n < z_.n; ++n)
        put<Wide<T>>(c, 1, e * z_.n + n, 0);
    for (int64_t e = 0; e < z_.experts; ++e) {
      const experts::Rows rows = experts::rows_of(c.in[2].as<int32_t>(), z_.first + e, z_.rows);
      for (int64_t n = 0; n < z_.n; ++n) {
        for (int64_t k = 0; k < z_.k; ++k) {
          double sum = 0;
          for (int64_t m = rows.begin; m < rows.end; ++m)
            sum += load(dy[m * z_.n + n]) * load(x[m * z_.k + k]);
          put<Wide<T>>(c, 0, z_.at(e, n, k), sum);
        }
        double bias = 0;
        for (int64_t m = rows.begin; bias_ && m < rows.end; ++m) bias += load(dy[m * z_.n + n]);
        if (bias_) put<Wide<T>>(c, 1, (z_.first + e) * z_.n + n, bias);
      }
    }
  }

 private:
  experts::Grouped z_;
  bool bias_;
};

}  // namespace

std::unique_ptr<Kernel> make_route(const Signature& s) { return make<Route>(s, "T", "PI"); }
std::unique_ptr<Kernel> make_route_grad(const Signature& s) { return make<RouteGrad>(s, "TTIF", "T"); }
std::unique_ptr<Kernel> make_group_rows(const Signature& s) { return make_any<GroupRows>(s, "I", "III"); }
std::unique_ptr<Kernel> make_count_choices(const Signature& s) { return make_any<CountChoices>(s, "I", "F"); }
std::unique_ptr<Kernel> make_gather_rows(const Signature& s) { return make<GatherRows>(s, "TIIP", "T"); }
std::unique_ptr<Kernel> make_combine_rows(const Signature& s) { return make<CombineRows>(s, "TIIP", "T"); }
std::unique_ptr<Kernel> make_combine_rows_grad(const Signature& s) {
  return make<CombineRowsGrad>(s, "TTI", "P");
}
std::unique_ptr<Kernel> make_grouped_linear(const Signature& s) {
  return make<GroupedLinear>(s, "TWIPT", "T");
}
std::unique_ptr<Kernel> make_grouped_linear_grad_input(const Signature& s) {
  return make<GroupedLinearGradInput>(s, "TWIT", "T");
}
std::unique_ptr<Kernel> make_grouped_linear_grad_weight(const Signature& s) {
  return make<GroupedLinearGradWeight>(s, "TTI", "PP");
}

}  // namespace cairn::kernels::reference
