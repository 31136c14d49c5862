// The product as loops, with what cuBLASLt asks of its callers checked.
#include "kernels/cuda/products/product.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#include "runtime/base/cuda/status.h"
#include "tests/cuda/emulated/simt.h"
#include "tests/cuda/emulated/world.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kAlgorithms = 3;
constexpr std::chrono::milliseconds kSlow{3};

float read(DType t, const void* p, int64_t i) {
  return t == DType::kBF16  ? to_float(static_cast<const bf16*>(p)[i])
         : t == DType::kF16 ? to_float(static_cast<const f16*>(p)[i])
                            : static_cast<const float*>(p)[i];
}
void write(DType t, void* p, int64_t i, float v) {
  if (t == DType::kBF16)
    static_cast<bf16*>(p)[i] = to_bf16(v);
  else if (t == DType::kF16)
    static_cast<f16*>(p)[i] = to_f16(v);
  else
    static_cast<float*>(p)[i] = v;
}

float gelu(float x) { return 0.5f * x * (1.0f + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x))); }
float gelu_derivative(float x) {
  const float t = std::tanh(0.7978845608f * (x + 0.044715f * x * x * x));
  return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * 0.7978845608f * (1.0f + 3 * 0.044715f * x * x);
}

// Which way round sums are added up differs from one algorithm to the next, and so do their bits.
void multiply(const ProductShape& s, const ProductCall& call, int64_t which, int algorithm) {
  const int64_t lda = s.row_of_a(), ldb = s.row_of_b(), ldc = s.row_of_c();
  std::vector<float> b(static_cast<size_t>(s.k * s.n)), sums(static_cast<size_t>(s.n));
  for (int64_t k = 0; k < s.k; ++k)
    for (int64_t n = 0; n < s.n; ++n)
      b[static_cast<size_t>(k * s.n + n)] =
          read(s.in, call.b, which * s.stride_b + (s.transpose_b ? n * ldb + k : k * ldb + n));
  for (int64_t m = 0; m < s.m; ++m) {
    std::fill(sums.begin(), sums.end(), 0.0f);
    float of_a = 0;
    for (int64_t i = 0; i < s.k; ++i) {
      const int64_t k = algorithm == 0 ? i : algorithm == 1 ? s.k - 1 - i : (i + s.k / 2) % s.k;
      const float factor =
          read(s.in, call.a, which * s.stride_a + (s.transpose_a ? k * lda + m : m * lda + k));
      of_a += factor;
      const float* row = b.data() + k * s.n;
      for (int64_t n = 0; n < s.n; ++n) sums[static_cast<size_t>(n)] += factor * row[n];
    }
    if (s.has_sums()) write(s.out, call.sums, m, of_a);
    for (int64_t n = 0; n < s.n; ++n) {
      const int64_t at = which * s.stride_c + m * ldc + n;
      float v = sums[static_cast<size_t>(n)];
      if (s.has_bias()) v += read(s.out, call.bias, n);
      if (s.pre) write(s.out, call.pre, at, v);
      if (s.has_gelu()) v = gelu(v);
      if (s.has_derivative()) v *= gelu_derivative(read(s.out, call.pre, at));
      write(s.out, call.c, at, call.accumulate ? v + read(s.out, call.c, at) : v);
    }
  }
}

class LoopProduct final : public Product {
 public:
  LoopProduct(const ProductShape& shape, int algorithm) : shape_(shape), algorithm_(algorithm) {}
  // As much as shows whether callers pass it on.
  int64_t workspace_bytes() const override { return 256 << algorithm_; }

  void run(const ProductCall& call) const override {
    const auto aligned = [](const void* p, int64_t to) { return reinterpret_cast<uintptr_t>(p) % to == 0; };
    require(call.a != nullptr && call.b != nullptr && call.c != nullptr && call.workspace != nullptr,
            Code::kInternal, "an operand of a product is missing");
    require(shape_.has_bias() == (call.bias != nullptr) && shape_.has_pre() == (call.pre != nullptr) &&
                shape_.has_sums() == (call.sums != nullptr),
            Code::kInternal, "bias, pre and sums of a product are not what it was made for");
    require(!call.accumulate || shape_.epilogue == Epilogue::kNone || shape_.has_sums(), Code::kInternal,
            "a product with an epilogue cannot accumulate");
    require(aligned(call.a, shape_.alignment_a) && aligned(call.b, shape_.alignment_b) &&
                aligned(call.c, shape_.alignment_c) && aligned(call.bias, 64) && aligned(call.pre, 64) &&
                aligned(call.sums, 64) && aligned(call.workspace, 64),
            Code::kInternal, "an operand of a product is not aligned as promised");
    // As the library would: by a status of its own.
    const cudaError_t refused = emulated::enter("cublasLtMatmul");
    require(refused == cudaSuccess,
            code_of(refused == cudaErrorNotSupported ? Refusal::kNotSupported : Refusal::kInvalidValue,
                    present_status()),
            "the product ", to_string(shape_), " could not be started");
    emulated::submit(static_cast<cudaStream_t>(call.stream), [shape = shape_, call, algorithm = algorithm_] {
      std::fill_n(static_cast<char*>(call.workspace), 256 << algorithm, '\x5a');
      const emulated::Libraries& speed = emulated::libraries();
      if ((algorithm == 0 && speed.first_algorithm_slow) || (shape.has_sums() && speed.sums_slow))
        std::this_thread::sleep_for(kSlow);
      for (int64_t i = 0; i < shape.batch; ++i) multiply(shape, call, i, algorithm);
    });
  }

 private:
  ProductShape shape_;
  int algorithm_;
};

// Epilogues over rows that cuBLASLt may refuse are refused, and sums of one product, so that what is done instead is
// run as well.
bool refused(const ProductShape& shape) {
  if (shape.k == 1) return true;
  if ((shape.has_gelu() || shape.has_derivative()) && shape.row_of_c() % 8 != 0) return true;
  if (shape.has_bias() && shape.n % 2 != 0) return true;
  return shape.has_sums() && (shape.m % 2 != 0 || shape.batch > 1);
}

// As the library's, what is thought the fastest depends on the size.
int suggested(const ProductShape& shape) {
  constexpr int64_t kLarge = 16384;
  return std::max(shape.m, shape.n) >= kLarge ? 1 : 0;
}

std::unique_ptr<Product> made(const ProductShape& like, const ProductShape& shape, std::string_view word,
                              std::vector<std::string>* options) {
  if (refused(shape)) return nullptr;
  int algorithm = suggested(like);
  for (int i = 0; i < kAlgorithms; ++i) {
    const std::string own = cat("loops", i);
    if (own == word) algorithm = i;
    if (options != nullptr) options->push_back(own);
  }
  return std::make_unique<LoopProduct>(shape, algorithm);
}

}  // namespace

std::unique_ptr<Product> try_product(const ProductShape& shape, std::string_view word,
                                     std::vector<std::string>* options) {
  return made(shape, shape, word, options);
}

std::unique_ptr<Product> try_product_like(const ProductShape& like, const ProductShape& shape,
                                          std::string_view word) {
  return refused(like) ? try_product(shape) : made(like, shape, word, nullptr);
}

}  // namespace cairn::kernels::cuda
