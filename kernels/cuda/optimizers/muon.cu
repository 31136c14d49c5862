// The op `update` as Muon: the momentum, products on the smaller side (products/product.h), p. Where nothing is
// to be updated the products run over what lies in the workspace, and nobody reads what they make.
#include "kernels/cuda/common/workspace.h"
#include "kernels/cuda/optimizers/optimizer.h"
#include "kernels/cuda/products/product.h"
#include "kernels/cuda/rows.h"
#include "runtime/base/optimizers/muon.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = kOptimizerThreads;

// Of a step, in device memory.
struct Factors {
  float gradient, momentum, decay, rate;
  float length;  // 1 / that of what is orthogonalised
  int nesterov, open;
};

// scales: of the rate, without and with match_rms_adamw. Hyper-parameters as runtime/ops/optimizers.cc has them.
__global__ void prepare(const double* hyper, const double* total, double* grad_scale, double original,
                        double match_rms, Factors* factors) {
  const double factor = open_update(hyper, total, grad_scale);
  factors->open = std::isfinite(factor) ? 1 : 0;
  factors->gradient = static_cast<float>(factor);
  factors->momentum = static_cast<float>(hyper[1]);
  factors->nesterov = hyper[2] != 0 ? 1 : 0;
  factors->decay = static_cast<float>(1 - hyper[0] * hyper[4]);
  factors->rate = static_cast<float>(hyper[0] * (hyper[5] != 0 ? match_rms : original));
}

__global__ void __launch_bounds__(kThreads) follow(const Factors* factors, const float* grad, int64_t count,
                                                   int64_t chunk, float* m, float* x, double* parts) {
  CAIRN_SHARED double scratch[kWarp];
  const Factors f = *factors;
  if (f.open == 0) return;
  const int64_t begin = blockIdx.x * chunk, end = begin + chunk < count ? begin + chunk : count;
  double sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    const float g = times(grad[i], f.gradient), moved = fmaf(g - m[i], 1 - f.momentum, m[i]);
    const float ahead = f.nesterov != 0 ? fmaf(moved - g, f.momentum, g) : moved;
    m[i] = moved;
    x[i] = ahead;
    sum += static_cast<double>(ahead) * static_cast<double>(ahead);
  }
  const double total = block_sum(sum, scratch);
  if (threadIdx.x == 0) parts[blockIdx.x] = total;
}

__global__ void __launch_bounds__(kThreads)
    find_length(const double* hyper, const double* parts, int count, Factors* factors) {
  CAIRN_SHARED double scratch[kWarp];
  const double squares = sum_of_parts(parts, count, scratch);
  if (threadIdx.x == 0) factors->length = static_cast<float>(1 / fmax(sqrt(squares), hyper[3]));
}

__device__ __forceinline__ int64_t own_element() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

__global__ void __launch_bounds__(kThreads) shorten(const Factors* factors, int64_t count, float* x) {
  const int64_t i = own_element();
  if (i < count) x[i] = times(x[i], factors->length);
}

// What x is multiplied by, over the square of gram, which is side x side.
__global__ void __launch_bounds__(kThreads) polynomial(const float* gram, int64_t side, float* square) {
  const int64_t i = own_element();
  if (i >= side * side) return;
  const float sum = fmaf(static_cast<float>(NewtonSchulz::b), gram[i],
                         times(static_cast<float>(NewtonSchulz::c), square[i]));
  square[i] = i % (side + 1) == 0 ? sum + static_cast<float>(NewtonSchulz::a) : sum;
}

template <class P>
__global__ void __launch_bounds__(kThreads)
    move_parameter(const Factors* factors, const float* x, int64_t count, typename P::Entry parameter,
                   RandomSource random) {
  const Factors f = *factors;
  const P p = P::of(parameter, random);
  const int64_t i = own_element();
  if (f.open == 0 || i >= count) return;
  p.put(i, Group<1>{{fmaf(-f.rate, x[i], times(load(p.at + i), f.decay))}});
}

template <class P>
class Muon : public Kernel {
 public:
  Muon(const MuonShape& shape, const Signature& s) : shape_(shape), form_(s), chunks_(shape.elements()) {
    Chooser chooser(s);
    const int64_t side = shape.side();
    ProductShape gram, square, next;
    gram.m = gram.n = square.m = square.n = square.k = next.k = side;
    gram.k = std::max(shape.rows, shape.columns);
    gram.transpose_a = shape.tall();
    gram.transpose_b = !shape.tall();
    next.m = shape.rows, next.n = shape.columns;
    gram_ = make_product(gram, chooser);
    square_ = make_product(square, chooser);
    next_ = make_product(next, chooser);
    factors_at_ = space_.add(sizeof(Factors));
    parts_at_ = space_.add(chunks_.parts * 8);
    for (int64_t& at : x_at_) at = space_.add(shape.elements() * 4);
    gram_at_ = space_.add(side * side * 4);
    square_at_ = space_.add(side * side * 4);
    product_at_ = space_.add(
        std::max({gram_->workspace_bytes(), square_->workspace_bytes(), next_->workspace_bytes()}));
  }
  int64_t workspace_bytes() const override { return space_.bytes(); }

  void run(const Call& call) const override {
    const cudaStream_t stream = stream_of(call);
    const auto* const hyper = input<const double>(call, update_op::kHyper);
    auto* const factors = Workspace::at<Factors>(call, factors_at_);
    auto* const parts = Workspace::at<double>(call, parts_at_);
    float *x = Workspace::at<float>(call, x_at_[0]), *other = Workspace::at<float>(call, x_at_[1]);
    const int64_t count = shape_.elements();
    launch(stream, prepare, {.threads = 1}, hyper, input<const double>(call, update_op::kTotal),
           output<double>(call, update_op::kGradScale), shape_.scale(false), shape_.scale(true), factors);
    launch(stream, follow, {.blocks = chunks_.parts, .threads = kThreads}, factors,
           input<const float>(call, update_op::kGrad), count, chunks_.size,
           output<float>(call, update_op::kFirstState), x, parts);
    launch(stream, find_length, {.threads = kThreads}, hyper, parts, static_cast<int>(chunks_.parts),
           factors);
    launch(stream, shorten, elements(count), factors, count, x);
    for (int64_t i = 0; i < shape_.steps; ++i) {
      newton_schulz(call, x, other);
      std::swap(x, other);
    }
    launch(stream, move_parameter<P>, elements(count), factors, x, count,
           P::entry(call, update_op::kParameter, form_), RandomSource::of(call));
  }

 private:
  static LaunchSize elements(int64_t count) {
    return {.blocks = (count + kThreads - 1) / kThreads, .threads = kThreads};
  }

  // next = (a + b gram + c gram^2) x, the polynomial from the left or, where x is tall, from the right.
  void newton_schulz(const Call& call, const float* x, float* next) const {
    auto *const gram = Workspace::at<float>(call, gram_at_), *const square =
                                                                 Workspace::at<float>(call, square_at_);
    const auto multiply = [&](const Product& product, const float* a, const float* b, float* c) {
      ProductCall run;
      run.stream = stream_of(call);
      run.a = a, run.b = b, run.c = c;
      run.workspace = Workspace::at(call, product_at_);
      product.run(run);
    };
    multiply(*gram_, x, x, gram);
    multiply(*square_, gram, gram, square);
    const int64_t side = shape_.side();
    launch(stream_of(call), polynomial, elements(side * side), gram, side, square);
    shape_.tall() ? multiply(*next_, x, square, next) : multiply(*next_, square, x, next);
  }

  MuonShape shape_;
  ParameterForm form_;
  Chunks chunks_;
  std::unique_ptr<Product> gram_, square_, next_;
  Workspace space_;
  int64_t factors_at_, parts_at_, x_at_[2], gram_at_, square_at_, product_at_;
};

}  // namespace

std::unique_ptr<Kernel> make_muon(const Signature& s) {
  const auto shape = muon_shape(s, DType::kF32);
  if (!shape) return nullptr;
  return with_parameter(s, [&]<class P>(std::type_identity<P>) -> std::unique_ptr<Kernel> {
    return std::make_unique<Muon<P>>(*shape, s);
  });
}

}  // namespace cairn::kernels::cuda
