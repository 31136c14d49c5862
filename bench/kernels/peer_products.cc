#include "bench/kernels/peer_products.h"

#ifdef CAIRN_BENCH_ONEDNN
#include <cstdlib>
#include <dnnl.hpp>
#include <memory>
#include <unordered_map>

#include "kernels/cpu/simd/isa.h"
#endif

namespace cairn::bench {

#ifdef CAIRN_BENCH_ONEDNN
namespace {

using dnnl::memory;

memory::desc matrix(int64_t rows, int64_t columns, bool transposed, int64_t ld) {
  if (ld == 0) ld = transposed ? rows : columns;
  return {{rows, columns}, memory::data_type::f32, transposed ? memory::dims{1, ld} : memory::dims{ld, 1}};
}

}  // namespace

std::function<void(const float*, const float*, float*, const float*)> peer_product(
    const kernels::cpu::ProductShape& s) {
  // Its AMX code ends in SIGILL where the tiles' sizes are hidden; float32 does without.
  static const bool capped = kernels::cpu::amx_palette_hidden() &&
                             std::getenv("ONEDNN_MAX_CPU_ISA") == nullptr &&
                             dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_bf16) == dnnl::status::success;
  (void)capped;
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  dnnl::primitive_attr attr;
  if (s.add) {
    dnnl::post_ops ops;
    ops.append_sum(1.0f);
    attr.set_post_ops(ops);
  }
  const auto a = matrix(s.m, s.k, s.transpose_a, s.lda), b = matrix(s.k, s.n, s.transpose_b, s.ldb);
  const auto c = matrix(s.m, s.n, false, s.ldc);
  const memory::desc bias({1, s.n}, memory::data_type::f32, memory::format_tag::ab);
  const dnnl::matmul::primitive_desc desc(
      s.bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c), attr, cpu);
  auto stream = std::make_shared<dnnl::stream>(cpu);
  const dnnl::matmul matmul(desc);
  memory am(a, cpu, nullptr), bm(b, cpu, nullptr), cm(c, cpu, nullptr), biasm(bias, cpu, nullptr);
  std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, am}, {DNNL_ARG_WEIGHTS, bm}, {DNNL_ARG_DST, cm}};
  if (s.bias) arguments.emplace(DNNL_ARG_BIAS, biasm);
  return [=](const float* pa, const float* pb, float* pc, const float* pbias) mutable {
    am.set_data_handle(const_cast<float*>(pa));
    bm.set_data_handle(const_cast<float*>(pb));
    cm.set_data_handle(pc);
    if (arguments.count(DNNL_ARG_BIAS) > 0) biasm.set_data_handle(const_cast<float*>(pbias));
    matmul.execute(*stream, arguments);
  };
}
#else
std::function<void(const float*, const float*, float*, const float*)> peer_product(
    const kernels::cpu::ProductShape&) {
  return {};
}
#endif

}  // namespace cairn::bench
