// reduce_sum, reduce_mean, expand, reduce_leading, accumulate, sum_squares and what it is made of in chunks.
#include "kernels/reference/common.h"
#include "kernels/reference/rows.h"

namespace cairn::kernels::reference {
namespace {

// Walks a tensor in row order and tells the element of the tensor without `axes` that each element falls on.
class Reduction {
 public:
  Reduction(const Shape& shape, const std::vector<int64_t>& axes) : shape_(shape) {
    std::array<bool, kMaxRank> reduced{};
    reduced.fill(axes.empty());
    for (int64_t a : axes) reduced[static_cast<size_t>(a < 0 ? a + shape.rank : a)] = true;
    int64_t stride = 1;
    for (int i = shape.rank - 1; i >= 0; --i) {
      stride_[static_cast<size_t>(i)] = reduced[static_cast<size_t>(i)] ? 0 : stride;
      if (!reduced[static_cast<size_t>(i)]) stride *= shape[i];
    }
    reduced_elements_ = stride;
  }
  int64_t reduced_elements() const { return reduced_elements_; }
  int64_t elements() const { return shape_.elements(); }

  template <class Visit>  // visit(element, reduced element)
  void walk(const Visit& visit) const {
    std::array<int64_t, kMaxRank> index{};
    const int64_t n = elements();
    for (int64_t e = 0; e < n; ++e) {
      int64_t to = 0;
      for (size_t i = 0; i < static_cast<size_t>(shape_.rank); ++i) to += index[i] * stride_[i];
      visit(e, to);
      for (int i = shape_.rank - 1; i >= 0; --i) {
        if (++index[static_cast<size_t>(i)] < shape_[i]) break;
        index[static_cast<size_t>(i)] = 0;
      }
    }
  }

 private:
  Shape shape_;
  std::array<int64_t, kMaxRank> stride_{};
  int64_t reduced_elements_ = 1;
};

template <class T>
class Reduce : public Kernel {
 public:
  explicit Reduce(const Signature& s)
      : reduction_(s.in[0].shape, s.attrs->list("axes")),
        divisor_(s.op == "reduce_mean"
                     ? static_cast<double>(reduction_.elements() / reduction_.reduced_elements())
                     : 1.0) {}
  int64_t workspace_bytes() const override { return reduction_.reduced_elements() * 8; }
  void run(const Call& c) const override {
    auto* sum = static_cast<double*>(c.workspace);
    std::fill_n(sum, reduction_.reduced_elements(), 0.0);
    reduction_.walk([&](int64_t e, int64_t to) { sum[to] += load(c.in[0].as<T>()[e]); });
    for (int64_t i = 0; i < reduction_.reduced_elements(); ++i)
      c.out[0].as<T>()[i] = store<T>(sum[i] / divisor_);
  }

 private:
  Reduction reduction_;
  double divisor_;
};

template <class T>
class Expand : public Kernel {
 public:
  explicit Expand(const Signature& s)
      : reduction_(s.out[0].shape, s.attrs->list("axes")), factor_(s.attrs->real("factor", 1.0)) {}
  void run(const Call& c) const override {
    reduction_.walk([&](int64_t e, int64_t from) {
      c.out[0].as<T>()[e] = store<T>(factor_ * load(c.in[0].as<T>()[from]));
    });
  }

 private:
  Reduction reduction_;
  double factor_;
};

template <class T>
class ReduceLeading : public Kernel {
 public:
  explicit ReduceLeading(const Signature& s)
      : n_(s.out[0].shape.elements()), rows_(s.in[0].shape.elements() / n_) {}
  int64_t workspace_bytes() const override { return n_ * 8; }
  void run(const Call& c) const override {
    auto* sum = static_cast<double*>(c.workspace);
    std::fill_n(sum, n_, 0.0);
    for (int64_t r = 0; r < rows_; ++r)
      for (int64_t i = 0; i < n_; ++i) sum[i] += load(c.in[0].as<T>()[r * n_ + i]);
    for (int64_t i = 0; i < n_; ++i) put<Wide<T>>(c, 0, i, sum[i]);
  }

 private:
  int64_t n_, rows_;
};

template <class T>
class ReduceAxes : public Kernel {
 public:
  explicit ReduceAxes(const Signature& s) : reduction_(s.in[0].shape, s.attrs->list("axes")) {}
  int64_t workspace_bytes() const override { return reduction_.reduced_elements() * 8; }
  void run(const Call& c) const override {
    auto* sum = static_cast<double*>(c.workspace);
    std::fill_n(sum, reduction_.reduced_elements(), 0.0);
    reduction_.walk([&](int64_t e, int64_t to) { sum[to] += load(c.in[0].as<T>()[e]); });
    for (int64_t i = 0; i < reduction_.reduced_elements(); ++i) put<Wide<T>>(c, 0, i, sum[i]);
  }

 private:
  Reduction reduction_;
};

template <class T>
class Accumulate : public Kernel {
 public:
  explicit Accumulate(const Signature&) {}
  void run(const Call& c) const override {
    const int64_t n = c.in[0].desc.shape.elements();
    for (int64_t i = 0; i < n; ++i) put<Wide<T>>(c, 0, i, load(c.in[0].as<T>()[i]));
  }
};

template <class T>
class SumSquares : public Kernel {
 public:
  explicit SumSquares(const Signature&) {}
  void run(const Call& c) const override {
    const int64_t n = c.in[0].desc.shape.elements();
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += load(c.in[0].as<T>()[i]) * load(c.in[0].as<T>()[i]);
    put<double>(c, 0, 0, sum);
  }
};

template <class T>
class SquaresOfChunks : public Kernel {
 public:
  explicit SquaresOfChunks(const Signature& s) : chunk_(s.attrs->integer("chunk")) {}
  void run(const Call& c) const override {
    const int64_t n = c.in[0].desc.shape.elements();
    for (int64_t begin = 0; begin < n; begin += chunk_) {
      double sum = 0;
      for (int64_t i = begin; i < std::min(begin + chunk_, n); ++i)
        sum += load(c.in[0].as<T>()[i]) * load(c.in[0].as<T>()[i]);
      put<double>(c, 0, begin / chunk_, sum);
    }
  }

 private:
  int64_t chunk_;
};

class SumOfChunks : public Kernel {
 public:
  explicit SumOfChunks(const Signature&) {}
  void run(const Call& c) const override {
    double sum = 0;
    for (int64_t i = 0; i < c.in[0].desc.shape.elements(); ++i) sum += c.in[0].as<double>()[i];
    put<double>(c, 0, 0, sum);
  }
};

}  // namespace

std::unique_ptr<Kernel> make_reduce_sum(const Signature& s) { return make<Reduce>(s, "T", "T"); }
std::unique_ptr<Kernel> make_reduce_mean(const Signature& s) { return make<Reduce>(s, "T", "T"); }
std::unique_ptr<Kernel> make_expand(const Signature& s) { return make<Expand>(s, "T", "T"); }
std::unique_ptr<Kernel> make_reduce_leading(const Signature& s) { return make<ReduceLeading>(s, "T", "P"); }
std::unique_ptr<Kernel> make_reduce_axes(const Signature& s) { return make<ReduceAxes>(s, "T", "P"); }
std::unique_ptr<Kernel> make_accumulate(const Signature& s) { return make<Accumulate>(s, "T", "P"); }
std::unique_ptr<Kernel> make_sum_squares(const Signature& s) { return make<SumSquares>(s, "T", "D"); }
std::unique_ptr<Kernel> make_squares_of_chunks(const Signature& s) {
  return make<SquaresOfChunks>(s, "T", "D");
}
std::unique_ptr<Kernel> make_sum_of_chunks(const Signature& s) { return make_any<SumOfChunks>(s, "D", "D"); }

}  // namespace cairn::kernels::reference
