// A store: the memory, queues and programs that sessions share. Programs are resolved to addresses, so that running
// one is a walk over an array. Internal to runtime/exec.
#pragma once
#include <array>
#include <optional>
#include <set>
#include <string>

#include "runtime/exec/session.h"
#include "runtime/exec/team_kernel.h"

namespace cairn::engine {

// Wraps a kernel of a run. Once the run is cancelled, queued kernels do nothing. Sessions of the same plan take
// turns on the kernel.
class GuardedKernel : public kernels::Kernel {
 public:
  enum class Cancel : uint8_t {
    kSkips,
    kSkipsUntilCommit,  // skips, unless the run has updated a parameter
    kNever,
  };
  struct Flags {
    const std::atomic<bool>& cancelled;
    std::atomic<bool>& skipped;
    std::atomic<bool>& added;      // a kernel began to add to earlier gradients
    std::atomic<bool>& committed;  // a parameter was updated
    std::mutex& fate;              // held by the kernel that decides between skipped and committed
  };
  GuardedKernel(const kernels::Kernel& inner, std::mutex* lock, bool commits, Cancel cancel,
                const Flags& flags)
      : inner_(inner), lock_(lock), commits_(commits), cancel_(cancel), flags_(flags) {}
  int64_t workspace_bytes() const override { return inner_.workspace_bytes(); }
  void run(const kernels::Call& call) const override {
    if (skips()) return;
    if (call.accumulate != 0) flags_.added.store(true, std::memory_order_relaxed);
    const auto turn = lock_ != nullptr ? std::unique_lock(*lock_) : std::unique_lock<std::mutex>();
    inner_.run(call);
  }

 private:
  // Updates may run on another queue than the kernels that a cancel skips. A run either updates and skips nothing,
  // or skips and updates nothing.
  bool skips() const {
    const bool cancelled = cancel_ != Cancel::kNever && flags_.cancelled.load(std::memory_order_relaxed);
    if (!cancelled && !commits_) return false;
    const std::lock_guard turn(flags_.fate);
    const bool until_commit = cancel_ == Cancel::kSkipsUntilCommit,
               whole = until_commit && flags_.committed.load(std::memory_order_relaxed),
               partly = until_commit && flags_.skipped.load(std::memory_order_relaxed);
    if (!whole && (cancelled || partly)) {
      flags_.skipped.store(true, std::memory_order_relaxed);
      return true;
    }
    if (commits_) flags_.committed.store(true, std::memory_order_relaxed);
    return false;
  }

  const kernels::Kernel& inner_;
  std::mutex* const lock_;
  const bool commits_;
  const Cancel cancel_;
  const Flags flags_;
};

// Wraps a kernel of an update, which no cancel stops. It takes turns as well, and notes that it ran.
class FinishingKernel : public kernels::Kernel {
 public:
  FinishingKernel(const kernels::Kernel& inner, std::mutex* lock, std::atomic<bool>& ran)
      : inner_(inner), lock_(lock), ran_(ran) {}
  int64_t workspace_bytes() const override { return inner_.workspace_bytes(); }
  void run(const kernels::Call& call) const override {
    ran_.store(true, std::memory_order_relaxed);
    const auto turn = lock_ != nullptr ? std::unique_lock(*lock_) : std::unique_lock<std::mutex>();
    inner_.run(call);
  }

 private:
  const kernels::Kernel& inner_;
  std::mutex* const lock_;
  std::atomic<bool>& ran_;
};

struct LoadedProgram {
  struct LoadedLaunch {
    const kernels::Kernel* kernel;
    kernels::Call call;
    uint32_t accumulates, first_writer;
    Micro micro;    // Launch::micro
    bool commits;   // updates a parameter
    bool deferred;  // Launch::deferred
  };
  const Program* program = nullptr;
  std::vector<Tensor> tensors;
  std::vector<LoadedLaunch> launches;
  std::vector<device::Copy> copies;
  std::vector<std::unique_ptr<device::Event>> events;
  std::vector<uint8_t> live;  // by range: its bytes are in use

  // On devices that record, the program as one piece of work. There are three variants: a step's first micro-batch,
  // later ones, which add to gradients, and those that make deferred updates. The second run is recorded, as
  // kernels are loaded by then; the third one once more without measuring, if the first recording measures. From
  // then on one run of kMeasuredEach is measured.
  struct Variant {
    static constexpr int64_t kMeasuredEach = 32;
    int64_t runs = 0;
    std::unique_ptr<device::Recording> measured, plain;
    bool measures_next() const {
      return (runs - 1) % kMeasuredEach == 0 || measured == nullptr || !measured->measures();
    }
    std::array<device::TierCount, kTierCount> peaks{};  // of the bytes that it uses, for the ledger
    bool adds = false, commits = false;                 // as GuardedKernel notes them
  };
  std::array<Variant, 3 * graph::kParts>
      variants;  // of each part of a micro-batch in parts; else the first three
};

// The programs of one session.
struct LoadedPlan {
  std::shared_ptr<const CompiledPlan> plan;
  std::shared_ptr<const CompiledPlan> before;  // the plan until the disk failed, which callers may hold
  std::vector<std::unique_ptr<kernels::Kernel>>
      on_team;  // by kernel: on the host's threads, of host_kernels only
  std::vector<std::unique_ptr<kernels::Kernel>> kernels, finishing;  // by kernel: for runs, for updates
  std::vector<bool> commits;            // by kernel: it updates a parameter within a run
  std::vector<LoadedProgram> programs;  // by phase
  LoadedProgram fetched_repack;
  std::vector<int32_t> unwritten;    // inputs that its runs read and nobody wrote
  bool packed_stale = true;          // the packed weights of this plan have to be computed again
  std::vector<Span> spans;           // of its last traced run
  std::unique_ptr<BaseDigest> base;  // as of the store's frozen_writes then; nullptr: not known
  uint64_t base_writes = 0;

  template <class Visit>
  void each_program(const Visit& visit) {
    for (LoadedProgram& loaded : programs) visit(loaded);
    visit(fetched_repack);
  }
};

// Which part of a program with deferred updates runs.
enum class Pass : uint8_t { kWithoutUpdates, kWhole, kUpdatesAlone };

struct Store {
  std::shared_ptr<device::Device> device;
  int64_t taken_before = 0;
  std::vector<LoadedPlan> plans;
  size_t primary = 0;                // the plan whose update runs; it packs the weights that plans share
  bool fetched_packed_stale = true;  // as packed_stale, of weights that live in a tier
  bool squares_known = false;        // the last run made the sums of squares of all gradients
  bool update_pending =
      false;  // deferred updates are due: at the next run, or when the host asks for a value that they change
  bool shows_addresses = false;  // the host has an address of a value that updates change
  bool shows_frozen = false;     // or of a parameter that is not trained
  uint64_t frozen_writes = 0;    // how often the host wrote such a parameter, or a part of one
  Pass pass = Pass::kWithoutUpdates;

  device::Ledger ledger;  // of this store: several may share the device
  std::array<std::unique_ptr<device::Block>, kTierCount> blocks;
  std::atomic<bool> cancelled{false};
  // A kernel of this run was skipped. Copies look at this and not at the cancel: if that comes after the last
  // kernel, the run is complete, its copies included.
  std::atomic<bool> skipped{false};
  std::atomic<bool> finished{false};   // a kernel of this update ran
  std::atomic<bool> added{false};      // a kernel of this run began to add to earlier gradients
  std::atomic<bool> committed{false};  // a parameter was updated by this run
  std::mutex fate;                     // GuardedKernel::Flags::fate
  int64_t persistent_bytes = 0;
  std::unique_ptr<ThreadTeam> host_team;  // threads of kernels on the host's queue, if a plan has any
  double submit_seconds = 0;              // of the last run

  // The names of parameters that were never initialised, loaded or written. They are zeros; a run on them is refused.
  std::vector<std::string> unwritten;
  bool averages = false;                      // a plan has averages of parameters
  std::set<std::string> averages_begin = {};  // names of parameters that were written after their averages
  // Room to split parameters' elements into halves, or to encode them; nullptr: all are stored as float32.
  static constexpr int64_t kConverted = 1 << 16;  // elements at once
  struct Halves {
    std::array<bf16, kConverted> upper;
    std::array<uint16_t, kConverted> lower;
  };
  std::unique_ptr<Halves> halves;

  // Memory was refused, and the queues repeat that error: start() has to come first.
  bool must_start = false;
  std::optional<Error> poison;
  std::optional<Error> stopped;  // nothing runs any more, but persistent values can be read

  bool tracing = false;
  struct Traced {
    graph::PhaseIndex phase;
    int32_t instruction;
    int64_t live_bytes;
  };
  std::array<std::vector<Traced>, kLaneCount> traced;  // by queue: what was submitted, in order

  // Declared last, so that they are destroyed first: their work uses everything above. The queues of a group fail
  // together, and no queue of another store fails with them.
  std::shared_ptr<device::Group> group;
  std::array<std::unique_ptr<device::Queue>, kLaneCount> queues;  // of the lanes that its plans use

  device::Queue& queue(device::Lane lane) { return *queues[static_cast<size_t>(lane)]; }
  bool has(device::Lane lane) const;
  template <class Visit>
  void each_queue(const Visit& visit) const {
    for (const auto& queue : queues)
      if (queue != nullptr) visit(*queue);
  }
  char* arena() const { return static_cast<char*>(blocks[0]->address()); }

  device::Device* records_on = nullptr;  // nullptr: the device records nothing

  Store(std::vector<std::shared_ptr<const CompiledPlan>> given, std::shared_ptr<device::Device> on);
  ~Store();

  // Makes new queues in place of failed ones, whose work has ended. Runs need no memory on the processor's queues.
  void start();
  // The run that failed had changed parameters, by the deferred updates or by its own.
  bool updated() const { return committed.load() || (update_pending && finished.load()); }
  // Waits for all work, whether it fails or not.
  void drain();
  // After drain(): replaces the plans by these, which do not use the lost tier and fit the arena.
  void change(std::vector<std::shared_ptr<const CompiledPlan>> rest, Tier lost);
  void take_memory();
  void load(LoadedPlan& loaded);  // wraps its kernels
  void resolve();                 // resolves all programs of all plans
  void resolve(const LoadedPlan& of, const Program& program,
               const std::vector<std::unique_ptr<kernels::Kernel>>& with, LoadedProgram& loaded);
  // Weights on the device were changed: their packed forms have to be computed again.
  void packed_weights_changed() {
    for (LoadedPlan& loaded : plans) loaded.packed_stale = true;
  }
  // Submits a program, instruction by instruction or as a recording. False: it was cancelled on the way, and its
  // ranges have ended.
  bool submit(LoadedPlan& of, LoadedProgram& loaded, const RunKey& key, const std::atomic<bool>& cancelled);
  bool record(LoadedPlan& of, LoadedProgram& loaded, LoadedProgram::Variant& variant, bool measured,
              const RunKey& key, const std::atomic<bool>& cancelled);
  bool walk(LoadedPlan& of, LoadedProgram& loaded, const RunKey& key, const std::atomic<bool>& cancelled);
  void end_ranges(LoadedProgram& loaded);
  size_t works(device::Lane lane) const;  // the most work that a queue may hold
  void make_room_for_spans(LoadedPlan& of);
  void collect_spans(LoadedPlan& of, double run_began);
};

// What a refusal of memory means for the session.
inline constexpr char kBatchIsLost[] =
    "there is no memory for this micro-batch: gradients of its effective batch are lost, parameters and "
    "optimizer state are as before; free something and repeat the effective batch, or make a plan for "
    "smaller "
    "micro-batches";
inline constexpr char kAllIsAsBefore[] =
    "there is no memory for this call: the session is as before; free something and call again";

// Values that runs would read and nobody wrote (unwritten.cc).
void note_unwritten(Store& store);
// The value was written up to its last byte, or the host has its address.
void note_written(Store& store, LoadedPlan& of, int32_t value);
// Their averages begin as these, wherever the numbers come from (Session::begin_averages).
void note_average(Store& store, const graph::JointGraph& joint, int32_t value);
// kWrongState: names the parameters and inputs that have no values.
void require_written(const Store& store, const LoadedPlan& of);

}  // namespace cairn::engine
