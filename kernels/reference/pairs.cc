// pair_loss and its gradient: losses of all pairs of rows, of which rows of equal number belong together. One row at a time.
#include "kernels/reference/common.h"
#include "kernels/reference/rows.h"

namespace cairn::kernels::reference {
namespace {

double softplus_of(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

template <class T, bool kGradient>
class PairLossOf : public Kernel {
 public:
  explicit PairLossOf(const Signature& s)
      : rows_(s.in[0].shape[0]),
        width_(s.in[0].shape[1]),
        triplet_(s.attrs->word("kind") == "triplet"),
        margin_(s.attrs->real("margin", 0.2)) {}
  int64_t workspace_bytes() const override { return (2 * rows_ + 2 * rows_ * width_) * 8; }
  void run(const Call& c) const override {
    const T *a = c.in[0].as<T>(), *b = c.in[1].as<T>();
    const double scale = load(c.in[2].as<Wide<T>>()[0]);
    const auto* bias = c.in.size() > 3 ? c.in[3].as<Wide<T>>() : nullptr;
    auto* products = static_cast<double*>(c.workspace);
    double *ds = products + rows_, *da = ds + rows_, *db = da + rows_ * width_;
    std::fill_n(da, 2 * rows_ * width_, 0.0);
    double loss = 0, dscale = 0, dbias = 0;
    for (int64_t i = 0; i < rows_; ++i) {
      for (int64_t j = 0; j < rows_; ++j) {
        products[j] = ds[j] = 0;
        for (int64_t k = 0; k < width_; ++k) products[j] += load(a[i * width_ + k]) * load(b[j * width_ + k]);
      }
      const auto score = [&](int64_t j) { return scale * products[j] + (bias ? load(bias[0]) : 0.0); };
      for (int64_t j = 0; j < rows_; ++j)
        loss += triplet_ ? triplet(i, j, score, ds) : sigmoid(i, j, score, ds);
      for (int64_t j = 0; j < rows_; ++j) {
        dscale += ds[j] * products[j];
        dbias += ds[j];
        for (int64_t k = 0; k < width_; ++k) {
          da[i * width_ + k] += ds[j] * scale * load(b[j * width_ + k]);
          db[j * width_ + k] += ds[j] * scale * load(a[i * width_ + k]);
        }
      }
    }
    if (c.out[0]) *c.out[0].as<double>() = loss;
    if (c.out.size() > 1 && c.out[1])
      *c.out[1].as<double>() = static_cast<double>(triplet_ ? rows_ * (rows_ - 1) : rows_);
    if (!kGradient) return;
    const double dloss = c.in.size() > 4 && c.in[4] ? at(c.in[4], 0) : 1.0;
    for (size_t o : {2, 3})
      if (c.out.size() > o && c.out[o])
        for (int64_t i = 0; i < rows_ * width_; ++i)
          c.out[o].as<T>()[i] = store<T>(dloss * (o == 2 ? da : db)[i]);
    for (size_t o : {4, 5})
      if (c.out.size() > o && c.out[o]) put<Wide<T>>(c, o, 0, dloss * (o == 4 ? dscale : dbias));
  }

 private:
  // The loss of pair (i, j); adds its derivatives by row i's scores.
  static double sigmoid(int64_t i, int64_t j, const auto& score, double* ds) {
    const double sign = i == j ? 1 : -1;
    ds[j] -= sign / (1 + std::exp(sign * score(j)));
    return softplus_of(-sign * score(j));
  }
  double triplet(int64_t i, int64_t j, const auto& score, double* ds) const {
    const double loss = margin_ + score(j) - score(i);
    if (i == j || loss <= 0) return 0;
    ds[j] += 1;
    ds[i] -= 1;
    return loss;
  }

  int64_t rows_, width_;
  bool triplet_;
  double margin_;
};
template <class T>
using PairLoss = PairLossOf<T, false>;
template <class T>
using PairLossGrad = PairLossOf<T, true>;

}  // namespace

std::unique_ptr<Kernel> make_pair_loss(const Signature& s) { return make<PairLoss>(s, "TTPP", "DD"); }
std::unique_ptr<Kernel> make_pair_loss_grad(const Signature& s) {
  return make<PairLossGrad>(s, "TTPPD", "DDTTPP");
}

}  // namespace cairn::kernels::reference
