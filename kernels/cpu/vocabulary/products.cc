#include "kernels/cpu/vocabulary/products.h"

#include <algorithm>
#include <numeric>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gemm/bf16/forward.h"
#include "kernels/cpu/gemm/epilogue.h"
#include "kernels/cpu/gemm/float_product.h"
#include "kernels/cpu/gemm/gemm_block.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/softmax.h"
#include "kernels/cpu/widened.h"

namespace cairn::kernels::cpu {
namespace {

// dw is read and written, and the weight read, once per chunk, so chunks are large: up to so many logits.
constexpr int64_t kChunkLogits = 16 << 20;

// For a full chunk, and for the rows that are left.
struct FloatChunk {
  WeightProduct logits, dx, add_dx;
  FloatProduct write_dw, add_dw;
  // x, w: how many parts a number of them has (ProductShape).
  FloatChunk(const HeadSizes& z, int64_t m, int x, int w, const Signature& s)
      : logits({.m = m, .n = z.n, .k = z.width, .transpose_b = true, .parts_a = x, .parts_b = w}, s.in[1],
               s.in[0].dtype, s.threads),
        dx({.m = m, .n = z.width, .k = z.n, .whole_k = z.vocab, .parts_b = w}, s.in[1], s.in[0].dtype,
           s.threads),
        add_dx({.m = m, .n = z.width, .k = z.n, .add = true, .whole_k = z.vocab, .parts_b = w}, s.in[1],
               s.in[0].dtype, s.threads),
        write_dw({.m = z.n, .n = z.width, .k = m, .transpose_a = true, .parts_b = x}, s.threads),
        add_dw({.m = z.n, .n = z.width, .k = m, .transpose_a = true, .add = true, .parts_b = x}, s.threads) {}
  int64_t scratch_bytes(bool gradients) const {
    return gradients ? std::max({logits.scratch_bytes(), dx.scratch_bytes(), write_dw.scratch_bytes(),
                                 add_dw.scratch_bytes()})
                     : logits.scratch_bytes();
  }
};

class FloatHead : public HeadProducts {
 public:
  FloatHead(const Signature& s, bool gradients)
      : HeadProducts({s, DType::kF32}),
        whole_(z, z.chunk, float_parts(s.in[0].dtype), weight_parts(s.in[1]), s),
        rest_(z, std::max<int64_t>(1, z.rows % z.chunk), float_parts(s.in[0].dtype), weight_parts(s.in[1]),
              s),
        logits_at_(space.add(z.chunk * z.ld * 4)),
        scratch_at_(space.add(std::max(whole_.scratch_bytes(gradients),
                                       z.rows % z.chunk != 0 ? rest_.scratch_bytes(gradients) : 0))),
        x_(s.in[0], &space) {}

  void begin(const Call& call) const override { x_.read(data_of(call.in, 0), call.workspace); }
  char* logits(const Call& call, int64_t r) const override {
    at(r).logits.run(x(call, r), data_of(call.in, 1), dlogits(call), scratch(call));
    return reinterpret_cast<char*>(dlogits(call));
  }
  void input_gradient(const Call& call, int64_t r, float* dx, bool add) const override {
    (add ? at(r).add_dx : at(r).dx).run(dlogits(call), data_of(call.in, 1), dx, scratch(call));
  }
  void weight_gradient(const Call& call, int64_t r, float* dw, bool add) const override {
    (add ? at(r).add_dw : at(r).write_dw).run(dlogits(call), x(call, r), dw, scratch(call));
  }

 private:
  const FloatChunk& at(int64_t r) const { return z.count(r) == z.chunk ? whole_ : rest_; }
  const float* x(const Call& call, int64_t r) const {  // as begin() made it
    return x_.target(data_of(call.in, 0), call.workspace) + r * z.width;
  }
  float* dlogits(const Call& call) const { return space.at<float>(call.workspace, logits_at_); }
  void* scratch(const Call& call) const { return space.at<char>(call.workspace, scratch_at_); }

  const FloatChunk whole_, rest_;
  const int64_t logits_at_, scratch_at_;
  const Widened x_;
};

// Rows of a plain weight that are packed at once for the input's gradient.
int64_t packed_rows(int64_t width, int64_t ld) {
  const int64_t steps = std::max<int64_t>(1, kSliceBytes / packed_b_bytes(width, kTileK));
  return std::min(ld, steps * kTileK);
}

class Bf16Head : public HeadProducts {
 public:
  Bf16Head(const Signature& s, bool gradients, bool packed_grad)
      : HeadProducts({s, DType::kBF16}),
        packed_grad_(packed_grad),
        weight_(s.in[1]),
        whole_(z.chunk, z.n, z.width, weight_, true, s.threads),
        rest_(std::max<int64_t>(1, z.rows % z.chunk), z.n, z.width, weight_, true, s.threads) {
    logits_at_ = space.add(z.chunk * z.ld * 2);
    forward_at_ = space.add(std::max(whole_.space.bytes(), rest_.space.bytes()));
    if (!gradients) return;
    if (!packed_grad_) {
      grad_rows_ = packed_rows(z.width, z.ld);
      grad_at_ = space.add(packed_b_bytes(z.width, grad_rows_));
    }
    x_at_ = space.add(packed_b_bytes(z.width, z.chunk));
    share_ = grad_weight_space(z.chunk);
    shares_at_ = space.add(s.threads * share_);
  }

  char* logits(const Call& call, int64_t r) const override {
    const LinearEpilogue store(Activation::kNone, nullptr, dlogits(call), nullptr, z.ld);
    (z.count(r) == z.chunk ? whole_ : rest_)
        .run(space.at<char>(call.workspace, forward_at_), input<const bf16>(call, 0) + r * z.width,
             data_of(call.in, 1), store);
    return reinterpret_cast<char*>(dlogits(call));
  }

  // A plain weight is packed by slices of its rows, each added to the sums of those before it.
  void input_gradient(const Call& call, int64_t r, float* dx, bool add) const override {
    const int64_t count = z.count(r);
    const bf16* const from = dlogits(call);
    if (packed_grad_)
      return grad_product(call, row_major(from, z.ld, input<const bf16>(call, 4), z.ld), count, dx, add);
    bf16* const slice = space.at<bf16>(call.workspace, grad_at_);
    for (int64_t k = 0; k < z.n; k += grad_rows_) {
      const int64_t rows = std::min(grad_rows_, z.n - k), steps = round_up(rows, kTileK);
      pack_panels({weight_.dtype, false, data_of(call.in, 1), z.width, rows, k * z.width}, slice, 0,
                  panels(z.width));
      grad_product(call, row_major(from + k, z.ld, slice, steps), count, dx, add || k > 0);
    }
  }

  void weight_gradient(const Call& call, int64_t r, float* dw, bool add) const override {
    const int64_t count = z.count(r);
    const bf16 *const from = dlogits(call), *const x = input<const bf16>(call, 0) + r * z.width;
    bf16* packed_x = space.at<bf16>(call.workspace, x_at_);
    char* shares = space.at<char>(call.workspace, shares_at_);
    parallel_for(panels(z.width), 1,
                 [&](int64_t b, int64_t e, int) { pack_b(x, z.width, z.width, count, packed_x, b, e); });
    parallel_for(z.n, 32, [&](int64_t b, int64_t e, int t) {
      bf16_grad_weight(from, z.ld, packed_x, count, b, e, z.width, dw, add, shares + t * share_);
    });
  }

 private:
  bf16* dlogits(const Call& call) const { return space.at<bf16>(call.workspace, logits_at_); }
  void grad_product(const Call& call, const GemmOperands& g, int64_t count, float* sums, bool add) const {
    const auto product = [&](int64_t m0, int64_t m1, int64_t p0, int64_t p1, int thread) {
      char* scratch = space.at<char>(call.workspace, shares_at_) + thread * share_;
      bf16_gemm_f32(g, m0, m1, z.width, p0, p1, reinterpret_cast<float*>(scratch), sums, z.width, add);
    };
    if (count >= 64 * thread_count())
      parallel_for(count, 32, [&](int64_t b, int64_t e, int t) { product(b, e, 0, panels(z.width), t); });
    else
      parallel_for(panels(z.width), 1, [&](int64_t b, int64_t e, int t) { product(0, count, b, e, t); });
  }

  bool packed_grad_;
  TensorDesc weight_;
  Bf16Forward whole_, rest_;  // `rest_`: for the rows left over
  int64_t logits_at_, forward_at_, grad_at_ = -1, grad_rows_ = 0, x_at_ = 0, shares_at_ = 0, share_ = 0;
};

}  // namespace

HeadSizes::HeadSizes(const Signature& s, DType logits_as)
    : rows(s.in[0].shape.rows()), width(s.in[0].shape.last()), n(s.in[1].shape[0]), logits(logits_as) {
  const auto given = [&](std::string_view name, int64_t otherwise) {
    return s.attrs != nullptr ? s.attrs->integer(name, otherwise) : otherwise;
  };
  first = given("first", 0);
  vocab = given("vocab", n);
  const auto stored = [&](int64_t count) { return logits == DType::kBF16 ? round_up(count, kTileK) : count; };
  ld = stored(n);
  ignore = given("ignore_index", -100);
  chunk = given("chunk", 0);
  if (chunk <= 0) {
    const int64_t most = std::max<int64_t>(32, kChunkLogits / stored(vocab) / 32 * 32);
    const int64_t chunks = (rows + most - 1) / most;
    chunk = round_up((rows + chunks - 1) / chunks, 32);
  }
  chunk = std::min(chunk, rows);
}

std::unique_ptr<HeadProducts> float_products(const Signature& s, bool gradients) {
  return std::make_unique<FloatHead>(s, gradients);
}
std::unique_ptr<HeadProducts> bf16_products(const Signature& s, bool gradients, bool packed_grad) {
  return std::make_unique<Bf16Head>(s, gradients, packed_grad);
}

int64_t head_unit(const Signature& whole) {
  constexpr int64_t kLeast =
      256;  // a product of so many rows is computed in the same way as one of the full vocabulary
  if (!fast_float(whole.in[0]) || !fast_float(whole.in[1])) return 0;
  const bool narrow = has_bf16_products() && is_bf16(whole.in[0]);
  const HeadSizes z(whole, narrow ? DType::kBF16 : DType::kF32);
  int64_t unit = lanes_of_exponentials();
  const auto both = [&](int64_t other) { unit = std::lcm(unit, other); };
  const bool whole_columns = z.width % kPanel == 0;
  if (narrow || has_amx()) both(kPanel);  // blocks at edges are summed another way than those inside
  if (narrow) {
    if (!whole_columns) both(packed_rows(z.width, z.ld));
  } else {
    for (const int64_t m : {z.chunk, z.rows % z.chunk}) {
      if (m == 0) continue;
      const FloatProduct dx({.m = m, .n = z.width, .k = z.vocab}, whole.threads);
      // On the tiles a sum may stop inside of a block and continue with the next part; elsewhere parts must end with blocks.
      if (!dx.on_tiles())
        both(gemm_block_depth(z.vocab, false));
      else if (m % 32 != 0 || !whole_columns)
        both(SplitProduct::block_depth(z.vocab));
    }
  }
  unit = (kLeast + unit - 1) / unit * unit;
  return 2 * unit <= z.vocab ? unit : 0;
}

}  // namespace cairn::kernels::cpu
