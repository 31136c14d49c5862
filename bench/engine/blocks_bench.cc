// bench_blocks [--threads=N] [--repeats=N] [--megabytes=N] [--rows=N] [--formats=A,B]: products of one row, and of many rows,
// with weights in blocks. Of one row: the share of the time in which memory would copy the blocks; of many: of the
// product with the same weight in bfloat16. Weights take turns, so that none is in a cache.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "kernels/registry.h"
#include "runtime/base/os/clock.h"
#include "runtime/base/parallel.h"
#include "runtime/formats/codecs.h"

namespace cairn {
namespace {

struct Shape2 {
  int64_t n, k;
};
constexpr Shape2 kShapes[] = {{2048, 2048}, {5632, 2048}, {2048, 5632}};

struct Aligned {
  std::vector<char> bytes;
  char* at;
  explicit Aligned(int64_t count) : bytes(static_cast<size_t>(count) + 4096) {
    at = bytes.data() + (4096 - reinterpret_cast<uintptr_t>(bytes.data()) % 4096);
  }
};

// Copies of one weight, enough of them to fill `bytes`.
class Weights {
 public:
  Weights(DType type, Shape2 s, int64_t bytes)
      : desc{type, {s.n, s.k}, 0}, each_(align_up(desc.bytes(), 4096)) {
    count_ = std::max<int64_t>(2, bytes / each_);
    space_ = std::make_unique<Aligned>(count_ * each_);
    std::mt19937 random(7);
    std::normal_distribution<float> normal(0, 0.02f);
    std::vector<float> numbers(static_cast<size_t>(s.n * s.k));
    for (float& x : numbers) x = normal(random);
    formats::codec(type).encode(numbers.data(), s.n * s.k, space_->at);
    for (int64_t i = 1; i < count_; ++i)
      std::memcpy(space_->at + i * each_, space_->at, static_cast<size_t>(desc.bytes()));
  }
  void* next() { return space_->at + (turn_++ % count_) * each_; }

  const TensorDesc desc;

 private:
  int64_t each_, count_, turn_ = 0;
  std::unique_ptr<Aligned> space_;
};

double product_seconds(Weights& w, int64_t m, int threads, int repeats) {
  const DType t = DType::kBF16;
  const TensorDesc x{t, {m, w.desc.shape[1]}, 0}, y{t, {m, w.desc.shape[0]}, 0};
  const TensorDesc in[] = {x, w.desc}, out[] = {y};
  const Attrs none;
  const kernels::Signature s{"linear", in, out, 3, 1, &none, threads};
  const auto kernel = kernels::select(kernels::cpu_registry(), s);
  Aligned workspace(kernel->workspace_bytes()), of_x(x.bytes()), of_y(y.bytes());
  for (int64_t i = 0; i < x.shape.elements(); ++i)
    reinterpret_cast<bf16*>(of_x.at)[i] = to_bf16(static_cast<float>(i % 13) / 16.0f - 0.4f);
  double best = 1e30;
  for (int i = 0; i < repeats + 2; ++i) {
    const Tensor operands[] = {{x, of_x.at}, {w.desc, w.next()}}, made[] = {{y, of_y.at}};
    const double begin = now();
    kernel->run({operands, made, workspace.at, 0, {}});
    if (i >= 2) best = std::min(best, now() - begin);
  }
  return best;
}

// Bytes a second that memory copies.
double copy_rate(int64_t bytes, int repeats) {
  Aligned from(bytes), to(bytes);
  std::memset(from.at, 1, static_cast<size_t>(bytes));
  double best = 1e30;
  for (int i = 0; i < repeats; ++i) {
    const double begin = now();
    parallel_for(bytes, 4096, [&](int64_t b, int64_t e, int) {
      std::memcpy(to.at + b, from.at + b, static_cast<size_t>(e - b));
    });
    best = std::min(best, now() - begin);
  }
  return static_cast<double>(bytes) / best;
}

void compare(Shape2 s, const std::vector<std::string>& names, int64_t bytes, int64_t rows, int threads,
             int repeats) {
  std::printf("weight [%d, %d], 1 row and %d rows\n", static_cast<int>(s.n), static_cast<int>(s.k),
              static_cast<int>(rows));
  double plain = 0;
  for (const std::string& name : names) {
    Weights w(dtype_from_name(name), s, bytes);
    const double copied = static_cast<double>(w.desc.bytes()) / copy_rate(256 << 20, repeats);
    const double one = product_seconds(w, 1, threads, repeats),
                 many = product_seconds(w, rows, threads, repeats);
    if (name == "bf16") plain = many;
    std::printf("%-11s 1 row %7.1f us, %5.2f GB/s, %.2f of copying", name.c_str(), one * 1e6,
                static_cast<double>(w.desc.bytes()) / one * 1e-9, copied / one);
    std::printf(plain > 0 ? "; %8.1f us, %.2f of bf16\n" : "; %8.1f us\n", many * 1e6, plain / many);
  }
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  using namespace cairn;
  bench::Arguments arguments(
      argc, argv, "bench_blocks [--threads=N] [--repeats=N] [--megabytes=N] [--rows=N] [--formats=A,B,...]");
  const int threads = arguments.whole("threads", 2), repeats = arguments.whole("repeats", 40),
            rows = arguments.whole("rows", 512), megabytes = arguments.whole("megabytes", 400);
  std::vector<std::string> names;
  std::string list = arguments.text("formats", "bf16,nf4,nf4_nested,q4_k,q8_0,int8,q4_0,q6_k,mxfp4,u4,fp8");
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    names.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  arguments.words(0);
  set_thread_count(threads);
  for (const Shape2 s : kShapes) compare(s, names, int64_t{megabytes} << 20, rows, threads, repeats);
  return 0;
}
