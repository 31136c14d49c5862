// The matrix products of a GPT-2 micro-step alone: own kernels on the shapes and layouts that a step gives them, weights packed,
// no bias, no activation, back to back. What a step takes beyond them is passes over memory, packing and waiting.
//   bench_step_products [layers=12] [heads=12] [width=768] [vocab=50304] [seq=256] [batch=4] [amp=off|bf16] [threads=1]
//                       [repeats=7]
// Prints one JSON object; with one thread seconds are its processor time. CAIRN_ISA holds it to a lower instruction set.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "bench/kernels/cases.h"
#include "bench/kernels/clock.h"
#include "kernels/cpu/gemm/bf16/gemm.h"
#include "kernels/cpu/gemm/small_gemm.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/registry.h"

namespace cairn::bench {
namespace {

struct Part {
  std::string name;
  double seconds, flops;  // of a step
};

double median_seconds(int repeats, auto&& once) {
  std::vector<double> times;
  for (int i = 0; i <= repeats; ++i) {
    const double start = now();
    once();
    if (i > 0) times.push_back(now() - start);  // the first is warm-up
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

class Products {
 public:
  Products(DType compute, int threads, int repeats)
      : compute_(compute), threads_(threads), repeats_(repeats) {}

  // y = x w^T, dx = dy w, dw = dy^T x, `times` in a step.
  void linear(const std::string& name, int64_t rows, int64_t n, int64_t k, double times) {
    const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(n) * static_cast<double>(k);
    const TensorDesc x{compute_, {rows, k}, 0}, y{compute_, {rows, n}, 0};
    kernel(name + " y", "linear", {x, weight(n, k, rows, "forward")}, {y}, flops, times);
    kernel(name + " dx", "linear_grad_input", {y, weight(n, k, rows, "input_grad")}, {x}, flops, times);
    kernel(name + " dw", "linear_grad_weight", {x, y}, {{DType::kF32, {n, k}, 0}}, flops, times);
  }

  // The seven products of causal attention by blocks of 64 queries of one head.
  void attention(int64_t length, int64_t dim, double times) {
    const bool half = compute_ == DType::kBF16 && kernels::cpu::has_bf16_products() && dim % 32 == 0;
    std::vector<float> a(static_cast<size_t>(length * std::max(length, dim))), b(a), c(a);
    double flops = 0;
    const auto product = [&](int64_t m, int64_t n, int64_t k) {
      flops += 2.0 * static_cast<double>(m * n * k);
      if (half) {
        const int64_t deep = kernels::cpu::round_up(k, kernels::cpu::kTileK);
        const auto g = kernels::cpu::row_major(reinterpret_cast<bf16*>(a.data()), deep,
                                               reinterpret_cast<bf16*>(b.data()), deep);
        kernels::cpu::bf16_gemm_f32(g, 0, m, n, 0, kernels::cpu::panels(n), nullptr, c.data(), n, false);
      } else {
        kernels::cpu::small_gemm({m, n, k, a.data(), k, 1, b.data(), n, c.data(), n, false});
      }
    };
    const double seconds = median_seconds(repeats_, [&] {
      flops = 0;
      for (int64_t t = 0; t < length; t += 64) {
        const int64_t rows = std::min<int64_t>(64, length - t), keys = t + rows;
        for (int i = 0; i < 3; ++i) product(rows, keys, dim);                            // scores twice, dp
        for (int i = 0; i < 2; ++i) product(rows, dim, keys), product(keys, dim, rows);  // y, dq; dk, dv
      }
    });
    parts_.push_back({"attention", seconds * times / threads_, flops * times});
  }

  void print(const char* amp) const {
    double seconds = 0, flops = 0;
    for (const Part& p : parts_) seconds += p.seconds, flops += p.flops;
    std::printf(
        "{\"isa\": \"%s\", \"amp\": \"%s\", \"threads\": %d, \"seconds\": %.6f, \"gflops_per_second\": %.1f, "
        "\"parts\": [",
        std::string(kernels::cpu::isa_name(kernels::cpu::isa())).c_str(), amp, threads_, seconds,
        flops / seconds * 1e-9);
    for (size_t i = 0; i < parts_.size(); ++i)
      std::printf("%s\n  {\"name\": \"%s\", \"seconds\": %.6f, \"gflops_per_second\": %.1f}", i ? "," : "",
                  parts_[i].name.c_str(), parts_[i].seconds, parts_[i].flops / parts_[i].seconds * 1e-9);
    std::printf("]}\n");
  }

 private:
  TensorDesc weight(int64_t n, int64_t k, int64_t rows, const char* use) const {
    TensorDesc d{DType::kF32, {n, k}, 0};
    if (const int64_t bytes = kernels::cpu_registry().packed_bytes(d, use, rows, compute_, threads_)) {
      d.dtype = DType::kOpaque;
      d.packed_bytes = bytes;
    }
    return d;
  }
  void kernel(std::string name, const char* op, std::vector<TensorDesc> in, std::vector<TensorDesc> out,
              double flops, double times) {
    const Case c{name, op, std::move(in), std::move(out), ~0u, ~0u};
    Runner runner(c, threads_);
    parts_.push_back(
        {std::move(name), median_seconds(repeats_, [&] { runner.run(); }) * times, flops * times});
  }

  const DType compute_;
  const int threads_, repeats_;
  std::vector<Part> parts_;
};

int main(int argc, char** argv) {
  std::map<std::string, std::string> given{{"layers", "12"},   {"heads", "12"},  {"width", "768"},
                                           {"vocab", "50304"}, {"seq", "256"},   {"batch", "4"},
                                           {"amp", "off"},     {"threads", "1"}, {"repeats", "7"}};
  std::string usage = "bench_step_products [KEY=VALUE ...]\nby default";
  for (const auto& [key, value] : given) usage += " " + key + "=" + value;
  const Arguments arguments(argc, argv, usage);
  for (const std::string& word : arguments.words(SIZE_MAX)) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || !given.contains(word.substr(0, equals)))
      arguments.refuse("option", word, "KEY=VALUE with a key that there is");
    given[word.substr(0, equals)] = word.substr(equals + 1);
  }
  if (given["amp"] != "off" && given["amp"] != "bf16") arguments.refuse("amp", given["amp"], "off or bf16");
  const auto number = [&](const char* key) { return int64_t{arguments.whole_of(key, given[key])}; };
  const int threads = static_cast<int>(number("threads"));
  ThreadTeam team(threads);
  set_thread_team(&team);
  set_thread_count(threads);
  const int64_t width = number("width"), rows = number("batch") * number("seq"), heads = number("heads");
  const double layers = static_cast<double>(number("layers"));
  Products all(given["amp"] == "bf16" ? DType::kBF16 : DType::kF32, threads,
               static_cast<int>(number("repeats")));
  all.linear("qkv", rows, 3 * width, width, layers);
  all.linear("proj", rows, width, width, layers);
  all.linear("fc", rows, 4 * width, width, layers);
  all.linear("out", rows, width, 4 * width, layers);
  const int64_t part = std::min<int64_t>(rows, 1024);  // of the head's rows, as its logits are large
  all.linear("head", part, number("vocab"), width, static_cast<double>(rows) / static_cast<double>(part));
  all.attention(number("seq"), width / heads, layers * static_cast<double>(number("batch") * heads));
  all.print(given["amp"].c_str());
  return 0;
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) { return cairn::bench::main(argc, argv); }
