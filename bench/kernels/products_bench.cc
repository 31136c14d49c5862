// bench_products [--threads=N] [--repeats=N] [--only=NAME]: float32 products of a GPT-2 124M step (batch 4,
// sequence 256), of the generation of a token and of small models; medians, in turns with oneDNN's where that
// was found when this was built.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "bench/kernels/clock.h"
#include "bench/kernels/peer_products.h"
#include "kernels/cpu/gemm/gemm_f32.h"

namespace cairn::bench {
namespace {

using kernels::cpu::Product;
using kernels::cpu::ProductShape;

struct Named {
  std::string name;
  ProductShape shape;
};

// y = x w^T (+ bias), dx = dy w, dw += dy^T x for a linear layer.
void linear(std::vector<Named>& all, const std::string& name, int64_t rows, int64_t n, int64_t k) {
  all.push_back({name + " y", {.m = rows, .n = n, .k = k, .transpose_b = true, .bias = true}});
  all.push_back({name + " dx", {.m = rows, .n = k, .k = n}});
  all.push_back({name + " dw", {.m = n, .n = k, .k = rows, .transpose_a = true, .add = true}});
}

std::vector<Named> products() {
  std::vector<Named> all;
  linear(all, "124M qkv", 1024, 2304, 768);
  linear(all, "124M proj", 1024, 768, 768);
  linear(all, "124M fc", 1024, 3072, 768);
  linear(all, "124M out", 1024, 768, 3072);
  linear(all, "124M head", 256, 50304, 768);
  linear(all, "width 256 qkv", 2048, 768, 256);
  linear(all, "width 256 proj", 2048, 256, 256);
  linear(all, "width 256 fc", 2048, 1024, 256);
  linear(all, "width 256 out", 2048, 256, 1024);
  linear(all, "width 256 head", 2048, 256, 256);
  for (const int64_t m : {1, 2, 4, 8, 16, 32})
    all.push_back(
        {std::to_string(m) + " tokens", {.m = m, .n = 2304, .k = 768, .transpose_b = true, .bias = true}});
  linear(all, "width 64", 128, 64, 64);
  linear(all, "width 32", 32, 32, 32);
  linear(all, "8 rows", 8, 64, 16);
  return all;
}

double median(std::vector<double>& v) {
  std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
  return v[v.size() / 2];
}

int run(int threads, int repeats, const std::string& only) {
  ThreadTeam team(threads);
  set_thread_team(&team);
  set_thread_count(threads);
  std::printf("%-20s %6s %6s %6s %10s %10s %7s\n", "product", "m", "n", "k", "GFLOP/s", "oneDNN", "ratio");
  for (const Named& p : products()) {
    if (p.name.find(only) == std::string::npos) continue;
    const ProductShape& s = p.shape;
    const auto filled = [](int64_t n) {
      std::vector<float> v(static_cast<size_t>(n));
      uint32_t state = 1;
      for (float& x : v)
        x = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) * 0x1p-24f - 0.5f;
      return v;
    };
    const auto a = filled(s.m * s.k), b = filled(s.k * s.n), bias = filled(s.n);
    auto c = filled(s.m * s.n), d = c;
    const Product own(s, threads);
    std::vector<float> scratch(static_cast<size_t>(own.scratch_bytes()) / 4 + 16);
    const auto peer = peer_product(s);
    const double flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
    const auto at = reinterpret_cast<uintptr_t>(scratch.data()) % 64;
    void* space = reinterpret_cast<char*>(scratch.data()) + (64 - at) % 64;
    const auto once = [&](bool ours) {
      ours ? own.run(a.data(), b.data(), c.data(), space, s.bias ? bias.data() : nullptr)
           : peer(a.data(), b.data(), d.data(), bias.data());
    };
    // Calls too short for the clock are timed several at a time.
    const int calls = std::max(1, static_cast<int>(2e7 / flops));
    std::vector<double> times[2];
    for (int i = 0; i < repeats + 2; ++i)
      for (const bool ours : {true, false}) {
        if (!ours && !peer) continue;
        const double start = now();
        for (int n = 0; n < calls; ++n) once(ours);
        if (i >= 2) times[ours].push_back((now() - start) / calls);
      }
    const double mine = median(times[true]), theirs = peer ? median(times[false]) : 0;
    std::printf("%-20s %6ld %6ld %6ld %10.1f %10.1f %7.2f\n", p.name.c_str(), static_cast<long>(s.m),
                static_cast<long>(s.n), static_cast<long>(s.k), flops / mine * 1e-9,
                peer ? flops / theirs * 1e-9 : 0.0, peer ? theirs / mine : 0.0);
  }
  return 0;
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) {
  cairn::bench::Arguments arguments(argc, argv, "bench_products [--threads=N] [--repeats=N] [--only=NAME]");
  const int threads = arguments.whole("threads", 2), repeats = arguments.whole("repeats", 15);
  const std::string only = arguments.text("only", "");
  arguments.words(0);
  return cairn::bench::run(threads, repeats, only);
}
