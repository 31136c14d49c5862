// The product on cuBLASLt. Row-major c = a b is column-major c^T = b^T a^T over the same bytes, so operands
// swap places and a transposed row-major matrix is a plain column-major one, or the reverse.
#include "kernels/cuda/products/product.h"

#include <utility>

#include "kernels/cuda/native/cublaslt.h"
#include "runtime/base/cuda/status.h"

namespace cairn::kernels::cuda {
namespace {

constexpr uint64_t kMaxWorkspace = 32 << 20;
constexpr int kSmall = 4;          // algorithms that are worth being timed
constexpr int64_t kAligned = 256;  // alignment of the workspace that the library gets
// Split sums are added up from the workspace in a pass of their own, in float32: the same bits in every run.
constexpr uint32_t kReductions = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
// Only a run knows the operands' addresses. The library's heuristic gets this one instead, as all are multiples of 64.
void* const kSomeAddress = reinterpret_cast<void*>(uintptr_t{64});

Refusal refusal_of(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return Refusal::kNotSupported;
    case CUBLAS_STATUS_INVALID_VALUE:
      return Refusal::kInvalidValue;
    case CUBLAS_STATUS_ALLOC_FAILED:
      return Refusal::kNoMemory;
    default:
      return Refusal::kFailed;
  }
}

void check(const CublasLt& lt, cublasStatus_t status, const char* what) {
  require(status == CUBLAS_STATUS_SUCCESS, code_of(refusal_of(status), cudaSuccess), "cuBLASLt: ", what, ": ",
          lt.status_string(status));
}

// An algorithm as the library describes it, in hexadecimal. Words are compared with those of the library's
// own answers and never given to it.
std::string word_of(const cublasLtMatmulAlgo_t& algorithm) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string word;
  for (const uint64_t part : algorithm.data)
    for (int shift = 60; shift >= 0; shift -= 4) word += kDigits[part >> shift & 15];
  while (word.ends_with("00000000")) word.resize(word.size() - 8);
  return word;
}

// A descriptor of the library's, and the function that frees it.
template <class T>
class Owned {
 public:
  Owned() = default;
  Owned(T* value, cublasStatus_t (*destroy)(T*)) : value_(value), destroy_(destroy) {}
  Owned(Owned&& other) noexcept { swap(other); }
  Owned& operator=(Owned&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Owned() {
    if (value_ != nullptr) destroy_(value_);
  }
  T* get() const { return value_; }

 private:
  void swap(Owned& other) {
    std::swap(value_, other.value_);
    std::swap(destroy_, other.destroy_);
  }
  T* value_ = nullptr;
  cublasStatus_t (*destroy_)(T*) = nullptr;
};

using Layout = Owned<cublasLtMatrixLayoutOpaque_t>;

cudaDataType_t type_of(DType t) {
  return t == DType::kBF16 ? CUDA_R_16BF : t == DType::kF16 ? CUDA_R_16F : CUDA_R_32F;
}

// `rows` rows of `columns` elements, as row-major code sees them.
Layout layout(const CublasLt& lt, DType dtype, int64_t rows, int64_t columns, int64_t ld, int64_t batch,
              int64_t stride) {
  cublasLtMatrixLayoutOpaque_t* made = nullptr;
  check(lt,
        lt.layout_create(&made, type_of(dtype), static_cast<uint64_t>(columns), static_cast<uint64_t>(rows),
                         ld),
        "a matrix layout");
  Layout owned(made, lt.layout_destroy);
  if (batch > 1) {
    const auto count = static_cast<int32_t>(batch);
    check(lt, lt.layout_set(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count), "a batch count");
    check(lt, lt.layout_set(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
          "a batch stride");
  }
  return owned;
}

cublasLtEpilogue_t epilogue_of(const ProductShape& s) {
  switch (s.epilogue) {
    case Epilogue::kBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::kGelu:
      return s.pre ? CUBLASLT_EPILOGUE_GELU_AUX : CUBLASLT_EPILOGUE_GELU;
    case Epilogue::kGeluBias:
      return s.pre ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_BIAS;
    case Epilogue::kGeluDerivative:
      return CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::kSumsOfA:  // of the library's B, whose gradient of a bias has D's columns
      return CUBLASLT_EPILOGUE_BGRADB;
    default:
      return CUBLASLT_EPILOGUE_DEFAULT;
  }
}

class LtProduct final : public Product {
 public:
  // `found`: is there an algorithm? like: whose algorithm is taken, if it can be.
  LtProduct(const ProductShape& s, std::string_view word, std::vector<std::string>* options,
            const LtProduct* like, bool* found)
      : lt_(CublasLt::open()), shape_(s), handle_(lt_.handle()) {
    a_ = layout(lt_, s.in, s.transpose_a ? s.k : s.m, s.transpose_a ? s.m : s.k, s.row_of_a(), s.batch,
                s.stride_a);
    b_ = layout(lt_, s.in, s.transpose_b ? s.n : s.k, s.transpose_b ? s.k : s.n, s.row_of_b(), s.batch,
                s.stride_b);
    c_ = layout(lt_, s.out, s.m, s.n, s.row_of_c(), s.batch, s.stride_c);
    cublasLtMatmulDescOpaque_t* desc = nullptr;
    check(lt_, lt_.desc_create(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), "an operation");
    desc_ = {desc, lt_.desc_destroy};
    set(CUBLASLT_MATMUL_DESC_TRANSA, s.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, s.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(s));
    // Bias, sums and pre are of D's type, as long as nothing else is said.
    if (s.has_bias() || s.has_sums()) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, kSomeAddress);
    if (s.has_pre()) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, kSomeAddress);
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, s.row_of_c());
      if (s.batch > 1) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, s.stride_c);
    }
    *found = (like != nullptr && take_from(*like)) || choose(word, options);
  }

  int64_t workspace_bytes() const override { return workspace_ > 0 ? workspace_ + kAligned : 0; }

  void run(const ProductCall& call) const override {
    if (shape_.has_bias()) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, call.bias);
    if (shape_.has_sums()) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, call.sums);
    if (shape_.has_pre()) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, call.pre);
    const float alpha = 1.0f, beta = call.accumulate ? 1.0f : 0.0f;
    const uintptr_t space =
        (reinterpret_cast<uintptr_t>(call.workspace) + kAligned - 1) & ~uintptr_t{kAligned - 1};
    const cublasStatus_t status =
        lt_.matmul(handle_, desc_.get(), &alpha, call.b, b_.get(), call.a, a_.get(), &beta, call.c, c_.get(),
                   call.c, c_.get(), &algorithm_, workspace_ > 0 ? reinterpret_cast<void*>(space) : nullptr,
                   static_cast<size_t>(workspace_), static_cast<cudaStream_t>(call.stream));
    if (status != CUBLAS_STATUS_SUCCESS) [[unlikely]]
      fail(code_of(refusal_of(status), present_status()), "the product ", to_string(shape_),
           " could not be started: ", lt_.status_string(status));
  }

 private:
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) const {
    check(lt_, lt_.desc_set(desc_.get(), attribute, &value, sizeof value), "an attribute of an operation");
  }

  // Chooses the algorithm, once, so that every run takes the same one.
  bool choose(std::string_view word, std::vector<std::string>* options) {
    cublasLtMatmulPreferenceOpaque_t* made = nullptr;
    check(lt_, lt_.preference_create(&made), "a preference");
    const Owned<cublasLtMatmulPreferenceOpaque_t> preference(made, lt_.preference_destroy);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      check(lt_, lt_.preference_set(made, attribute, &value, sizeof value), "an attribute of a preference");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMaxWorkspace);
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, kReductions);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<uint32_t>(shape_.alignment_b));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<uint32_t>(shape_.alignment_a));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<uint32_t>(shape_.alignment_c));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<uint32_t>(shape_.alignment_c));
    const auto ask = [&](int most) {
      std::vector<cublasLtMatmulHeuristicResult_t> answers(static_cast<size_t>(most));
      int count = 0;
      const cublasStatus_t status = lt_.heuristic(handle_, desc_.get(), b_.get(), a_.get(), c_.get(),
                                                  c_.get(), made, most, answers.data(), &count);
      if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE)
        count = 0;
      else
        check(lt_, status, "the choice of an algorithm");
      answers.resize(static_cast<size_t>(count));
      std::erase_if(answers, [](const auto& a) { return a.state != CUBLAS_STATUS_SUCCESS; });
      return answers;
    };
    const auto best = ask(1);
    if (best.empty()) return false;
    take(best.front());
    if (word.empty() && options == nullptr) return true;
    for (const cublasLtMatmulHeuristicResult_t& answer : ask(kSmall)) {
      const std::string own = word_of(answer.algo);
      if (own == word) take(answer);
      if (options != nullptr) options->push_back(own);
    }
    return true;
  }
  bool take_from(const LtProduct& like) {
    cublasLtMatmulHeuristicResult_t answer = {};
    const cublasStatus_t status = lt_.algorithm_check(handle_, desc_.get(), b_.get(), a_.get(), c_.get(),
                                                      c_.get(), &like.algorithm_, &answer);
    if (status != CUBLAS_STATUS_SUCCESS || answer.state != CUBLAS_STATUS_SUCCESS ||
        answer.workspaceSize > kMaxWorkspace)
      return false;
    answer.algo = like.algorithm_;
    take(answer);
    return true;
  }
  void take(const cublasLtMatmulHeuristicResult_t& answer) {
    algorithm_ = answer.algo;
    workspace_ = static_cast<int64_t>(answer.workspaceSize);
  }

  const CublasLt& lt_;
  ProductShape shape_;
  cublasLtHandle_t handle_;
  Layout a_, b_, c_;
  Owned<cublasLtMatmulDescOpaque_t> desc_;
  cublasLtMatmulAlgo_t algorithm_ = {};
  int64_t workspace_ = 0;
};

std::unique_ptr<LtProduct> made(const ProductShape& shape, std::string_view word,
                                std::vector<std::string>* options, const LtProduct* like) {
  // The library wants rows of the argument of a gelu to be a multiple of 8.
  if (shape.has_pre() && shape.row_of_c() % 8 != 0) return nullptr;
  bool found = false;
  auto product = std::make_unique<LtProduct>(shape, word, options, like, &found);
  return found ? std::move(product) : nullptr;
}

}  // namespace

std::unique_ptr<Product> try_product(const ProductShape& shape, std::string_view word,
                                     std::vector<std::string>* options) {
  return made(shape, word, options, nullptr);
}

std::unique_ptr<Product> try_product_like(const ProductShape& like, const ProductShape& shape,
                                          std::string_view word) {
  return made(shape, {}, nullptr, made(like, word, nullptr, nullptr).get());
}

}  // namespace cairn::kernels::cuda
