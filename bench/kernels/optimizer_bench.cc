// The optimizers' pass over GPT-2 124M, against copying as many bytes: what an update reads and writes, half of it read and
// half written by a copy past the caches. Both in turns; medians, and the middle half of the ratios.
//   bench_optimizer [--threads=N] [--repeats=N] [--only=OPTIMIZER] [--parameters=f32|bf16]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "kernels/registry.h"
#include "runtime/base/os/clock.h"
#include "runtime/base/parallel.h"
#include "runtime/ops/optimizers.h"

namespace cairn::bench {
namespace {

std::vector<Shape> gpt2_parameters() {
  constexpr int64_t kWidth = 768;
  std::vector<Shape> list = {{50257, kWidth}, {1024, kWidth}, {kWidth}, {kWidth}};
  for (int layer = 0; layer < 12; ++layer)
    for (const Shape& shape :
         {Shape{kWidth}, Shape{kWidth}, Shape{3 * kWidth, kWidth}, Shape{3 * kWidth}, Shape{kWidth, kWidth},
          Shape{kWidth}, Shape{kWidth}, Shape{kWidth}, Shape{4 * kWidth, kWidth}, Shape{4 * kWidth},
          Shape{kWidth, 4 * kWidth}, Shape{kWidth}})
      list.push_back(shape);
  return list;
}

// Bytes at a cache line, present before anything is timed.
class Bytes {
 public:
  explicit Bytes(int64_t bytes)
      : size_(static_cast<size_t>(bytes)), data_(std::aligned_alloc(4096, (size_ + 4095) / 4096 * 4096)) {
    std::memset(data_.get(), 0, size_);
  }
  char* data() const { return static_cast<char*>(data_.get()); }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  size_t size_;
  std::unique_ptr<void, Free> data_;
};

// One optimizer over all tensors.
class Pass {
 public:
  // parameters: what those of two dimensions are stored as.
  Pass(const ops::OptimizerRow& row, DType parameters, int threads) : hyper_(update_op::kHyperSlots) {
    std::vector<double> values;
    for (const ops::Hyper& hyper : row.hypers) values.push_back(hyper.value);
    if (const int momentum = row.hyper("momentum"); momentum >= 0)
      values[static_cast<size_t>(momentum)] = 0.9;
    row.rule(values, {.rate = 1e-4, .t = 10}, hyper_.data());
    hyper_[update_op::kFactorSlot] = 1.0;
    for (const Shape& shape : gpt2_parameters()) {
      const TensorDesc x{DType::kF32, shape}, numbers{DType::kF64, Shape{update_op::kHyperSlots}};
      const bool rounds = parameters == DType::kBF16 && shape.rank >= 2;
      std::vector<TensorDesc> in = {x, numbers}, out = {{rounds ? DType::kBF16 : DType::kF32, shape}};
      Attrs attrs{{"optimizer", std::string(row.name)}};
      if (rounds) attrs.set("rng", static_cast<int64_t>(calls_.size()));
      for (const ops::OptimizerState& state : row.states)
        if (const auto tensor = row.tensor_of(state, values, x)) out.push_back(*tensor);
      Call call;
      call.kernel =
          kernels::cpu_registry().find({"update", in, out, 3, (1u << out.size()) - 1, &attrs, threads});
      if (call.kernel == nullptr) std::exit(2);
      call.in = {tensor(x, -1e-3f), {numbers, hyper_.data()}};
      for (const TensorDesc& desc : out) {
        call.out.push_back(tensor(desc, 0.02f));
        moved_ += 2 * desc.bytes();
        states_ += &desc == &out[0] ? 0 : desc.bytes();
      }
      moved_ += x.bytes();
      workspace_ = std::max(workspace_, call.kernel->workspace_bytes());
      calls_.push_back(std::move(call));
    }
    space_ = std::make_unique<Bytes>(workspace_ + 64);
  }
  double seconds() const {
    const double start = now();
    for (const Call& call : calls_) call.kernel->run({call.in, call.out, space_->data(), 0, {}});
    return now() - start;
  }
  int64_t moved_bytes() const { return moved_; }
  int64_t state_bytes() const { return states_; }

 private:
  struct Call {
    std::unique_ptr<kernels::Kernel> kernel;
    std::vector<Tensor> in, out;
  };

  // Numbers of both signs and of several magnitudes; bfloat16 and blocks of 8 bits begin as 0.
  Tensor tensor(const TensorDesc& desc, float scale) {
    storage_.push_back(std::make_unique<Bytes>(desc.bytes()));
    const Tensor t{desc, storage_.back()->data()};
    uint32_t state = static_cast<uint32_t>(storage_.size());
    if (desc.dtype == DType::kF32)
      for (int64_t i = 0; i < desc.shape.elements(); ++i) {
        state = state * 1664525u + 1013904223u;
        const float drawn = static_cast<float>(state >> 8) * 0x1p-24f;
        t.as<float>()[i] = scale < 0 ? scale * (drawn - 0.5f) : scale * drawn;
      }
    return t;
  }

  std::vector<double> hyper_;
  std::vector<std::unique_ptr<Bytes>> storage_;
  std::vector<Call> calls_;
  std::unique_ptr<Bytes> space_;
  int64_t moved_ = 0, states_ = 0, workspace_ = 0;
};

// Of so many bytes, half of them read and half written: libc's memcpy, in long shares, as many as there are threads.
double copy_seconds(const Bytes& from, const Bytes& to, int64_t held, int64_t bytes) {
  const double start = now();
  for (int64_t left = bytes / 2; left > 0; left -= held) {
    const int64_t count = std::min(left, held);
    parallel_for(count, 4096, [&](int64_t begin, int64_t end, int) {
      std::memcpy(to.data() + begin, from.data() + begin, static_cast<size_t>(end - begin));
    });
  }
  return now() - start;
}

double quantile(std::vector<double> values, double at) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(at * static_cast<double>(values.size() - 1) + 0.5)];
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) {
  using namespace cairn;
  bench::Arguments arguments(
      argc, argv, "bench_optimizer [--threads=N] [--repeats=N] [--only=OPTIMIZER] [--parameters=f32|bf16]");
  const int threads = arguments.whole("threads", 2), repeats = arguments.whole("repeats", 15);
  const std::string only = arguments.text("only", ""), stored = arguments.text("parameters", "f32");
  if (stored != "f32" && stored != "bf16") arguments.refuse("--parameters", stored, "f32 or bf16");
  const DType parameters = dtype_from_name(stored);
  arguments.words(0);
  ThreadTeam team(threads);
  set_thread_team(&team);
  set_thread_count(threads);
  constexpr int64_t kHeld = int64_t{256} << 20;
  const bench::Bytes from(kHeld), to(kHeld);
  std::printf("GPT-2 124M, %d threads, %d repeats\n%-8s %9s %9s %9s %9s %9s  %s\n", threads, repeats, "",
              "state MB", "moved MB", "update s", "copy s", "GB/s", "copy / update: median (quartiles)");
  for (const ops::OptimizerRow& row : ops::optimizers()) {
    if (!only.empty() && row.name != only) continue;
    const bench::Pass pass(row, parameters, threads);
    std::vector<double> updates, copies, ratios;
    for (int i = -1; i < repeats; ++i) {
      const double copy_before = bench::copy_seconds(from, to, kHeld, pass.moved_bytes()),
                   update = pass.seconds();
      if (i < 0) continue;
      updates.push_back(update);
      copies.push_back(copy_before);
      ratios.push_back(copy_before / update);
    }
    const double update = bench::quantile(updates, 0.5);
    std::printf("%-8s %9.1f %9.1f %9.4f %9.4f %9.2f  %.3f (%.3f to %.3f)\n", std::string(row.name).c_str(),
                static_cast<double>(pass.state_bytes()) * 1e-6,
                static_cast<double>(pass.moved_bytes()) * 1e-6, update, bench::quantile(copies, 0.5),
                static_cast<double>(pass.moved_bytes()) / update * 1e-9, bench::quantile(ratios, 0.5),
                bench::quantile(ratios, 0.25), bench::quantile(ratios, 0.75));
  }
}
