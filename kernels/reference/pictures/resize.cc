// resize and its gradient: nearest and bilinear, as torch's interpolate has them.
#include "kernels/reference/pictures/windows.h"
#include "kernels/reference/rows.h"

namespace cairn::kernels::reference {
namespace {

// The two elements of an axis that an output is a mean of, and the weight of the second.
struct Between {
  int64_t first = 0, second = 0;
  double weight = 0;
};

class Resizing {
 public:
  Resizing(const Shape& x, const Shape& y, const Attrs& attrs)
      : samples_(x[0]),
        channels_(x.last()),
        h_{x.rank == 4 ? x[1] : 1, y.rank == 4 ? y[1] : 1},
        w_{x[-2], y[-2]},
        bilinear_(attrs.word("mode", "nearest") == "bilinear"),
        align_corners_(attrs.integer("align_corners") != 0) {}

  int64_t elements_in() const { return samples_ * h_.in * w_.in * channels_; }

  // visit(element of y, element of x, factor): y is the sum of what is visited.
  template <class Visit>
  void each(const Visit& visit) const {
    int64_t to = 0;
    for (int64_t n = 0; n < samples_; ++n)
      for (int64_t i = 0; i < h_.out; ++i)
        for (int64_t j = 0; j < w_.out; ++j, to += channels_) {
          const Between h = between(h_, i), w = between(w_, j);
          for (const auto& [row, by_row] : {std::pair{h.first, 1 - h.weight}, {h.second, h.weight}})
            for (const auto& [column, by_column] : {std::pair{w.first, 1 - w.weight}, {w.second, w.weight}})
              if (by_row * by_column != 0)
                for (int64_t k = 0; k < channels_; ++k)
                  visit(to + k, ((n * h_.in + row) * w_.in + column) * channels_ + k, by_row * by_column);
        }
  }

 private:
  struct Axis {
    int64_t in, out;
  };
  Between between(const Axis& axis, int64_t o) const {
    if (!bilinear_) return {nearest_from(o, axis.in, axis.out), 0, 0};
    const double from = resized_from(o, axis.in, axis.out, align_corners_);
    const auto first = std::min(static_cast<int64_t>(from), axis.in - 1);
    return {first, std::min(first + 1, axis.in - 1), from - static_cast<double>(first)};
  }

  int64_t samples_, channels_;
  Axis h_, w_;
  bool bilinear_, align_corners_;
};

template <class T>
class Resize : public Kernel {
 public:
  explicit Resize(const Signature& s)
      : how_(s.in[0].shape, s.out[0].shape, *s.attrs), count_(s.out[0].shape.elements()) {}
  int64_t workspace_bytes() const override { return count_ * 8; }
  void run(const Call& c) const override {
    const PlaceSums y(c);
    how_.each(
        [&](int64_t to, int64_t from, double factor) { y[to] += factor * load(c.in[0].as<T>()[from]); });
    y.store_to(c.out[0].as<T>());
  }

 private:
  Resizing how_;
  int64_t count_;
};

template <class T>
class ResizeGrad : public Kernel {
 public:
  explicit ResizeGrad(const Signature& s) : how_(s.out[0].shape, s.in[0].shape, *s.attrs) {}
  int64_t workspace_bytes() const override { return how_.elements_in() * 8; }
  void run(const Call& c) const override {
    const PlaceSums dx(c);
    how_.each(
        [&](int64_t to, int64_t from, double factor) { dx[from] += factor * load(c.in[0].as<T>()[to]); });
    dx.store_to(c.out[0].as<T>());
  }

 private:
  Resizing how_;
};

}  // namespace

std::unique_ptr<Kernel> make_resize(const Signature& s) { return make<Resize>(s, "T", "T"); }
std::unique_ptr<Kernel> make_resize_grad(const Signature& s) { return make<ResizeGrad>(s, "T", "T"); }

}  // namespace cairn::kernels::reference
