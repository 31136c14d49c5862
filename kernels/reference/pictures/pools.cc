// Pools over windows, patches, and their gradients; pad.
#include "kernels/reference/pictures/windows.h"
#include "kernels/reference/rows.h"

namespace cairn::kernels::reference {
namespace {

Windows pool_windows(const Signature& s, const Shape& x) {
  return make_windows(x, s.attrs->list("kernel"), *s.attrs, true);
}

bool larger(double a, double b) { return a > b || (std::isnan(a) && !std::isnan(b)); }

template <class T>
class MaxPool : public Kernel {
 public:
  explicit MaxPool(const Signature& s) : all_(pool_windows(s, s.in[0].shape)) {}
  void run(const Call& c) const override {
    each_output(all_, [&](int64_t n, int64_t i, int64_t j, int64_t row) {
      const T* x = c.in[0].as<T>() + n * pixels(all_) * all_.channels;
      for (int64_t k = 0; k < all_.channels; ++k) {
        int64_t best = -1;
        each_seen(all_, i, j, [&](int64_t, int64_t pixel) {
          if (best < 0 || larger(load(x[pixel * all_.channels + k]), load(x[best * all_.channels + k])))
            best = pixel;
        });
        c.out[0].as<T>()[row * all_.channels + k] = x[best * all_.channels + k];
        if (c.out.size() > 1 && c.out[1])
          c.out[1].as<int32_t>()[row * all_.channels + k] = static_cast<int32_t>(best);
      }
    });
  }

 private:
  Windows all_;
};

// A place outside of x gets nothing.
template <class T>
class MaxPoolGrad : public Kernel {
 public:
  explicit MaxPoolGrad(const Signature& s)
      : samples_(s.in[0].shape[0]),
        channels_(s.in[0].shape.last()),
        outputs_(s.in[0].shape.elements() / samples_ / channels_),
        pixels_(s.out[0].shape.elements() / samples_ / channels_) {}
  int64_t workspace_bytes() const override { return samples_ * pixels_ * channels_ * 8; }
  void run(const Call& c) const override {
    const PlaceSums dx(c);
    for (int64_t row = 0; row < samples_ * outputs_; ++row)
      for (int64_t k = 0; k < channels_; ++k) {
        const int64_t place = c.in[1].as<int32_t>()[row * channels_ + k];
        if (place < 0 || place >= pixels_) continue;
        dx[(row / outputs_ * pixels_ + place) * channels_ + k] += load(c.in[0].as<T>()[row * channels_ + k]);
      }
    dx.store_to(c.out[0].as<T>());
  }

 private:
  int64_t samples_, channels_, outputs_, pixels_;
};

// By how many elements the sum of a window is divided.
class Counts {
 public:
  explicit Counts(const Signature& s) : padding_(s.attrs->integer("count_padding", 1) != 0) {}
  double of(const Windows& all, int64_t i, int64_t j) const {
    int64_t seen = 0;
    each_seen(all, i, j, [&](int64_t, int64_t) { ++seen; });
    return static_cast<double>(padding_ ? all.h.taps(i) * all.w.taps(j) : seen);
  }

 private:
  bool padding_;
};

template <class T>
class AveragePool : public Kernel {
 public:
  explicit AveragePool(const Signature& s) : all_(pool_windows(s, s.in[0].shape)), counts_(s) {}
  void run(const Call& c) const override {
    each_output(all_, [&](int64_t n, int64_t i, int64_t j, int64_t row) {
      const T* x = c.in[0].as<T>() + n * pixels(all_) * all_.channels;
      for (int64_t k = 0; k < all_.channels; ++k) {
        double sum = 0;
        each_seen(all_, i, j, [&](int64_t, int64_t pixel) { sum += load(x[pixel * all_.channels + k]); });
        c.out[0].as<T>()[row * all_.channels + k] = store<T>(sum / counts_.of(all_, i, j));
      }
    });
  }

 private:
  Windows all_;
  Counts counts_;
};

template <class T>
class AveragePoolGrad : public Kernel {
 public:
  explicit AveragePoolGrad(const Signature& s) : all_(pool_windows(s, s.out[0].shape)), counts_(s) {}
  int64_t workspace_bytes() const override { return all_.pixels_in() * all_.channels * 8; }
  void run(const Call& c) const override {
    const PlaceSums dx(c);
    each_output(all_, [&](int64_t n, int64_t i, int64_t j, int64_t row) {
      const double count = counts_.of(all_, i, j);
      each_seen(all_, i, j, [&](int64_t, int64_t pixel) {
        for (int64_t k = 0; k < all_.channels; ++k)
          dx[(n * pixels(all_) + pixel) * all_.channels + k] +=
              load(c.in[0].as<T>()[row * all_.channels + k]) / count;
      });
    });
    dx.store_to(c.out[0].as<T>());
  }

 private:
  Windows all_;
  Counts counts_;
};

template <class T>
class Patches : public Kernel {
 public:
  explicit Patches(const Signature& s)
      : all_(make_windows(s.in[0].shape, s.attrs->list("kernel"), *s.attrs)) {}
  void run(const Call& c) const override {
    const int64_t width = all_.taps() * all_.channels;
    each_output(all_, [&](int64_t n, int64_t i, int64_t j, int64_t row) {
      const T* x = c.in[0].as<T>() + n * pixels(all_) * all_.channels;
      T* y = c.out[0].as<T>() + row * width;
      std::fill_n(y, width, store<T>(0));
      each_seen(all_, i, j, [&](int64_t tap, int64_t pixel) {
        std::copy_n(x + pixel * all_.channels, all_.channels, y + tap * all_.channels);
      });
    });
  }

 private:
  Windows all_;
};

template <class T>
class PatchesGrad : public Kernel {
 public:
  explicit PatchesGrad(const Signature& s)
      : all_(make_windows(s.out[0].shape, s.attrs->list("kernel"), *s.attrs)) {}
  int64_t workspace_bytes() const override { return all_.pixels_in() * all_.channels * 8; }
  void run(const Call& c) const override {
    const PlaceSums dx(c);
    each_output(all_, [&](int64_t n, int64_t i, int64_t j, int64_t row) {
      const T* dy = c.in[0].as<T>() + row * all_.taps() * all_.channels;
      each_seen(all_, i, j, [&](int64_t tap, int64_t pixel) {
        for (int64_t k = 0; k < all_.channels; ++k)
          dx[(n * pixels(all_) + pixel) * all_.channels + k] += load(dy[tap * all_.channels + k]);
      });
    });
    dx.store_to(c.out[0].as<T>());
  }

 private:
  Windows all_;
};

template <class T>
class Pad : public Kernel {
 public:
  explicit Pad(const Signature& s)
      : x_(s.in[0].shape),
        y_(s.out[0].shape),
        before_(s.attrs->list("before")),
        value_(s.attrs->real("value")) {}
  void run(const Call& c) const override {
    for (int64_t e = 0; e < y_.elements(); ++e) {
      int64_t rest = e, from = 0, stride = 1;
      bool inside = true;
      for (int axis = y_.rank - 1; axis >= 0; --axis) {
        const int64_t i = rest % y_[axis] - before_[static_cast<size_t>(axis)];
        rest /= y_[axis];
        inside = inside && i >= 0 && i < x_[axis];
        from += i * stride;
        stride *= x_[axis];
      }
      c.out[0].as<T>()[e] = inside ? c.in[0].as<T>()[from] : store<T>(value_);
    }
  }

 private:
  Shape x_, y_;
  std::vector<int64_t> before_;
  double value_;
};

}  // namespace

std::unique_ptr<Kernel> make_max_pool(const Signature& s) { return make<MaxPool>(s, "T", "TI"); }
std::unique_ptr<Kernel> make_max_pool_grad(const Signature& s) { return make<MaxPoolGrad>(s, "TI", "T"); }
std::unique_ptr<Kernel> make_average_pool(const Signature& s) { return make<AveragePool>(s, "T", "T"); }
std::unique_ptr<Kernel> make_average_pool_grad(const Signature& s) {
  return make<AveragePoolGrad>(s, "T", "T");
}
std::unique_ptr<Kernel> make_patches(const Signature& s) { return make<Patches>(s, "T", "T"); }
std::unique_ptr<Kernel> make_patches_grad(const Signature& s) { return make<PatchesGrad>(s, "T", "T"); }
std::unique_ptr<Kernel> make_pad(const Signature& s) { return make<Pad>(s, "T", "T"); }

}  // namespace cairn::kernels::reference
