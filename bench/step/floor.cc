// The matrix products of one GPT-2 124M micro-step (batch 4, sequence 256) alone, at oneDNN's best measured
// rate: what a step is compared with. Prints one JSON object.
//   bench_floor off|bf16 [threads] [repeats]
#include <omp.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <dnnl.hpp>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "kernels/cpu/simd/isa.h"

namespace {

using dnnl::memory;
using Dt = memory::data_type;
using Tag = memory::format_tag;

// C[m, n] = A[m, k] B[k, n]; how often in a step. A linear layer of n outputs and k inputs on r rows is
// three: y, dx, dw.
struct Product {
  int64_t m, n, k;
  int times;
};

std::vector<Product> step_products() {
  constexpr int64_t kRows = 1024, kWidth = 768, kVocabulary = 50304;
  std::vector<Product> all;
  const auto linear = [&](int64_t n, int64_t k, int times) {
    all.push_back({kRows, n, k, times});
    all.push_back({kRows, k, n, times});
    all.push_back({n, k, kRows, times});
  };
  linear(3 * kWidth, kWidth, 12);
  linear(kWidth, kWidth, 12);
  linear(4 * kWidth, kWidth, 12);
  linear(kWidth, 4 * kWidth, 12);
  linear(kVocabulary, kWidth, 1);
  return all;
}

// Least seconds of `repeats` runs, with B in the layout that oneDNN asks for.
double measure(const Product& p, Dt type, int repeats) {
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const memory::desc a({p.m, p.k}, type, Tag::ab), c({p.m, p.n}, Dt::f32, Tag::ab);
  const memory::desc b({p.k, p.n}, type, Tag::any);
  const dnnl::matmul::primitive_desc desc(dnnl::matmul::desc(a, b, c), engine);
  memory am(a, engine), bm(desc.weights_desc(), engine), cm(c, engine);
  // 0x3f3f is 0.75 in both types: no denormal numbers, which would be slow.
  for (memory* m : {&am, &bm, &cm}) std::memset(m->get_data_handle(), 0x3f, m->get_desc().get_size());
  const dnnl::matmul matmul(desc);
  double best = 1e30;
  for (int i = 0; i <= repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    matmul.execute(stream, {{DNNL_ARG_SRC, am}, {DNNL_ARG_WEIGHTS, bm}, {DNNL_ARG_DST, cm}});
    stream.wait();
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (i > 0 && took < best) best = took;  // the first is warm-up
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const cairn::bench::Arguments arguments(argc, argv, "bench_floor [off|bf16 [THREADS [REPEATS]]]");
  const auto& words = arguments.words(3);
  const std::string amp = words.empty() ? "off" : words[0];
  if (amp != "off" && amp != "bf16") arguments.refuse("the first word", amp, "off or bf16");
  const int threads = words.size() > 1 ? arguments.whole_of("THREADS", words[1]) : 2,
            repeats = words.size() > 2 ? arguments.whole_of("REPEATS", words[2]) : 5;
  omp_set_num_threads(threads);
  const bool capped = cairn::kernels::cpu::amx_palette_hidden();
  if (capped)
    dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_bf16);  // its AMX code would end in SIGILL here
  double seconds = 0, flops = 0;
  for (const Product& p : step_products()) {
    seconds += p.times * measure(p, amp == "bf16" ? Dt::bf16 : Dt::f32, repeats);
    flops += 2.0 * p.times * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  }
  std::printf("{\"seconds\": %.6f, \"gflops_per_second\": %.1f, \"onednn_without_amx\": %s}\n", seconds,
              flops / seconds * 1e-9, capped ? "true" : "false");
  return 0;
}
