// Times kernels and copies on a device by its own clock: several launches between two points of the queue.
#pragma once
#include "bench/kernels/cases.h"
#include "runtime/device/device.h"

namespace cairn::bench {

// How long a measurement takes. Operands go round in sets that together exceed every cache.
struct Effort {
  double sample_seconds = 4e-3;
  int samples = 5, max_launches = 64;
  int64_t cold_bytes = int64_t{512} << 20;
  int64_t memory_bytes = int64_t{8} << 30;  // taken on the device, once
  int64_t copy_bytes = int64_t{2} << 30;    // of the copy that is the yardstick
};

// One block of the device for all cases in turn, and numbers to fill operands with.
class Bench {
 public:
  Bench(device::Device& device, const Effort& effort);

  // Bytes per second of a long copy inside the device, read and written.
  double copy_rate();
  // Median seconds of one run. kOutOfMemory: one set of operands is larger than the block.
  double seconds(const kernels::Kernel& kernel, const Case& c);

 private:
  struct Set {
    std::vector<Tensor> in, out;
  };
  char* at(int64_t offset) const { return static_cast<char*>(block_->address()) + offset; }
  int64_t take(int64_t bytes);
  Set place(const Case& c, device::Queue& queue);
  void fill(const Case& c, size_t index, bool output, const TensorDesc& desc, int64_t offset,
            device::Queue& queue);
  void fill_noise(int64_t offset, int64_t bytes, device::Queue& queue);
  void fill_constant(float value, int64_t offset, int64_t bytes, device::Queue& queue);
  // Median seconds of what one submit(times) submits as one piece of work, for one of the `times`.
  template <class Submit>
  double timed(device::Queue& queue, const Submit& submit) const;

  device::Device& device_;
  const Effort effort_;
  std::unique_ptr<device::Block> block_, noise_;
  int64_t used_ = 0;
};

}  // namespace cairn::bench
