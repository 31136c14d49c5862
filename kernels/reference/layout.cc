// reshape, transpose, slice, concat: bytes move, values stay. cast, dequantise: one rounding.
#include "kernels/reference/common.h"
#include "kernels/reference/rows.h"
#include "runtime/formats/codecs.h"

namespace cairn::kernels::reference {
namespace {

// A tensor seen as [outer, size, inner] around an axis.
struct Around {
  int64_t outer = 1, size = 1, inner = 1;
  Around(const Shape& shape, int64_t axis) {
    if (axis < 0) axis += shape.rank;
    for (int i = 0; i < shape.rank; ++i) (i < axis ? outer : i == axis ? size : inner) *= shape[i];
  }
};

// Rows [from, from + count) of `source` along the axis to rows starting at `to` of `target`; inner counts
// bytes.
void copy(const char* source, Around s, int64_t from, char* target, Around t, int64_t to, int64_t count) {
  for (int64_t o = 0; o < s.outer; ++o)
    std::memcpy(target + (o * t.size + to) * t.inner, source + (o * s.size + from) * s.inner,
                static_cast<size_t>(count * s.inner));
}

Around in_bytes(Around a, DType t) {
  a.inner *= dtype_bytes(t);
  return a;
}

class Reshape : public Kernel {
 public:
  explicit Reshape(const Signature&) {}
  void run(const Call& c) const override {
    if (c.out[0].data != c.in[0].data)
      std::memcpy(c.out[0].data, c.in[0].data, static_cast<size_t>(c.in[0].desc.bytes()));
  }
};

class Transpose : public Kernel {
 public:
  explicit Transpose(const Signature& s) : shape_(s.out[0].shape), bytes_(dtype_bytes(s.in[0].dtype)) {
    const std::vector<int64_t> perm = s.attrs->list("perm");
    for (int i = 0; i < shape_.rank; ++i) {
      stride_[static_cast<size_t>(i)] = bytes_;
      for (auto a = static_cast<int>(perm[static_cast<size_t>(i)]) + 1; a < shape_.rank; ++a)
        stride_[static_cast<size_t>(i)] *= s.in[0].shape[a];
    }
  }
  void run(const Call& c) const override {
    std::array<int64_t, kMaxRank> index{};
    const int64_t n = shape_.elements();
    const char* from = c.in[0].as<char>();
    for (int64_t e = 0; e < n; ++e) {
      int64_t offset = 0;
      for (size_t i = 0; i < static_cast<size_t>(shape_.rank); ++i) offset += index[i] * stride_[i];
      std::memcpy(c.out[0].as<char>() + e * bytes_, from + offset, static_cast<size_t>(bytes_));
      for (int i = shape_.rank - 1; i >= 0; --i) {
        if (++index[static_cast<size_t>(i)] < shape_[i]) break;
        index[static_cast<size_t>(i)] = 0;
      }
    }
  }

 private:
  Shape shape_;
  int64_t bytes_;
  std::array<int64_t, kMaxRank> stride_{};
};

class Slice : public Kernel {
 public:
  explicit Slice(const Signature& s)
      : x_(in_bytes(Around(s.in[0].shape, s.attrs->integer("axis")), s.in[0].dtype)),
        y_(in_bytes(Around(s.out[0].shape, s.attrs->integer("axis")), s.in[0].dtype)),
        begin_(s.attrs->integer("begin")) {}
  void run(const Call& c) const override {
    copy(c.in[0].as<char>(), x_, begin_, c.out[0].as<char>(), y_, 0, y_.size);
  }

 private:
  Around x_, y_;
  int64_t begin_;
};

class SliceGrad : public Kernel {
 public:
  explicit SliceGrad(const Signature& s)
      : dy_(in_bytes(Around(s.in[0].shape, s.attrs->integer("axis")), s.in[0].dtype)),
        dx_(in_bytes(Around(s.out[0].shape, s.attrs->integer("axis")), s.in[0].dtype)),
        begin_(s.attrs->integer("begin")) {}
  void run(const Call& c) const override {
    std::memset(c.out[0].data, 0, static_cast<size_t>(c.out[0].desc.bytes()));
    copy(c.in[0].as<char>(), dy_, 0, c.out[0].as<char>(), dx_, begin_, dy_.size);
  }

 private:
  Around dy_, dx_;
  int64_t begin_;
};

class Concat : public Kernel {
 public:
  explicit Concat(const Signature& s)
      : axis_(s.attrs->integer("axis")), y_(in_bytes(Around(s.out[0].shape, axis_), s.out[0].dtype)) {}
  void run(const Call& c) const override {
    int64_t to = 0;
    for (const Tensor& x : c.in) {
      if (!x) continue;
      const Around a = in_bytes(Around(x.desc.shape, axis_), x.desc.dtype);
      copy(x.as<char>(), a, 0, c.out[0].as<char>(), y_, to, a.size);
      to += a.size;
    }
  }

 private:
  int64_t axis_;
  Around y_;
};

class Cast : public Kernel {
 public:
  explicit Cast(const Signature&) {}
  void run(const Call& c) const override {
    const int64_t n = c.in[0].desc.shape.elements();
    for (int64_t i = 0; i < n; ++i) set(c.out[0], i, at(c.in[0], i));
  }
};

class Dequantise : public Kernel {
 public:
  explicit Dequantise(const Signature& s)
      : row_(format(s.in[0].dtype)),
        codec_(formats::codec(s.in[0].dtype)),
        count_(s.in[0].shape.elements()) {}
  void run(const Call& c) const override {
    float numbers[formats::kMostBlock];
    const char* block = c.in[0].as<char>();
    for (int64_t at = 0; at < count_; at += row_.block, block += row_.block_bytes()) {
      const int64_t here = std::min(row_.block, count_ - at);
      codec_.decode(block, here, numbers);
      for (int64_t i = 0; i < here; ++i) set(c.out[0], at + i, numbers[i]);
    }
  }

 private:
  const Format& row_;
  const formats::Codec& codec_;
  int64_t count_;
};

}  // namespace

std::unique_ptr<Kernel> make_dequantise(const Signature& s) {
  if (format(s.in[0].dtype).read != Read::kDequantised || s.in[0].packed_bytes > 0) return nullptr;
  return std::make_unique<Dequantise>(s);
}
std::unique_ptr<Kernel> make_reshape(const Signature& s) { return make_any<Reshape>(s, "A", "A"); }
std::unique_ptr<Kernel> make_transpose(const Signature& s) { return make_any<Transpose>(s, "A", "A"); }
std::unique_ptr<Kernel> make_slice(const Signature& s) { return make_any<Slice>(s, "A", "A"); }
std::unique_ptr<Kernel> make_slice_grad(const Signature& s) { return make_any<SliceGrad>(s, "F", "F"); }
std::unique_ptr<Kernel> make_concat(const Signature& s) { return make_any<Concat>(s, "AAAAAAAA", "A"); }
std::unique_ptr<Kernel> make_cast(const Signature& s) {
  return make_any<Cast>(s, s.in[0].dtype == DType::kI32 ? "I" : "F", "F");
}

}  // namespace cairn::kernels::reference
