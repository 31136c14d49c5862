// What the reference kernels of pictures share: walks over outputs, over the elements that a window sees, and sums by place.
#pragma once
#include "kernels/reference/common.h"
#include "runtime/base/spatial.h"

namespace cairn::kernels::reference {

// visit(sample, i, j, row): `row` counts the outputs of all samples.
template <class Visit>
void each_output(const Windows& all, const Visit& visit) {
  int64_t row = 0;
  for (int64_t n = 0; n < all.n; ++n)
    for (int64_t i = 0; i < all.h.out; ++i)
      for (int64_t j = 0; j < all.w.out; ++j) visit(n, i, j, row++);
}

// visit(tap, pixel) for what output (i, j) sees inside of the picture; `pixel` counts those of one sample.
template <class Visit>
void each_seen(const Windows& all, int64_t i, int64_t j, const Visit& visit) {
  for (int64_t a = 0; a < all.h.taps(i); ++a)
    for (int64_t b = 0; b < all.w.taps(j); ++b)
      if (all.h.inside(all.h.at(i, a)) && all.w.inside(all.w.at(j, b)))
        visit(a * all.w.window + b, all.h.at(i, a) * all.w.in + all.w.at(j, b));
}

inline int64_t pixels(const Windows& all) { return all.h.in * all.w.in; }

// The gradient of a picture, summed by place in the workspace, and then rounded.
class PlaceSums {
 public:
  explicit PlaceSums(const Call& c)
      : sums_(static_cast<double*>(c.workspace)), count_(c.out[0].desc.shape.elements()) {
    std::fill_n(sums_, count_, 0.0);
  }
  double& operator[](int64_t i) const { return sums_[i]; }
  template <class T>
  void store_to(T* x) const {
    for (int64_t i = 0; i < count_; ++i) x[i] = store<T>(sums_[i]);
  }

 private:
  double* sums_;
  int64_t count_;
};

}  // namespace cairn::kernels::reference
