// bench_convolutions [--threads=N] [--repeats=N] [--batch=N] [--dtype=f32|bf16] [--layer=I]
// The convolutions of a ResNet-50 (224 x 224) and some others, each with its gradients: a line of JSON each, the best
// milliseconds of the repeats. convolutions.py measures them and PyTorch in turns.
#include <algorithm>
#include <cstdio>
#include <string>

#include "bench/arguments.h"
#include "bench/kernels/cases.h"
#include "bench/kernels/clock.h"

namespace cairn::bench {
namespace {

struct Layer {
  int64_t inputs, outputs, kernel, stride, size;
  int count;  // in the network
  int64_t groups = 1;
};
constexpr Layer kLayers[] = {
    {3, 64, 7, 2, 224, 1},
    {64, 64, 1, 1, 56, 1},
    {64, 64, 3, 1, 56, 3},
    {64, 256, 1, 1, 56, 4},
    {256, 64, 1, 1, 56, 2},
    {256, 128, 1, 1, 56, 1},
    {128, 128, 3, 2, 56, 1},
    {128, 512, 1, 1, 28, 4},
    {256, 512, 1, 2, 56, 1},
    {512, 128, 1, 1, 28, 3},
    {128, 128, 3, 1, 28, 3},
    {512, 256, 1, 1, 28, 1},
    {256, 256, 3, 2, 28, 1},
    {256, 1024, 1, 1, 14, 6},
    {512, 1024, 1, 2, 28, 1},
    {1024, 256, 1, 1, 14, 5},
    {256, 256, 3, 1, 14, 5},
    {1024, 512, 1, 1, 14, 1},
    {512, 512, 3, 2, 14, 1},
    {512, 2048, 1, 1, 7, 3},
    {1024, 2048, 1, 2, 14, 1},
    {2048, 512, 1, 1, 7, 2},
    {512, 512, 3, 1, 7, 2},
    // Of a ConvNeXt-T, and the patches of a ViT-S/16.
    {96, 96, 7, 1, 56, 3, 96},
    {192, 192, 7, 1, 28, 3, 192},
    {384, 384, 7, 1, 14, 9, 384},
    {768, 768, 7, 1, 7, 3, 768},
    {96, 192, 2, 2, 56, 1},
    {3, 384, 16, 16, 224, 1},
};

double best_ms(const Case& c, int threads, int repeats) {
  Runner runner(c, threads);
  runner.run();
  double best = 1e30;
  for (int i = 0; i < repeats; ++i) {
    const double start = now();
    runner.run();
    best = std::min(best, now() - start);
  }
  return best * 1e3;
}

void measure(const Layer& l, int64_t batch, DType type, int threads, int repeats) {
  const int64_t padding = l.kernel == l.stride ? 0 : l.kernel / 2,
                out = (l.size + 2 * padding - l.kernel) / l.stride + 1;
  const TensorDesc x{type, {batch, l.size, l.size, l.inputs}}, y{type, {batch, out, out, l.outputs}},
      w{DType::kF32, {l.outputs, l.kernel, l.kernel, l.inputs / l.groups}}, b{DType::kF32, {l.outputs}};
  using List = std::vector<int64_t>;
  const Attrs attrs{{"stride", List{l.stride}}, {"padding", List{padding}}, {"groups", l.groups}};
  Attrs back = attrs, weight = attrs;
  back.set("size", List{l.size, l.size});
  weight.set("kernel", List{l.kernel, l.kernel});
  const Case cases[] = {{"forward", "conv", {x, w, b}, {y}, 3, 1, 0, attrs},
                        {"input", "conv_transpose", {y, w}, {x}, 3, 1, 0, back},
                        {"weight", "conv_grad_weight", {x, y}, {w, b}, 3, 1, 0, weight}};
  const double flops =
      2.0 * static_cast<double>(batch * out * out * l.outputs * l.kernel * l.kernel * l.inputs / l.groups);
  std::printf(
      "{\"dtype\": \"%s\", \"inputs\": %d, \"outputs\": %d, \"kernel\": %d, \"stride\": %d, \"size\": %d, "
      "\"groups\": %d, \"count\": %d, \"gflop\": %.2f",
      std::string(dtype_name(type)).c_str(), static_cast<int>(l.inputs), static_cast<int>(l.outputs),
      static_cast<int>(l.kernel), static_cast<int>(l.stride), static_cast<int>(l.size),
      static_cast<int>(l.groups), l.count, flops / 1e9);
  for (const Case& c : cases) std::printf(", \"%s\": %.3f", c.name.c_str(), best_ms(c, threads, repeats));
  std::printf("}\n");
  std::fflush(stdout);
}

int main(int argc, char** argv) {
  Arguments arguments(
      argc, argv,
      "bench_convolutions [--threads=N] [--repeats=N] [--batch=N] [--dtype=f32|bf16] [--layer=I]");
  const int threads = arguments.whole("threads", 1), repeats = arguments.whole("repeats", 5),
            batch = arguments.whole("batch", 16);
  const std::string dtype = arguments.text("dtype", ""), layer = arguments.text("layer", "");
  const int only = layer.empty() ? 0 : arguments.whole_of("--layer", layer);  // of all, from 1
  if (!dtype.empty() && dtype != "f32" && dtype != "bf16") arguments.refuse("--dtype", dtype, "f32 or bf16");
  arguments.words(0);
  ThreadTeam team(threads);
  set_thread_team(&team);
  set_thread_count(threads);
  for (const DType type : {DType::kF32, DType::kBF16}) {
    if (!dtype.empty() && dtype != dtype_name(type)) continue;
    for (size_t i = 0; i < std::size(kLayers); ++i)
      if (only == 0 || static_cast<int>(i) + 1 == only) measure(kLayers[i], batch, type, threads, repeats);
  }
  return 0;
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) { return cairn::bench::main(argc, argv); }
