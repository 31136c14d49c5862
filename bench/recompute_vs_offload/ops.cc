#include "bench/recompute_vs_offload/ops.h"

#include "kernels/registry.h"

namespace cairn::bench {
namespace {

constexpr int64_t kWidth = 768, kHeads = 12, kVocab = 50304;
constexpr int64_t kRows[] = {64, 256, 1024, 4096};
constexpr int64_t kMaxLogitRows = 1024;  // 206 MB of them in f32
constexpr int64_t kWidths[] = {192, 3072};

double total_bytes(const std::vector<TensorDesc>& descs) {
  double sum = 0;
  for (const TensorDesc& d : descs) sum += static_cast<double>(d.bytes());
  return sum;
}

struct Builder {
  DType compute;
  int threads;
  std::vector<Remade> made = {};

  TensorDesc act(Shape s) const { return {compute, s, 0}; }
  static TensorDesc f32(Shape s) { return {DType::kF32, s, 0}; }

  Remade& add(std::string name, const char* op, int64_t rows, std::vector<TensorDesc> in,
              std::vector<TensorDesc> out, Attrs attrs = {}) {
    const double freed = total_bytes(out);
    Case c{op, op, in, out, ~0u, ~0u, 0, std::move(attrs), 1, 0, total_bytes(in) + freed, false};
    for (size_t i = 0; i < in.size(); ++i)
      if (in[i].shape.rank == 0) c.in_present &= ~(1u << i);
    return made.emplace_back(Remade{std::move(c), std::move(name), rows, static_cast<int64_t>(freed)});
  }

  Remade& linear(int64_t rows, int64_t k, int64_t n, const char* note = "") {
    TensorDesc w = f32({n, k});
    const double plain = static_cast<double>(n * k) * dtype_bytes(compute);
    if (const int64_t bytes = kernels::cpu_registry().packed_bytes(w, "forward", rows, compute, threads)) {
      w.dtype = DType::kOpaque;
      w.packed_bytes = bytes;
    }
    Remade& r = add("linear " + std::to_string(k) + "->" + std::to_string(n) + note, "linear", rows,
                    {act({1, rows, k}), w, f32({n})}, {act({1, rows, n})}, {{"activation", std::string()}});
    r.op.flops = 2.0 * static_cast<double>(rows) * static_cast<double>(n * k);
    r.op.bytes +=
        plain - static_cast<double>(w.bytes());  // a device without packed weights reads the weight itself
    return r;
  }

  void rows(int64_t t) {
    const TensorDesc x = act({1, t, kWidth}), wide = act({1, t, 4 * kWidth}), vector = f32({kWidth}),
                     row = f32({1, t});
    linear(t, kWidth, 4 * kWidth);
    linear(t, 4 * kWidth, kWidth);
    if (t <= kMaxLogitRows) linear(t, kWidth, kVocab, " (cross-entropy's input)");
    const TensorDesc none{DType::kU8, {}, 0};
    add("attention", "attention", t, {act({1, t, 3 * kWidth}), none, none}, {x, f32({1, kHeads, t})},
        {{"heads", kHeads}})
        .op.flops = 2.0 * static_cast<double>(t * t * kWidth);  // two products, the causal half of each
    add("layer norm", "layernorm", t, {x, vector, vector}, {x, row, row});
    add("gelu", "gelu", t, {wide}, {wide});
    add("silu", "silu", t, {wide}, {wide});
    add("swiglu", "swiglu", t, {wide, wide}, {wide});
    add("residual add", "add", t, {x, x}, {x});
    Remade& e = add("embedding", "embedding", t, {f32({kVocab, kWidth}), {DType::kI32, {1, t}, 0}}, {x},
                    {{"dtype", std::string(dtype_name(compute))}});
    e.op.bytes = static_cast<double>(t) * (4 + 4 * kWidth) + static_cast<double>(x.bytes());
  }
};

}  // namespace

std::vector<Remade> remade_ops(DType compute, int threads) {
  Builder b{compute, threads};
  for (int64_t t : kRows) b.rows(t);
  for (int64_t width : kWidths) b.linear(1024, width, width);
  return std::move(b.made);
}

Case covering_op(DType compute, int threads) {
  return Builder{compute, threads}.linear(1024, kWidth, 4 * kWidth).op;
}

}  // namespace cairn::bench
