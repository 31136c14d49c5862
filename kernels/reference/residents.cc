// Ops on values that outlive a run: running_mean, move_mean, append.
#include "kernels/reference/common.h"
#include "kernels/reference/rows.h"

namespace cairn::kernels::reference {
namespace {

// One column after the other, so that the order of a sum follows from the shape alone.
template <class T>
class RunningMean : public Kernel {
 public:
  explicit RunningMean(const Signature& s)
      : columns_(s.in[0].shape.last()), rows_(s.in[0].shape.elements() / columns_) {}
  void run(const Call& c) const override {
    for (int64_t column = 0; column < columns_; ++column) {
      double sum = 0;
      for (int64_t row = 0; row < rows_; ++row) sum += load(c.in[0].as<T>()[row * columns_ + column]);
      put<double>(c, 0, column, sum);
    }
    put<double>(c, 0, columns_, static_cast<double>(rows_));
  }

 private:
  int64_t columns_, rows_;
};

template <class T>
class MoveMean : public Kernel {
 public:
  explicit MoveMean(const Signature& s)
      : columns_(s.out[0].shape.elements()), momentum_(s.attrs->real("momentum", 0.1)) {}
  void run(const Call& c) const override {
    const double* const sums = c.in[0].as<double>();
    const double rows = sums[columns_];
    if (rows == 0) return;
    for (int64_t i = 0; i < columns_; ++i) {
      T& mean = c.out[0].as<T>()[i];
      mean = store<T>(load(mean) + momentum_ * (sums[i] / rows - load(mean)));
    }
  }

 private:
  int64_t columns_;
  double momentum_;
};

class Append : public Kernel {
 public:
  explicit Append(const Signature& s)
      : rows_(s.out[0].shape[0]), more_(s.in[1].shape[0]), width_(s.out[0].shape.elements() / rows_) {}
  void run(const Call& c) const override {
    const int64_t first = c.in[2].as<int32_t>()[0];
    for (int64_t row = 0; row < more_; ++row) {
      if (first + row < 0 || first + row >= rows_) continue;
      for (int64_t i = 0; i < width_; ++i)
        set(c.out[0], (first + row) * width_ + i, at(c.in[1], row * width_ + i));
    }
  }

 private:
  int64_t rows_, more_, width_;
};

}  // namespace

std::unique_ptr<Kernel> make_running_mean(const Signature& s) { return make<RunningMean>(s, "TP", "D"); }
std::unique_ptr<Kernel> make_move_mean(const Signature& s) { return make<MoveMean>(s, "D", "P"); }
std::unique_ptr<Kernel> make_append(const Signature& s) { return make_any<Append>(s, "FFI", "F"); }

}  // namespace cairn::kernels::reference
