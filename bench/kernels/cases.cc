#include "bench/kernels/cases.h"

#include <cmath>
#include <cstring>

#include "kernels/registry.h"
#include "runtime/base/os/memory.h"

namespace cairn::bench {
namespace {

constexpr int64_t kBatch = 4, kLength = 256, kRows = kBatch * kLength, kWidth = 768, kVocab = 50304,
                  kLayers = 12;
constexpr double kParameters = 124.4e6;

struct Builder {
  DType compute;
  int threads;
  std::vector<Case> cases;

  TensorDesc act(Shape s) const { return {compute, s, 0}; }
  static TensorDesc f32(Shape s) { return {DType::kF32, s, 0}; }
  static TensorDesc f64(Shape s) { return {DType::kF64, s, 0}; }
  static TensorDesc i32(Shape s) { return {DType::kI32, s, 0}; }
  // The weight as kernels see it: packed where the backend packs it.
  TensorDesc weight(int64_t n, int64_t k, const char* use) const {
    TensorDesc d = f32({n, k});
    if (const int64_t bytes = kernels::cpu_registry().packed_bytes(d, use, kRows, compute, threads)) {
      d.dtype = DType::kOpaque;
      d.packed_bytes = bytes;
    }
    return d;
  }
  Case& add(std::string name, std::string op, std::vector<TensorDesc> in, std::vector<TensorDesc> out,
            double count, Attrs attrs = {}) {
    Case c{name, op, in, out, ~0u, ~0u, 0, attrs, count, 0, 0, false};
    for (size_t i = 0; i < in.size(); ++i) {
      if (in[i].shape.rank == 0 && in[i].dtype == DType::kU8) c.in_present &= ~(1u << i);
      c.bytes += static_cast<double>(in[i].bytes());
    }
    for (const TensorDesc& d : out) c.bytes += static_cast<double>(d.bytes());
    return cases.emplace_back(std::move(c));
  }
  void product(Case& c, double flops) {
    c.flops = flops;
    c.gemm = true;
  }

  // derivative: the activation in front, whose derivative the gradient of x is multiplied by.
  void linear(const char* name, int64_t k, int64_t n, const char* activation, const char* derivative = "") {
    const double flops = 2.0 * kRows * static_cast<double>(n * k);
    std::vector<TensorDesc> out{act({kBatch, kLength, n})};
    if (*activation) out.push_back(out[0]);
    const std::string shape = " " + std::to_string(k) + "->" + std::to_string(n);
    product(add(name + shape, "linear", {act({kBatch, kLength, k}), weight(n, k, "forward"), f32({n})}, out,
                kLayers, {{"activation", std::string(activation)}}),
            flops);
    const TensorDesc dx = act({kBatch, kLength, k});
    std::vector<TensorDesc> in = {act({kBatch, kLength, n}), weight(n, k, "input_grad")};
    if (*derivative) in.push_back(dx);
    product(add(name + std::string(" dx") + shape, "linear_grad_input", in, {dx}, kLayers,
                {{"activation", std::string(derivative)}}),
            flops);
    product(add(name + std::string(" dw") + shape, "linear_grad_weight",
                {act({kBatch, kLength, k}), act({kBatch, kLength, n})}, {f32({n, k}), f32({n})}, kLayers),
            flops);
    packs(n, k, kLayers);
  }
  void packs(int64_t n, int64_t k, double count) {
    for (const char* use : {"forward", "input_grad"}) {
      const TensorDesc packed = weight(n, k, use);
      if (packed.packed_bytes == 0) continue;
      add("pack " + std::string(use) + " " + std::to_string(n) + "x" + std::to_string(k), "pack_weight",
          {f32({n, k})}, {packed}, count,
          {{"use", std::string(use)}, {"m", kRows}, {"dtype", std::string(dtype_name(compute))}});
    }
  }
};

}  // namespace

std::vector<Case> gpt2_cases(DType compute, int threads) {
  Builder b{compute, threads, {}};
  const TensorDesc x = b.act({kBatch, kLength, kWidth}), wide = b.act({kBatch, kLength, 4 * kWidth});
  const TensorDesc qkv = b.act({kBatch, kLength, 3 * kWidth}), row = b.f32({kBatch, kLength}),
                   vector = b.f32({kWidth});
  const TensorDesc ids = b.i32({kBatch, kLength}), table = b.f32({kVocab, kWidth}), one = b.f64({});
  const TensorDesc lse = b.f32({kBatch, 12, kLength}), none{DType::kU8, {}, 0};
  b.linear("qkv", kWidth, 3 * kWidth, "");
  b.linear("proj", kWidth, kWidth, "");
  b.linear("fc", kWidth, 4 * kWidth, "gelu_tanh");
  b.linear("out", 4 * kWidth, kWidth, "", "gelu_tanh");
  const double head = 2.0 * kRows * static_cast<double>(kVocab * kWidth);
  const TensorDesc forward = b.weight(kVocab, kWidth, "forward"),
                   backward = b.weight(kVocab, kWidth, "input_grad");
  Case& loss =
      b.add("head loss+grad", "linear_cross_entropy_grad",
            {x, forward, ids, none, backward.packed_bytes ? backward : none}, {one, one, x, table}, 1);
  b.product(loss, 3 * head);
  b.packs(kVocab, kWidth, 1);
  const Attrs heads{{"heads", int64_t{12}}};
  const double scores = 2.0 * kBatch * 12 * kLength * kLength * 64 / 2;  // causal half
  b.add("attention", "attention", {qkv, none, none}, {x, lse}, kLayers, heads).flops = 2 * scores;
  b.add("attention_grad", "attention_grad", {x, qkv, none, none, x, lse}, {qkv}, kLayers, heads).flops =
      5 * scores;
  b.add("layernorm", "layernorm", {x, vector, vector}, {x, row, row}, 2 * kLayers + 1);
  b.add("layernorm_grad", "layernorm_grad", {x, x, vector, row, row}, {x, vector, vector}, 1);
  b.add("layernorm_grad + da", "layernorm_grad", {x, x, vector, row, row, x}, {x, vector, vector},
        2 * kLayers);
  b.add("gelu_grad", "gelu_grad", {wide, wide}, {wide}, 0);  // only where it stands alone
  b.add("residual add", "add", {x, x}, {x}, 2 * kLayers);
  b.add("position add", "add", {x, b.f32({kLength, kWidth})}, {x}, 1);
  b.add("embedding", "embedding", {table, ids}, {x}, 1, {{"dtype", std::string(dtype_name(compute))}});
  b.add("embedding_grad", "embedding_grad", {ids, x}, {table}, 1, {{"vocab", kVocab}}).accumulate = 1;
  const double share = kParameters / static_cast<double>(kVocab * kWidth);
  b.add("sum_squares", "sum_squares", {table}, {one}, share);
  b.add("adamw", "update", {table, b.f64({8})}, {table, table, table}, share,
        {{"optimizer", std::string("adamw")}})
      .bytes += 3.0 * kVocab * kWidth * 4;
  for (const char* other : {"sgd", "lion"})  // with one state; no part of the step
    b.add(other, "update", {table, b.f64({8})}, {table, table}, 0, {{"optimizer", std::string(other)}})
        .bytes += 2.0 * kVocab * kWidth * 4;
  return b.cases;
}

Runner::Runner(const Case& c, int threads) : case_(c) {
  kernels::Signature s{c.op, c.in, c.out, c.in_present, c.out_present, &c.attrs, threads};
  for (const auto& candidate : kernels::cpu_registry().rows)
    if (!kernel_ && candidate.op == c.op)
      if ((kernel_ = candidate.make(s))) row_ = candidate.name;
  if (!kernel_) {
    kernel_ = kernels::select(kernels::reference_registry(), s);
    row_ = "reference";
  }
  uint32_t state = 12345;
  const auto fill = [&](const TensorDesc& d, std::byte* bytes) {
    for (int64_t i = 0; i < (d.bytes() + 3) / 4; ++i) {
      state = state * 1664525u + 1013904223u;
      const float v = static_cast<float>(state >> 8) * 0x1p-24f - 0.5f;
      uint32_t bits;
      std::memcpy(&bits, &v, 4);
      if (d.dtype == DType::kI32) bits = (state >> 8) % kVocab;
      if (d.dtype == DType::kBF16 || d.dtype == DType::kOpaque) bits = bits >> 16 | (bits & 0xffff0000u);
      std::memcpy(bytes + i * 4, &bits, 4);
    }
    if (d.dtype == DType::kF64 && d.shape.rank == 1) {
      const double hyper[] = {1e-4, 0.9, 0.95, 1e-8, 0.1, 0.1, 0.05, 1.0};
      std::memcpy(bytes, hyper, sizeof hyper);
    }
  };
  const auto make = [&](const std::vector<TensorDesc>& descs, uint32_t present, std::vector<Tensor>& to) {
    for (size_t i = 0; i < descs.size(); ++i) {
      if (!(present >> i & 1u)) {
        to.push_back({descs[i], nullptr});
        continue;
      }
      std::byte* data = storage_.emplace_back(descs[i].bytes() + 64).data;
      fill(descs[i], data);
      to.push_back({descs[i], data});
    }
  };
  make(c.in, c.in_present, in_);
  make(c.out, c.out_present, out_);
  // Positive second moments, and no NaN from a random log-sum-exp.
  if (c.op == "update" && out_.size() > 2)
    for (int64_t i = 0; i < out_[2].desc.shape.elements(); ++i) out_[2].as<float>()[i] = 1e-6f;
  if (c.op == "attention_grad")
    for (int64_t i = 0; i < in_[5].desc.shape.elements(); ++i) in_[5].as<float>()[i] = 8.0f;
  workspace_ = &storage_.emplace_back(kernel_->workspace_bytes() + 64);
}

Runner::Block::Block(int64_t size)
    : data(static_cast<std::byte*>(
          system_allocator().allocate(nullptr, static_cast<size_t>(size), static_cast<size_t>(kAlignment)))),
      bytes(size) {
  require(data != nullptr, Code::kOutOfMemory, "no ", size, " bytes for an operand of a benchmark");
}
Runner::Block::~Block() {
  system_allocator().release(nullptr, data, static_cast<size_t>(bytes), static_cast<size_t>(kAlignment));
}

void Runner::run() { kernel_->run({in_, out_, workspace_->data, case_.accumulate, {}}); }

}  // namespace cairn::bench
