// The fused loss over a vocabulary: logits exist for one chunk of rows at a time, become their own gradient
// in place, and are multiplied into dx and dw before the next chunk.
#include <algorithm>
#include <memory>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gemm/bf16/forward.h"
#include "kernels/cpu/losses.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/vocabulary/logits.h"
#include "kernels/cpu/vocabulary/products.h"
#include "kernels/cpu/widened.h"

namespace cairn::kernels::cpu {
namespace {

// What is kept of each row until all are done: its loss and, where accuracy is asked for, whether it is a hit.
struct RowSums {
  double* losses;
  Hit* hits;  // may be null
};
struct RowSpace {
  int64_t losses_at = 0, hits_at = -1;
  size_t hits = 0;  // the output with the hits; their count is the next output

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
void chunk_losses(const Call& call, const HeadSizes& z, const LogitRows& shape, const Targets& t,
                  int64_t first, int64_t count, char* logits, bool gradient, const RowSums& sums) {
  const int64_t bytes = dtype_bytes(z.logits);
  parallel_for(count, row_grain(z.vocab), [&](int64_t b, int64_t e, int thread) {
    for (int64_t r = b; r < e; ++r) {
      char* row = logits + r * z.ld * bytes;
      shape.make(call, row, thread);
      if (sums.hits != nullptr) sums.hits[first + r] = hit_step(t, first + r, z.logits, row);
      sums.losses[first + r] =
          cross_entropy_step(t, first + r, z.logits, z.logits, row, gradient ? row : nullptr);
      if (!gradient) continue;
      shape.slope(call, row, thread);
      std::fill(row + z.vocab * bytes, row + z.ld * bytes, 0);
    }
  });
}

bool operands_fit(const Signature& s, bool gradient) {
  if (s.in[2].dtype != DType::kI32 || (s.has_in(3) && !plain_f32(s.in[3]))) return false;
  if (const size_t i = gradient ? 6 : 4; s.has_in(i) && !plain_f32(s.in[i])) return false;
  if (!gradient) return true;
  return (s.out.size() < 3 || !s.has_out(2) || s.out[2].dtype == s.in[0].dtype) &&
         (s.out.size() < 4 || !s.has_out(3) || plain_f32(s.out[3]));
}

// The products, and the buffers that they need. dx in 16 bits is summed in float32: all of it by float_products(), a
// chunk of rows at a time by bf16_products().
struct Head {
  std::unique_ptr<HeadProducts> products;
  LogitRows shape;
  RowSpace rows;
  bool gradient, by_chunk;
  DType dx_type;
  int64_t dx_at = -1;
  size_t class_weights;  // the operand
  float smoothing;

  Head(const Signature& s, std::unique_ptr<HeadProducts> with, bool with_gradient, bool chunks)
      : products(std::move(with)),
        shape(s, products->z, with_gradient, &products->space),
        gradient(with_gradient),
        by_chunk(chunks),
        dx_type(s.in[0].dtype),
        class_weights(with_gradient ? 6 : 4),
        smoothing(s.attrs != nullptr ? static_cast<float>(s.attrs->real("smoothing")) : 0.0f) {
    const HeadSizes& z = products->z;
    rows = RowSpace(s, z.rows, gradient, &products->space);
    // Both ways have room for it whether dx is asked for or not, the way in float32 in the forward op, too.
    if (by_chunk ? gradient : dx_type != DType::kF32)
      dx_at = products->space.add((by_chunk ? z.chunk : z.rows) * z.width * 4);
  }

  void run(const Call& call) const {
    const HeadSizes& z = products->z;
    const Targets t{input<const int32_t>(call, 2),
                    input<const float>(call, 3),
                    z.vocab,
                    z.ignore,
                    gradient_scale(call, 5),
                    input<const float>(call, class_weights),
                    smoothing};
    const RowSums sums = rows.in(call.workspace);
    char* dx = gradient ? output<char>(call, 2) : nullptr;
    float* dw = gradient ? output<float>(call, 3) : nullptr;
    products->begin(call);
    for (int64_t r = 0; r < z.rows; r += z.chunk) {
      const int64_t count = z.count(r);
      chunk_losses(call, z, shape, t, r, count, products->logits(call, r), dx != nullptr || dw != nullptr,
                   sums);
      if (dx != nullptr) {
        float* const to = dx_at < 0 ? reinterpret_cast<float*>(dx) + r * z.width : sums_of(call, r);
        products->input_gradient(call, r, to, false);
        if (by_chunk) narrow(to, dx + r * z.width * dtype_bytes(dx_type), count * z.width);
      }
      if (dw != nullptr) products->weight_gradient(call, r, dw, r > 0 || accumulates(call, 3));
    }
    if (dx != nullptr && dx_at >= 0 && !by_chunk) narrow(sums_of(call, 0), dx, z.rows * z.width);
    rows.finish(call, t, z.rows);
  }

 private:
  float* sums_of(const Call& call, int64_t r) const {
    return Workspace::at<float>(call.workspace, dx_at) + (by_chunk ? 0 : r * products->z.width);
  }
  void narrow(const float* from, char* to, int64_t count) const {
    parallel_for(count, kGrain, [&](int64_t b, int64_t e, int) {
      convert(DType::kF32, dx_type, false, from + b, to + b * dtype_bytes(dx_type), e - b);
    });
  }
};

std::unique_ptr<Kernel> make_head(const Signature& s, std::unique_ptr<HeadProducts> products, bool gradient,
                                  bool by_chunk) {
  auto head = std::make_shared<Head>(s, std::move(products), gradient, by_chunk);
  const int64_t bytes = head->products->space.bytes();
  return make_kernel([head](const Call& call) { head->run(call); }, bytes);
}

std::unique_ptr<Kernel> make_plain(const Signature& s, bool gradient) {
  if (!fast_float(s.in[0]) || !float_weight(s.in[1], s.in[0].dtype) || !operands_fit(s, gradient))
    return nullptr;
  return make_head(s, float_products(s, true), gradient, false);
}

// bfloat16 on the tiles. Logits are rounded to bfloat16; losses and softmax are taken in float32 from there.
std::unique_ptr<Kernel> make_bf16(const Signature& s, bool gradient) {
  if (!has_bf16_products() || !is_bf16(s.in[0]) || !weight_fits(s.in[1]) || !operands_fit(s, gradient))
    return nullptr;
  const bool own_grad_weight = gradient && s.has_in(4);
  if (own_grad_weight && s.in[4].packed_bytes == 0) return nullptr;
  // The gradient for x needs the weight packed the other way, or plain.
  if (gradient && s.has_out(2) && !own_grad_weight && s.in[1].packed_bytes > 0) return nullptr;
  return make_head(s, bf16_products(s, gradient, own_grad_weight), gradient, true);
}

}  // namespace

std::unique_ptr<Kernel> make_linear_cross_entropy_bf16(const Signature& s) { return make_bf16(s, false); }
std::unique_ptr<Kernel> make_linear_cross_entropy_grad_bf16(const Signature& s) { return make_bf16(s, true); }
std::unique_ptr<Kernel> make_linear_cross_entropy_f32(const Signature& s) { return make_plain(s, false); }
std::unique_ptr<Kernel> make_linear_cross_entropy_grad_f32(const Signature& s) { return make_plain(s, true); }

}  // namespace cairn::kernels::cpu
