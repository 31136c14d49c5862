// Ops on values that outlive a run: running_mean, move_mean, append, effective, effective_rows, average. And row_numbers.
#include "kernels/reference/common.h"
#include "kernels/reference/rows.h"
#include "runtime/formats/split.h"

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
  explicit Append(const Signature& s) : ring_(s.attrs->integer("ring") != 0) {
    const Shape &cache = s.out[0].shape, &x = s.in[1].shape;
    const int axis = cache.rank >= 3 ? 1 : 0;
    samples_ = axis == 1 ? cache[0] : 1;
    rows_ = cache[axis], more_ = x[axis];
    width_ = cache.elements() / std::max<int64_t>(samples_ * rows_, 1);
  }
  void run(const Call& c) const override {
    for (int64_t sample = 0; sample < samples_; ++sample) {
      const int64_t first = c.in[2].as<int32_t>()[sample];
      const bool counted = c.in.size() > 3 && c.in[3];
      const int64_t count = counted ? std::clamp<int64_t>(c.in[3].as<int32_t>()[sample], 0, more_) : more_;
      for (int64_t i = ring_ ? std::max<int64_t>(count - rows_, 0) : 0; i < count; ++i) {
        const int64_t row = ring_ ? (first + i) % rows_ : first + i;
        if (row >= 0 && row < rows_) put_row(c, sample * rows_ + row, sample * more_ + i);
      }
    }
  }

 private:
  void put_row(const Call& c, int64_t row, int64_t from) const {
    if (const DType type = c.out[0].desc.dtype; type == c.in[1].desc.dtype) {
      const int64_t bytes = width_ * dtype_bytes(type);
      std::memcpy(c.out[0].as<std::byte>() + row * bytes, c.in[1].as<std::byte>() + from * bytes,
                  static_cast<size_t>(bytes));
      return;
    }
    for (int64_t i = 0; i < width_; ++i) set(c.out[0], row * width_ + i, at(c.in[1], from * width_ + i));
  }

  bool ring_;
  int64_t samples_, rows_, more_, width_;
};

// The rows of one micro-batch, to or from those of all.
template <bool kGathers>
class EffectiveRows : public Kernel {
 public:
  explicit EffectiveRows(const Signature& s) : bytes_((kGathers ? s.in[0] : s.out[0]).bytes()) {}
  void run(const Call& c) const override {
    const int64_t own = static_cast<int64_t>(c.key.micro) * bytes_;
    std::memcpy(c.out[0].as<std::byte>() + (kGathers ? own : 0),
                c.in[0].as<std::byte>() + (kGathers ? 0 : own), static_cast<size_t>(bytes_));
  }

 private:
  int64_t bytes_;
};

class Average : public Kernel {
 public:
  explicit Average(const Signature& s)
      : count_(s.out[0].shape.elements()), share_(1 - s.attrs->real("decay")), split_(s.has_in(1)) {}
  void run(const Call& c) const override {
    for (int64_t i = 0; i < count_; ++i) {
      const double p =
          split_ ? join_halves(c.in[0].as<bf16>()[i], c.in[1].as<uint16_t>()[i]) : at(c.in[0], i);
      const double ema = at(c.out[0], i);
      set(c.out[0], i, ema + share_ * (p - ema));
    }
  }

 private:
  int64_t count_;
  double share_;
  bool split_;
};

class RowNumbers : public Kernel {
 public:
  explicit RowNumbers(const Signature& s) : rows_(s.out[0].shape[0]) {}
  void run(const Call& c) const override {
    for (int64_t i = 0; i < rows_; ++i) c.out[0].as<int32_t>()[i] = static_cast<int32_t>(i);
  }

 private:
  int64_t rows_;
};

}  // namespace

std::unique_ptr<Kernel> make_effective(const Signature& s) {
  return make_any<EffectiveRows<true>>(s, "A", "A");
}
std::unique_ptr<Kernel> make_effective_rows(const Signature& s) {
  return make_any<EffectiveRows<false>>(s, "A", "A");
}
std::unique_ptr<Kernel> make_average(const Signature& s) { return std::make_unique<Average>(s); }
std::unique_ptr<Kernel> make_row_numbers(const Signature& s) { return make_any<RowNumbers>(s, "A", "I"); }
std::unique_ptr<Kernel> make_running_mean(const Signature& s) { return make<RunningMean>(s, "TP", "D"); }
std::unique_ptr<Kernel> make_move_mean(const Signature& s) { return make<MoveMean>(s, "D", "P"); }
std::unique_ptr<Kernel> make_append(const Signature& s) { return make_any<Append>(s, "FFII", "F"); }

}  // namespace cairn::kernels::reference
