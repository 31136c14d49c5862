// A program with everything resolved to addresses: running it is a walk over an array. Internal to
// runtime/engine.
#pragma once
#include <array>
#include <deque>
#include <optional>

#include "runtime/engine/session.h"

namespace cairn::engine {

// Lets a cancelled run fall through the work it has queued, and takes turns with other sessions of the same
// plan.
class GuardedKernel : public kernels::Kernel {
 public:
  GuardedKernel(const kernels::Kernel& inner, std::mutex* lock, const std::atomic<bool>& cancelled,
                std::atomic<bool>& skipped, std::atomic<bool>& added)
      : inner_(inner), lock_(lock), cancelled_(cancelled), skipped_(skipped), added_(added) {}
  int64_t workspace_bytes() const override { return inner_.workspace_bytes(); }
  void run(const kernels::Call& call) const override {
    if (cancelled_.load(std::memory_order_relaxed)) {
      skipped_.store(true, std::memory_order_relaxed);
      return;
    }
    if (call.accumulate != 0) added_.store(true, std::memory_order_relaxed);
    const auto turn = lock_ != nullptr ? std::unique_lock(*lock_) : std::unique_lock<std::mutex>();
    inner_.run(call);
  }

 private:
  const kernels::Kernel& inner_;
  std::mutex* const lock_;
  const std::atomic<bool>& cancelled_;
  std::atomic<bool>& skipped_;
  std::atomic<bool>& added_;
};

struct LoadedProgram {
  struct LoadedLaunch {
    const kernels::Kernel* kernel;
    kernels::Call call;
    uint32_t accumulates, first_writer;
  };
  const Program* program = nullptr;
  std::vector<Tensor> tensors;
  std::vector<LoadedLaunch> launches;
  std::vector<device::Copy> copies;
  std::vector<std::unique_ptr<device::Event>> events;
  std::vector<uint8_t> live;  // per range: begun and not ended
};

struct Session::Loaded {
  device::Ledger ledger;  // of this session: several may share the device
  std::array<std::unique_ptr<device::Block>, kTierCount> blocks;
  std::vector<std::unique_ptr<GuardedKernel>> kernels;
  LoadedProgram main, prologue;
  std::atomic<bool> skipped{false};
  std::atomic<bool> added{false};  // a kernel of this run began to add to what was there before
  int64_t persistent_bytes = 0;

  // Work of Session::launch(), until the next synchronize().
  struct Pending {
    std::vector<Tensor> in, out;
  };
  std::deque<Pending> pending;
  std::optional<Error> poison;
  std::optional<Error> stopped;  // nothing runs any more, but what persists can be read

  bool tracing = false;
  struct Traced {
    int32_t instruction;
    int64_t live_bytes;
  };
  std::array<std::vector<Traced>, 3> traced;  // per lane: what was submitted, in order
  std::vector<Span> spans;

  // Last, so that they end first: their work uses everything above. They fail together, and no other
  // session's with them.
  std::array<std::unique_ptr<device::Queue>, 3> queues;

  device::Queue& queue(device::Lane lane) { return *queues[static_cast<size_t>(lane)]; }
  char* arena() const { return static_cast<char*>(blocks[0]->address()); }

  void start(device::Device& device, const std::atomic<bool>& cancelled);  // the queues
  // Ends what is under way, whatever comes of it.
  void drain();
  // After drain(): runs this plan from here on, which uses no `lost` tier and fits the arena.
  void change(const CompiledPlan& plan, Tier lost, device::Device& device,
              const std::atomic<bool>& cancelled);
  void take_memory(const CompiledPlan& plan, device::Device& device);
  void resolve(const Program& program, device::Device& device, LoadedProgram& loaded);
  // Submits the program's work. False: cancelled on the way; all ranges it began have ended.
  bool walk(LoadedProgram& loaded, const RunKey& key, const std::atomic<bool>& cancelled);
  void end_ranges(LoadedProgram& loaded);
  void collect_spans(double run_began);
};

}  // namespace cairn::engine
