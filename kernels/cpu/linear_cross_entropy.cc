// The fused loss over a vocabulary: logits exist for one chunk of rows at a time, become their own gradient
// in place, and are multiplied into dx and dw before the next chunk.
#include <algorithm>
#include <memory>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gemm/bf16/forward.h"
#include "kernels/cpu/gemm/epilogue.h"
#include "kernels/cpu/gemm/float_product.h"
#include "kernels/cpu/losses.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/widened.h"
#include "kernels/cpu/workspace.h"

namespace cairn::kernels::cpu {
namespace {

// dw is read and written, and the weight read, once per chunk, so chunks are large: up to so many logits.
constexpr int64_t kChunkLogits = 16 << 20;

struct Sizes {
  int64_t rows, width, vocab, chunk, ld;  // ld: elements from one row of logits to the next
  int64_t ignore;
  DType logits;  // what they are stored as

  Sizes(const Signature& s, DType logits_as)
      : rows(s.in[0].shape.rows()), width(s.in[0].shape.last()), vocab(s.in[1].shape[0]), logits(logits_as) {
    ld = logits == DType::kBF16 ? round_up(vocab, kTileK) : vocab;
    ignore = s.attrs != nullptr ? s.attrs->integer("ignore_index", -100) : -100;
    chunk = s.attrs != nullptr ? s.attrs->integer("chunk", 0) : 0;
    if (chunk <= 0) {
      const int64_t most = std::max<int64_t>(32, kChunkLogits / ld / 32 * 32);
      const int64_t chunks = (rows + most - 1) / most;
      chunk = round_up((rows + chunks - 1) / chunks, 32);
    }
    chunk = std::min(chunk, rows);
  }
};

// What is kept of each row until all are done: its loss and, where accuracy is asked for, whether it is a hit.
struct RowSums {
  double* losses;
  Hit* hits;  // may be null
};
struct RowSpace {
  int64_t losses_at = 0, hits_at = -1;
  size_t hits = 0;  // the output that they are; the count is behind it

  RowSpace() = default;
  RowSpace(const Signature& s, int64_t rows, bool gradient, Workspace* space)
      : losses_at(space->add(rows * 8)), hits(gradient ? 4 : 2) {
    if (s.has_out(hits) || s.has_out(hits + 1)) hits_at = space->add(rows);
  }
  RowSums in(void* workspace) const {
    return {Workspace::at<double>(workspace, losses_at),
            hits_at >= 0 ? Workspace::at<Hit>(workspace, hits_at) : nullptr};
  }
  void finish(const Call& call, const Targets& t, int64_t rows) const {
    const RowSums sums = in(call.workspace);
    sum_losses(t, rows, sums.losses, output<double>(call, 0), output<double>(call, 1));
    if (sums.hits != nullptr)
      sum_hits(sums.hits, rows, output<double>(call, hits), output<double>(call, hits + 1));
  }
};

// Losses and hits of the chunk's rows; with `gradient` the logits become dlogits, their padding zero.
void chunk_losses(const Sizes& z, const Targets& t, int64_t first, int64_t count, char* logits, bool gradient,
                  const RowSums& sums) {
  const int64_t bytes = dtype_bytes(z.logits);
  parallel_for(count, row_grain(z.vocab), [&](int64_t b, int64_t e, int) {
    for (int64_t r = b; r < e; ++r) {
      char* row = logits + r * z.ld * bytes;
      if (sums.hits != nullptr) sums.hits[first + r] = hit_step(t, first + r, z.logits, row);
      sums.losses[first + r] =
          cross_entropy_step(t, first + r, z.logits, z.logits, row, gradient ? row : nullptr);
      if (gradient) std::fill(row + z.vocab * bytes, row + z.ld * bytes, 0);
    }
  });
}

bool operands_fit(const Signature& s, bool gradient) {
  if (s.in[2].dtype != DType::kI32 || (s.has_in(3) && !plain_f32(s.in[3]))) return false;
  if (!gradient) return true;
  return (s.out.size() < 3 || !s.has_out(2) || s.out[2].dtype == s.in[0].dtype) &&
         (s.out.size() < 4 || !s.has_out(3) || plain_f32(s.out[3]));
}

// Products in float32: for a whole chunk and for the rows left over. bfloat16 activations are widened first.
struct PlainChunk {
  FloatProduct logits, dx, write_dw, add_dw;
  // x, w: how many parts a number of them has (ProductShape).
  PlainChunk(const Sizes& z, int64_t m, int x, int w, int threads)
      : logits({.m = m, .n = z.vocab, .k = z.width, .transpose_b = true, .parts_a = x, .parts_b = w},
               threads),
        dx({.m = m, .n = z.width, .k = z.vocab, .parts_b = w}, threads),
        write_dw({.m = z.vocab, .n = z.width, .k = m, .transpose_a = true, .parts_b = x}, threads),
        add_dw({.m = z.vocab, .n = z.width, .k = m, .transpose_a = true, .add = true, .parts_b = x},
               threads) {}
  int64_t scratch_bytes() const {
    return std::max(
        {logits.scratch_bytes(), dx.scratch_bytes(), write_dw.scratch_bytes(), add_dw.scratch_bytes()});
  }
};

std::unique_ptr<Kernel> make_plain(const Signature& s, bool gradient) {
  if (!fast_float(s.in[0]) || !fast_float(s.in[1]) || !operands_fit(s, gradient)) return nullptr;
  const Sizes z(s, DType::kF32);
  Workspace space;
  const int x_parts = float_parts(s.in[0].dtype), w_parts = float_parts(s.in[1].dtype);
  auto whole = std::make_shared<PlainChunk>(z, z.chunk, x_parts, w_parts, s.threads);
  std::shared_ptr<PlainChunk> rest;
  if (z.rows % z.chunk != 0)
    rest = std::make_shared<PlainChunk>(z, z.rows % z.chunk, x_parts, w_parts, s.threads);
  const int64_t logits_at = space.add(z.chunk * z.ld * 4);
  const RowSpace rows(s, z.rows, gradient, &space);
  const int64_t scratch_at = space.add(std::max(whole->scratch_bytes(), rest ? rest->scratch_bytes() : 0));
  const Widened wide_x(s.in[0], &space), wide_w(s.in[1], &space), wide_dx(s.in[0], &space);
  return make_kernel(
      [=](const Call& call) {
        const Targets t{input<const int32_t>(call, 2), input<const float>(call, 3), z.vocab, z.ignore,
                        gradient_scale(call, 5)};
        const float *x = wide_x.read(data_of(call.in, 0), call.workspace),
                    *w = wide_w.read(data_of(call.in, 1), call.workspace);
        float* logits = Workspace::at<float>(call.workspace, logits_at);
        const RowSums sums = rows.in(call.workspace);
        void* scratch = Workspace::at<char>(call.workspace, scratch_at);
        void* to_x = gradient ? data_of(call.out, 2) : nullptr;
        float* dx = to_x != nullptr ? wide_dx.target(to_x, call.workspace) : nullptr;
        float* dw = gradient ? output<float>(call, 3) : nullptr;
        for (int64_t r = 0; r < z.rows; r += z.chunk) {
          const int64_t count = std::min(z.chunk, z.rows - r);
          const PlainChunk& products = count == z.chunk ? *whole : *rest;
          products.logits.run(x + r * z.width, w, logits, scratch);
          chunk_losses(z, t, r, count, reinterpret_cast<char*>(logits), dx != nullptr || dw != nullptr, sums);
          if (dx != nullptr) products.dx.run(logits, w, dx + r * z.width, scratch);
          if (dw != nullptr)
            (r > 0 || accumulates(call, 3) ? products.add_dw : products.write_dw)
                .run(logits, x + r * z.width, dw, scratch);
        }
        if (dx != nullptr) wide_dx.finish(to_x, call.workspace);
        rows.finish(call, t, z.rows);
      },
      space.bytes());
}

// bfloat16 on the tiles. Logits are rounded to bfloat16; losses and softmax are taken in float32 from there.
struct Bf16Loss {
  Sizes z;
  bool gradient, packed_grad;
  TensorDesc weight;
  Workspace space;
  RowSpace rows;
  int64_t logits_at, forward_at, grad_at = -1, grad_rows = 0, dx_at = 0, x_at = 0, shares_at = 0, share = 0;
  Bf16Forward whole, rest;  // `rest`: for the rows left over

  Bf16Loss(const Signature& s, bool with_gradient)
      : z(s, DType::kBF16),
        gradient(with_gradient),
        packed_grad(s.has_in(4)),
        weight(s.in[1]),
        whole(z.chunk, z.vocab, z.width, weight, true, s.threads),
        rest(std::max<int64_t>(1, z.rows % z.chunk), z.vocab, z.width, weight, true, s.threads) {
    logits_at = space.add(z.chunk * z.ld * 2);
    rows = RowSpace(s, z.rows, gradient, &space);
    forward_at = space.add(std::max(whole.space.bytes(), rest.space.bytes()));
    if (!gradient) return;
    if (!packed_grad) {
      const int64_t steps = std::max<int64_t>(1, kSliceBytes / packed_b_bytes(z.width, kTileK));
      grad_rows = std::min(z.ld, steps * kTileK);
      grad_at = space.add(packed_b_bytes(z.width, grad_rows));
    }
    dx_at = space.add(z.chunk * z.width * 4);
    x_at = space.add(packed_b_bytes(z.width, z.chunk));
    share = grad_weight_space(z.chunk);
    shares_at = space.add(s.threads * share);
  }

  void run(const Call& call) const {
    const Targets t{input<const int32_t>(call, 2), input<const float>(call, 3), z.vocab, z.ignore,
                    gradient_scale(call, 5)};
    const bf16* x = input<const bf16>(call, 0);
    bf16* logits = space.at<bf16>(call.workspace, logits_at);
    const RowSums sums = rows.in(call.workspace);
    bf16* dx = gradient ? output<bf16>(call, 2) : nullptr;
    float* dw = gradient ? output<float>(call, 3) : nullptr;
    for (int64_t r = 0; r < z.rows; r += z.chunk) {
      const int64_t count = std::min(z.chunk, z.rows - r);
      const LinearEpilogue store(Activation::kNone, nullptr, logits, nullptr, z.ld);
      (count == z.chunk ? whole : rest)
          .run(space.at<char>(call.workspace, forward_at), x + r * z.width, data_of(call.in, 1), store);
      chunk_losses(z, t, r, count, reinterpret_cast<char*>(logits), dx != nullptr || dw != nullptr, sums);
      if (dx != nullptr) grad_input(call, logits, count, dx + r * z.width);
      if (dw != nullptr) grad_weight(call, logits, x + r * z.width, count, dw, r > 0 || accumulates(call, 3));
    }
    rows.finish(call, t, z.rows);
  }

  // A plain weight is packed by slices of its rows, each added to the sums of those before it.
  void grad_input(const Call& call, const bf16* dlogits, int64_t count, bf16* dx) const {
    float* sums = space.at<float>(call.workspace, dx_at);
    if (packed_grad) {
      grad_product(call, row_major(dlogits, z.ld, input<const bf16>(call, 4), z.ld), count, sums, false);
    } else {
      bf16* const slice = space.at<bf16>(call.workspace, grad_at);
      const char* const w = input<const char>(call, 1);
      for (int64_t k = 0; k < z.vocab; k += grad_rows) {
        const int64_t rows = std::min(grad_rows, z.vocab - k), steps = round_up(rows, kTileK);
        pack_panels(weight, false, w + k * z.width * dtype_bytes(weight.dtype), z.width, rows, slice);
        grad_product(call, row_major(dlogits + k, z.ld, slice, steps), count, sums, k > 0);
      }
    }
    parallel_for(count * z.width, kGrain, [&](int64_t b, int64_t e, int) {
      convert(DType::kF32, DType::kBF16, false, sums + b, dx + b, e - b);
    });
  }

  void grad_product(const Call& call, const GemmOperands& g, int64_t count, float* sums, bool add) const {
    const auto product = [&](int64_t m0, int64_t m1, int64_t p0, int64_t p1, int thread) {
      char* scratch = space.at<char>(call.workspace, shares_at) + thread * share;
      bf16_gemm_f32(g, m0, m1, z.width, p0, p1, reinterpret_cast<float*>(scratch), sums, z.width, add);
    };
    if (count >= 64 * thread_count())
      parallel_for(count, 32, [&](int64_t b, int64_t e, int t) { product(b, e, 0, panels(z.width), t); });
    else
      parallel_for(panels(z.width), 1, [&](int64_t b, int64_t e, int t) { product(0, count, b, e, t); });
  }

  void grad_weight(const Call& call, const bf16* dlogits, const bf16* x, int64_t count, float* dw,
                   bool add) const {
    bf16* packed_x = space.at<bf16>(call.workspace, x_at);
    char* shares = space.at<char>(call.workspace, shares_at);
    parallel_for(panels(z.width), 1,
                 [&](int64_t b, int64_t e, int) { pack_b(x, z.width, z.width, count, packed_x, b, e); });
    parallel_for(z.vocab, 32, [&](int64_t b, int64_t e, int t) {
      bf16_grad_weight(dlogits, z.ld, packed_x, count, b, e, z.width, dw, add, shares + t * share);
    });
  }
};

std::unique_ptr<Kernel> make_bf16(const Signature& s, bool gradient) {
  if (!has_bf16_products() || !is_bf16(s.in[0]) || !weight_fits(s.in[1]) || !operands_fit(s, gradient))
    return nullptr;
  if (s.has_in(4) && s.in[4].packed_bytes == 0) return nullptr;
  // The gradient for x needs the weight packed the other way, or plain.
  if (gradient && s.has_out(2) && !s.has_in(4) && s.in[1].packed_bytes > 0) return nullptr;
  auto loss = std::make_shared<Bf16Loss>(s, gradient);
  const int64_t bytes = loss->space.bytes();
  return make_kernel([loss](const Call& call) { loss->run(call); }, bytes);
}

}  // namespace

std::unique_ptr<Kernel> make_linear_cross_entropy_bf16(const Signature& s) { return make_bf16(s, false); }
std::unique_ptr<Kernel> make_linear_cross_entropy_grad_bf16(const Signature& s) { return make_bf16(s, true); }
std::unique_ptr<Kernel> make_linear_cross_entropy_f32(const Signature& s) { return make_plain(s, false); }
std::unique_ptr<Kernel> make_linear_cross_entropy_grad_f32(const Signature& s) { return make_plain(s, true); }

}  // namespace cairn::kernels::cpu
