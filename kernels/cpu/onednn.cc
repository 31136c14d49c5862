#include "kernels/cpu/onednn.h"

#include <dnnl.hpp>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "kernels/cpu/isa.h"
#include "runtime/base/error.h"
#include "runtime/base/parallel.h"

namespace cairn::kernels::cpu {
namespace {

dnnl::engine make_engine() {
  if (amx_palette_hidden()) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_bf16);
  return dnnl::engine(dnnl::engine::kind::cpu, 0);
}
const dnnl::engine& engine() {
  static const dnnl::engine cpu = make_engine();
  return cpu;
}

dnnl::memory::desc matrix(int64_t rows, int64_t columns, bool transposed, int64_t ld) {
  using dnnl::memory;
  if (ld == 0) ld = transposed ? rows : columns;
  const memory::dims strides = transposed ? memory::dims{1, ld} : memory::dims{ld, 1};
  return {{rows, columns}, memory::data_type::f32, strides};
}

}  // namespace

struct Product::State {
  dnnl::stream stream;
  dnnl::matmul::primitive_desc desc;
  dnnl::matmul product;
  dnnl::memory a, b, c, bias, scratch;
  std::unordered_map<int, dnnl::memory> arguments;
};

Product::Product(const ProductShape& s) : state_(std::make_unique<State>()) {
  try {
    const dnnl::engine& cpu = engine();
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (s.add) {
      dnnl::post_ops ops;
      ops.append_sum(1.0f);
      attr.set_post_ops(ops);
    }
    const auto a = matrix(s.m, s.k, s.transpose_a, s.lda), b = matrix(s.k, s.n, s.transpose_b, s.ldb);
    const auto c = matrix(s.m, s.n, false, s.ldc);
    const dnnl::memory::desc bias({1, s.n}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::ab);
    State& state = *state_;
    state.stream = dnnl::stream(cpu);
    state.desc = dnnl::matmul::primitive_desc(
        s.bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c), attr, cpu);
    state.product = dnnl::matmul(state.desc);
    state.a = dnnl::memory(a, cpu, nullptr);
    state.b = dnnl::memory(b, cpu, nullptr);
    state.c = dnnl::memory(c, cpu, nullptr);
    state.scratch = dnnl::memory(state.desc.scratchpad_desc(), cpu, nullptr);
    state.arguments = {{DNNL_ARG_SRC, state.a},
                       {DNNL_ARG_WEIGHTS, state.b},
                       {DNNL_ARG_DST, state.c},
                       {DNNL_ARG_SCRATCHPAD, state.scratch}};
    if (s.bias) {
      state.bias = dnnl::memory(bias, cpu, nullptr);
      state.arguments.emplace(DNNL_ARG_BIAS, state.bias);
    }
  } catch (const dnnl::error& e) {
    fail(Code::kInternal, "oneDNN cannot multiply [", s.m, ", ", s.k, "] by [", s.k, ", ", s.n,
         "]: ", e.what());
  }
}
Product::~Product() = default;
Product::Product(Product&&) noexcept = default;

int64_t Product::scratch_bytes() const {
  return static_cast<int64_t>(state_->desc.scratchpad_desc().get_size());
}

void Product::run(const float* a, const float* b, float* c, void* scratch, const float* bias) const {
#ifdef _OPENMP
  omp_set_num_threads(thread_count());  // of this thread alone; oneDNN splits by it
#endif
  State& state = *state_;
  state.a.set_data_handle(const_cast<float*>(a));
  state.b.set_data_handle(const_cast<float*>(b));
  state.c.set_data_handle(c);
  state.scratch.set_data_handle(scratch);
  if (state.bias) state.bias.set_data_handle(const_cast<float*>(bias));
  state.product.execute(state.stream, state.arguments);
}

}  // namespace cairn::kernels::cpu
