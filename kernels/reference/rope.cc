// rope (Su et al., 2021).
#include <vector>

#include "kernels/reference/common.h"
#include "kernels/reference/rows.h"

namespace cairn::kernels::reference {
namespace {

template <class T>
class Rope : public Kernel {
 public:
  explicit Rope(const Signature& s)
      : time_(s.in[0].shape[1]),
        heads_(s.attrs->integer("heads")),
        dim_(s.in[0].shape.last() / heads_),
        columns_(s.attrs->integer("columns", dim_)),
        interleaved_(s.attrs->integer("interleaved") != 0),
        base_(s.attrs->real("base", 10000.0)),
        factor_(s.attrs->real("factor", 1.0)),
        direction_(s.attrs->integer("inverse") ? -1.0 : 1.0),
        frequencies_(s.attrs->reals("frequencies")) {}
  void run(const Call& c) const override {
    const int64_t rows = c.in[0].desc.shape.rows(), half = columns_ / 2;
    const bool given = c.in.size() > 1 && c.in[1];
    const T* x = c.in[0].as<T>();
    T* y = c.out[0].as<T>();
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t position = given ? c.in[1].as<int32_t>()[r] : r % time_;
      for (int64_t i = 0; i < half; ++i) {
        const double angle = static_cast<double>(position) * frequency(i);
        const double cosine = factor_ * std::cos(angle), sine = factor_ * direction_ * std::sin(angle);
        for (int64_t h = 0; h < heads_; ++h) {
          const int64_t head = (r * heads_ + h) * dim_;
          const int64_t low = head + (interleaved_ ? 2 * i : i), high = low + (interleaved_ ? 1 : half);
          const double a = load(x[low]), b = load(x[high]);
          y[low] = store<T>(a * cosine - b * sine);
          y[high] = store<T>(a * sine + b * cosine);
        }
      }
      for (int64_t h = 0; h < heads_; ++h)
        std::copy_n(x + (r * heads_ + h) * dim_ + columns_, dim_ - columns_,
                    y + (r * heads_ + h) * dim_ + columns_);
    }
  }

 private:
  double frequency(int64_t i) const {
    if (!frequencies_.empty()) return frequencies_[static_cast<size_t>(i)];
    return std::pow(base_, -2.0 * static_cast<double>(i) / static_cast<double>(columns_));
  }

  int64_t time_, heads_, dim_, columns_;
  bool interleaved_;
  double base_, factor_, direction_;
  std::vector<double> frequencies_;
};

}  // namespace

std::unique_ptr<Kernel> make_rope(const Signature& s) { return make<Rope>(s, "TI", "T"); }

}  // namespace cairn::kernels::reference
