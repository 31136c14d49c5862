// One matrix product with fixed shapes, c = a b. native/cublaslt.cc computes it with cuBLASLt,
// tests/cuda/emulated/product.cc with loops; which of the two is decided by the linker.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/cuda/products/choice.h"
#include "runtime/base/tensor.h"

namespace cairn::kernels::cuda {

// What happens to a sum before it is stored, or what is stored in addition. kGelu*: by the tanh formula. kGeluDerivative:
// times the derivative of gelu at `pre`. kSumsOfA: c is the product alone; the sums of a over k are stored as
// well.
enum class Epilogue : uint8_t { kNone, kBias, kGelu, kGeluBias, kGeluDerivative, kSumsOfA };

// Matrices are row-major: a[m, k], b[k, n], c[m, n]. A transposed operand is stored the other way round.
// Leading dimensions and strides are in elements; a leading dimension of 0 means rows without gaps.
struct ProductShape {
  int64_t m = 0, n = 0, k = 0;
  DType in = DType::kF32, out = DType::kF32;  // of a and b, and of c; sums are float32 in any case
  bool transpose_a = false, transpose_b = false;
  int64_t lda = 0, ldb = 0, ldc = 0;
  int64_t batch = 1, stride_a = 0, stride_b = 0, stride_c = 0;
  Epilogue epilogue = Epilogue::kNone;
  bool pre = false;  // with kGelu and kGeluBias: also stores its argument, of c's type and leading dimension
  int64_t alignment_a = 64, alignment_b = 64, alignment_c = 64;  // of the addresses in every run, in bytes

  int64_t row_of_a() const { return lda != 0 ? lda : transpose_a ? m : k; }
  int64_t row_of_b() const { return ldb != 0 ? ldb : transpose_b ? k : n; }
  int64_t row_of_c() const { return ldc != 0 ? ldc : n; }
  bool has_bias() const { return epilogue == Epilogue::kBias || epilogue == Epilogue::kGeluBias; }
  bool has_gelu() const { return epilogue == Epilogue::kGelu || epilogue == Epilogue::kGeluBias; }
  bool has_derivative() const { return epilogue == Epilogue::kGeluDerivative; }
  bool has_sums() const { return epilogue == Epilogue::kSumsOfA; }
  bool has_pre() const { return pre || has_derivative(); }
};

// Of addresses `offset` bytes apart.
inline int64_t alignment_of(int64_t offset) {
  int64_t aligned = 64;
  while (offset % aligned != 0) aligned /= 2;
  return aligned;
}

std::string to_string(const ProductShape&);

struct ProductCall {
  void* stream = nullptr;  // a cudaStream_t
  const void *a = nullptr, *b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;  // n elements of c's type
  void* pre = nullptr;         // kGeluDerivative reads it; of c's type and leading dimension
  void* sums = nullptr;        // m elements of c's type; written over in any case
  void* workspace = nullptr;   // 64-byte aligned
  bool accumulate = false;     // adds to c; with kNone and kSumsOfA
};

// Immutable; run() by one thread at a time per object. The same operands give the same bits in every run.
class Product {
 public:
  virtual ~Product() = default;
  virtual int64_t workspace_bytes() const = 0;
  virtual void run(const ProductCall& call) const = 0;
};

// nullptr: the library has no algorithm for it. kUnsupported: there is no library. By the algorithm that
// `word` is for, or the one that the library thinks the fastest; `options` gets the words of the few it
// thinks best.
std::unique_ptr<Product> try_product(const ProductShape& shape, std::string_view word = {},
                                     std::vector<std::string>* options = nullptr);
// By the algorithm that try_product(like, word) takes, if the library can compute this shape by it: rows and columns that
// both have then get the same bits, where k is the same. Else by its own.
std::unique_ptr<Product> try_product_like(const ProductShape& like, const ProductShape& shape,
                                          std::string_view word);
// As a part of a kernel, if it can be made.
std::unique_ptr<Product> try_product(const ProductShape& shape, Chooser& chooser);
// The chooser's part is `like`.
std::unique_ptr<Product> make_product_like(const ProductShape& like, const ProductShape& shape,
                                           Chooser& chooser);
// Takes a plain kernel of cairn's where the library has no algorithm; kUnsupported if that leaves an epilogue
// over.
std::unique_ptr<Product> make_product(const ProductShape& shape, Chooser& chooser);
std::unique_ptr<Product> make_product(const ProductShape& shape);

// The plain kernel: no epilogue, batches below 65536.
std::unique_ptr<Product> make_plain_product(const ProductShape& shape);

}  // namespace cairn::kernels::cuda
