// A compiled plan loaded on a device: the arena, the tiers' arenas, queues and events, and the values that
// persist from step to step. Takes all its memory in the constructor, nothing later. One thread at a time.
#pragma once
#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/engine/program.h"

namespace cairn::engine {

struct RunKey {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint32_t micro = 0;  // index inside the effective batch; 0 overwrites gradients
};

struct RunReport {
  double seconds = 0;
  double stall_seconds = 0;  // compute waited for copies
};

// One span of work, for traces. Lanes as device::Lane; seconds since the run began; instruction: index into
// the program's code, -1 - index for the prologue's.
struct Span {
  device::Lane lane;
  double begin, end;
  int32_t instruction;
};

class Session {
 public:
  // kOutOfMemory / kIo as Device::allocate.
  Session(std::shared_ptr<const CompiledPlan> plan, std::shared_ptr<device::Device> device);
  ~Session();

  const CompiledPlan& plan() const { return *plan_; }
  device::Device& device() { return *device_; }
  std::shared_ptr<device::Device> device_ptr() const { return device_; }

  // Persistent values by joint id. Sizes must match exactly: kInvalidArgument naming the value and both
  // sizes.
  void write(int32_t value, const void* from, int64_t bytes);
  void read(int32_t value, void* to, int64_t bytes) const;
  void* address(int32_t value) const;  // host address on CPU devices; the value must persist
  // Part of a persistent value.
  void write_at(int32_t value, int64_t offset, const void* from, int64_t bytes);
  void read_at(int32_t value, int64_t offset, void* to, int64_t bytes) const;

  // Packed weights are stale (parameters changed): the next run repacks first.
  void parameters_changed() { packs_stale_ = true; }

  // One micro-batch: forward and backward. Inputs must have been written. kCancelled: stopped at an
  // instruction boundary; gradients of this step are then undefined (the stepper discards the effective
  // batch). Any other error poisons the session: later calls throw the same error.
  RunReport run(const RunKey& key);
  // Runs one kernel of the optimizer on persistent values, in order on the compute queue (see
  // step/optimizer.cc).
  void launch(const kernels::Kernel& kernel, std::vector<Tensor> in, std::vector<Tensor> out,
              uint32_t accumulate);
  void synchronize();
  Tensor tensor(int32_t value) const;  // device tensor of a persistent value

  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }  // any thread
  bool take_cancel() { return cancelled_.exchange(false); }
  bool poisoned() const;
  // Scratch for optimizer kernels: the part of the arena above the persistent values; at least `bytes`.
  void* workspace(int64_t bytes);

  // Bytes of this session alone, as measured: its blocks, and the ranges in use inside them. Peaks are over
  // all runs since construction or reset_peaks().
  device::TierCount count(Tier tier) const;
  void reset_peaks();

  // Spans of every launch and copy of later runs; spans() gives those of the last run.
  void trace(bool on);
  const std::vector<Span>& spans() const;

 private:
  struct Loaded;
  std::shared_ptr<const CompiledPlan> plan_;
  std::shared_ptr<device::Device> device_;
  std::unique_ptr<Loaded> loaded_;
  std::atomic<bool> cancelled_{false};
  bool packs_stale_ = true;

  void settle() const;       // waits for work that launch() left running
  void raise() const;        // throws the session's poison, if there is one
  void keep_poison() const;  // from inside a catch block: keeps the error and throws it
};

}  // namespace cairn::engine
