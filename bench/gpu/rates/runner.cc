#include "bench/gpu/rates/runner.h"

#include <algorithm>
#include <cmath>

#include "runtime/ops/ops.h"

namespace cairn::bench {
namespace {

constexpr int64_t kNoiseBytes = int64_t{16} << 20;

int64_t bytes_of(const std::vector<TensorDesc>& list, uint32_t present) {
  int64_t sum = 0;
  for (size_t i = 0; i < list.size(); ++i)
    if (present >> i & 1u) sum += align_up(list[i].bytes(), int64_t{256});
  return sum;
}

double median(std::vector<double> list) {
  std::sort(list.begin(), list.end());
  return list[list.size() / 2];
}

// Several runs of a kernel as one launch, so that nothing of the queue's lies between them.
class Repeated final : public kernels::Kernel {
 public:
  Repeated(const kernels::Kernel& inner, const std::vector<kernels::Call>& calls, int times)
      : inner_(inner), calls_(calls), times_(times) {}
  void run(const kernels::Call& call) const override {
    for (int i = 0; i < times_; ++i) {
      kernels::Call one = calls_[static_cast<size_t>(i) % calls_.size()];
      one.lane = call.lane;
      inner_.run(one);
    }
  }

 private:
  const kernels::Kernel& inner_;
  const std::vector<kernels::Call>& calls_;
  const int times_;
};

}  // namespace

Bench::Bench(device::Device& device, const Effort& effort) : device_(device), effort_(effort) {
  block_ = device.allocate(Tier::kDevice, effort.memory_bytes);
  noise_ = device.allocate(Tier::kDevice, std::min(kNoiseBytes, effort.memory_bytes));
  // Numbers in (-0.5, 0.5), as float32 and as pairs of bfloat16: products take less power, and less time, on
  // zeros.
  std::vector<uint32_t> words(static_cast<size_t>(noise_->bytes()) / 4);
  uint32_t state = 12345;
  for (uint32_t& word : words) {
    state = state * 1664525u + 1013904223u;
    const float v = static_cast<float>(state >> 8) * 0x1p-24f - 0.5f;
    const auto bits = __builtin_bit_cast(uint32_t, v);
    word = bits >> 16 | (bits & 0xffff0000u);
  }
  noise_->write(0, words.data(), noise_->bytes());
}

int64_t Bench::take(int64_t bytes) {
  const int64_t offset = used_;
  used_ += align_up(bytes, int64_t{256});
  require(used_ <= block_->bytes(), Code::kOutOfMemory, "more than ", block_->bytes(), " bytes of operands");
  return offset;
}

template <class Submit>
double Bench::timed(device::Queue& queue, const Submit& submit) const {
  const auto spans = [&](int times, int samples) {
    queue.trace(true);
    for (int i = 0; i < samples; ++i) submit(times);
    queue.synchronize();
    std::vector<double> seconds;
    for (const device::Queue::Busy& busy : queue.take_trace())
      seconds.push_back((busy.end - busy.begin) / times);
    queue.trace(false);
    return seconds;
  };
  spans(1, 1);  // code is loaded
  const double rough = std::max(spans(1, 1).at(0), 1e-7);
  const int times = static_cast<int>(
      std::clamp(std::ceil(effort_.sample_seconds / rough), 1.0, static_cast<double>(effort_.max_launches)));
  // The first sample begins before the host has submitted what follows it; the others wait for it.
  std::vector<double> seconds = spans(times, effort_.samples + 1);
  seconds.erase(seconds.begin());
  return median(std::move(seconds));
}

double Bench::copy_rate() {
  const int64_t bytes = std::min(effort_.copy_bytes, block_->bytes() / 2);
  const std::vector<device::Copy> parts(static_cast<size_t>(effort_.max_launches),
                                        {{block_.get(), bytes}, {block_.get(), 0}, bytes});
  const auto queue = device_.create_queue(device::Lane::kCompute, device_.create_group());
  const double seconds =
      timed(*queue, [&](int times) { queue->copy(std::span(parts).first(static_cast<size_t>(times))); });
  return 2 * static_cast<double>(bytes) / seconds;
}

double Bench::seconds(const kernels::Kernel& kernel, const Case& c) {
  const auto queue = device_.create_queue(device::Lane::kCompute, device_.create_group());
  used_ = 0;
  void* const workspace = at(take(std::max<int64_t>(kernel.workspace_bytes(), 1)));
  const int64_t set_bytes =
      std::max<int64_t>(bytes_of(c.in, c.in_present) + bytes_of(c.out, c.out_present), 1);
  const int64_t wanted = (effort_.cold_bytes + set_bytes - 1) / set_bytes;
  const int64_t fit = (block_->bytes() - used_) / set_bytes;
  std::vector<Set> sets;
  std::vector<kernels::Call> calls;
  const auto count = static_cast<size_t>(std::clamp<int64_t>(std::min(wanted, fit), 1, 64));
  for (size_t i = 0; i < count; ++i) sets.push_back(place(c, *queue));
  for (const Set& set : sets) {
    kernels::Call call{set.in, set.out, workspace, 0, {}};
    call.key.seed = 1;
    calls.push_back(call);
  }
  queue->synchronize();
  std::vector<std::unique_ptr<Repeated>> repeated;  // until the queue is done
  const double seconds = timed(*queue, [&](int times) {
    repeated.push_back(std::make_unique<Repeated>(kernel, calls, times));
    queue->launch(*repeated.back(), calls[0]);
  });
  queue->synchronize();
  return seconds;
}

Bench::Set Bench::place(const Case& c, device::Queue& queue) {
  Set set;
  const auto add = [&](const std::vector<TensorDesc>& descs, uint32_t present, bool output,
                       std::vector<Tensor>& to) {
    for (size_t i = 0; i < descs.size(); ++i) {
      to.push_back({descs[i], nullptr});
      if (!(present >> i & 1u)) continue;
      const int64_t offset = take(descs[i].bytes());
      to.back().data = at(offset);
      fill(c, i, output, descs[i], offset, queue);
    }
  };
  add(c.in, c.in_present, false, set.in);
  add(c.out, c.out_present, true, set.out);
  return set;
}

void Bench::fill(const Case& c, size_t index, bool output, const TensorDesc& desc, int64_t offset,
                 device::Queue& queue) {
  if (desc.dtype == DType::kI32) {  // tokens, or rows of a table
    const int64_t classes = c.op == "embedding"                                       ? c.in[0].shape[0]
                            : c.op == "embedding_grad"                                ? c.out[0].shape[0]
                            : c.op == "cross_entropy" || c.op == "cross_entropy_grad" ? c.in[0].shape.last()
                                                                                      : c.in[1].shape[0];
    std::vector<int32_t> ids(static_cast<size_t>(desc.shape.elements()));
    uint32_t state = 1;
    for (int32_t& id : ids)
      id = static_cast<int32_t>(((state = state * 1664525u + 1013904223u) >> 8) %
                                static_cast<uint32_t>(classes));
    return block_->write(offset, ids.data(), desc.bytes());
  }
  if (desc.dtype == DType::kF64) {
    const std::vector<double> hyper{1e-4, 0.9, 0.95, 1e-8, 0.1, 0.1, 0.05, 1.0};
    return block_->write(offset, hyper.data(), std::min<int64_t>(desc.bytes(), 64));
  }
  if (c.op == "update" && output && index % ops::row(ops::OpCode::k_update).outputs.size() == 2)
    return fill_constant(1e-6f, offset, desc.bytes(), queue);
  if (c.op == "attention_grad" && !output && index == 5)
    return fill_constant(8.0f, offset, desc.bytes(), queue);
  fill_noise(offset, desc.bytes(), queue);
}

void Bench::fill_noise(int64_t offset, int64_t bytes, device::Queue& queue) {
  for (int64_t done = 0; done < bytes; done += noise_->bytes())
    queue.copy({block_.get(), offset + done}, {noise_.get(), 0}, std::min(noise_->bytes(), bytes - done));
}

void Bench::fill_constant(float value, int64_t offset, int64_t bytes, device::Queue& queue) {
  const int64_t first = std::min<int64_t>(bytes, int64_t{1} << 20);
  const std::vector<float> values(static_cast<size_t>(first) / 4, value);
  block_->write(offset, values.data(), first);
  for (int64_t done = first; done < bytes; done += std::min(done, bytes - done))
    queue.copy({block_.get(), offset + done}, {block_.get(), offset}, std::min(done, bytes - done));
}

}  // namespace cairn::bench
