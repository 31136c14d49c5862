// Convolution, its transpose, which is the gradient of its input, and the gradient of its weight.
#include "kernels/reference/pictures/windows.h"
#include "kernels/reference/rows.h"

namespace cairn::kernels::reference {
namespace {

// Sizes of w[O, kh, kw, C / groups].
struct Kernels {
  int64_t outputs, channels, taps, outputs_of_group;
  Kernels(const Shape& w, const Windows& all, const Attrs& attrs)
      : outputs(w[0]),
        channels(w.last()),
        taps(all.taps()),
        outputs_of_group(outputs / attrs.integer("groups", 1)) {}
  int64_t at(int64_t o, int64_t tap, int64_t c) const { return (o * taps + tap) * channels + c; }
  int64_t first_channel(int64_t o) const { return o / outputs_of_group * channels; }
};

template <class T>
class Conv : public Kernel {
 public:
  explicit Conv(const Signature& s)
      : all_(conv_windows(s.in[0].shape, s.in[1].shape, *s.attrs)), w_(s.in[1].shape, all_, *s.attrs) {}
  void run(const Call& c) const override {
    const Weight<T> w(c.in[1]);
    const auto* b = c.in.size() > 2 ? c.in[2].as<Wide<T>>() : nullptr;
    each_output(all_, [&](int64_t n, int64_t i, int64_t j, int64_t row) {
      const T* x = c.in[0].as<T>() + n * pixels(all_) * all_.channels;
      for (int64_t o = 0; o < w_.outputs; ++o) {
        double sum = b != nullptr ? load(b[o]) : 0.0;
        each_seen(all_, i, j, [&](int64_t tap, int64_t pixel) {
          for (int64_t k = 0; k < w_.channels; ++k)
            sum += load(x[pixel * all_.channels + w_.first_channel(o) + k]) * w[w_.at(o, tap, k)];
        });
        c.out[0].as<T>()[row * w_.outputs + o] = store<T>(sum);
      }
    });
  }

 private:
  Windows all_;
  Kernels w_;
};

template <class T>
class ConvTranspose : public Kernel {
 public:
  explicit ConvTranspose(const Signature& s)
      : all_(conv_windows(s.out[0].shape, s.in[1].shape, *s.attrs)), w_(s.in[1].shape, all_, *s.attrs) {}
  int64_t workspace_bytes() const override { return all_.pixels_in() * all_.channels * 8; }
  void run(const Call& c) const override {
    const Weight<T> w(c.in[1]);
    const PlaceSums y(c);
    each_output(all_, [&](int64_t n, int64_t i, int64_t j, int64_t row) {
      for (int64_t o = 0; o < w_.outputs; ++o) {
        const double x = load(c.in[0].as<T>()[row * w_.outputs + o]);
        each_seen(all_, i, j, [&](int64_t tap, int64_t pixel) {
          const int64_t first = (n * pixels(all_) + pixel) * all_.channels + w_.first_channel(o);
          for (int64_t k = 0; k < w_.channels; ++k) y[first + k] += x * w[w_.at(o, tap, k)];
        });
      }
    });
    y.store_to(c.out[0].as<T>());
  }

 private:
  Windows all_;
  Kernels w_;
};

template <class T>
class ConvGradWeight : public Kernel {
 public:
  explicit ConvGradWeight(const Signature& s)
      : all_(make_windows(s.in[0].shape, s.attrs->list("kernel"), *s.attrs)),
        w_(s.out[0].shape, all_, *s.attrs) {}
  int64_t workspace_bytes() const override { return (w_.at(w_.outputs, 0, 0) + w_.outputs) * 8; }
  void run(const Call& c) const override {
    const int64_t weights = w_.at(w_.outputs, 0, 0);
    auto* dw = static_cast<double*>(c.workspace);
    double* db = dw + weights;
    std::fill_n(dw, weights + w_.outputs, 0.0);
    each_output(all_, [&](int64_t n, int64_t i, int64_t j, int64_t row) {
      const T* x = c.in[0].as<T>() + n * pixels(all_) * all_.channels;
      for (int64_t o = 0; o < w_.outputs; ++o) {
        const double dy = load(c.in[1].as<T>()[row * w_.outputs + o]);
        db[o] += dy;
        each_seen(all_, i, j, [&](int64_t tap, int64_t pixel) {
          for (int64_t k = 0; k < w_.channels; ++k)
            dw[w_.at(o, tap, k)] += dy * load(x[pixel * all_.channels + w_.first_channel(o) + k]);
        });
      }
    });
    if (c.out[0])
      for (int64_t i = 0; i < weights; ++i) put<Wide<T>>(c, 0, i, dw[i]);
    if (c.out.size() > 1 && c.out[1])
      for (int64_t o = 0; o < w_.outputs; ++o) put<Wide<T>>(c, 1, o, db[o]);
  }

 private:
  Windows all_;
  Kernels w_;
};

}  // namespace

std::unique_ptr<Kernel> make_conv(const Signature& s) { return make<Conv>(s, "TWP", "T"); }
std::unique_ptr<Kernel> make_conv_transpose(const Signature& s) { return make<ConvTranspose>(s, "TW", "T"); }
std::unique_ptr<Kernel> make_conv_grad_weight(const Signature& s) {
  return make<ConvGradWeight>(s, "TT", "PP");
}

}  // namespace cairn::kernels::reference
