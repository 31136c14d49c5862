// A store: the memory, queues and programs that sessions share. Programs have everything resolved to
// addresses: running one is a walk over an array. Internal to runtime/exec.
#pragma once
#include <array>
#include <optional>

#include "runtime/exec/session.h"
#include "runtime/exec/team_kernel.h"

namespace cairn::engine {

// Lets a cancelled run fall through the work it has queued, and takes turns with other sessions of the same
// plan.
class GuardedKernel : public kernels::Kernel {
 public:
  enum class Cancel : uint8_t {
    kSkips,
    kSkipsUntilCommit,  // a parameter was updated: from there on nothing is skipped
    kNever,
  };
  struct Flags {
    const std::atomic<bool>& cancelled;
    std::atomic<bool>& skipped;
    std::atomic<bool>& added;      // a kernel began to add to what was there before
    std::atomic<bool>& committed;  // a parameter was updated
    std::mutex& fate;              // held by who decides between the two
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
  // Updates may run on another lane than what a cancel skips: once something was skipped none of them is made, and once one is
  // nothing is skipped.
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

// A kernel of an update, which no cancelling stops: takes turns, and notes that it ran.
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
  std::vector<uint8_t> live;  // per range: begun and not ended

  // On devices that record: the program as one piece of work, for the first micro-batch of a step, for later ones,
  // which add to gradients, and for those that make deferred updates. Recorded the second time that it runs: kernels are loaded then;
  // and the third time without what measures, if anything does. One run of kMeasuredEach is measured.
  struct Variant {
    static constexpr int64_t kMeasuredEach = 32;
    int64_t runs = 0;
    std::unique_ptr<device::Recording> measured, plain;
    bool measures_next() const {
      return (runs - 1) % kMeasuredEach == 0 || measured == nullptr || !measured->measures();
    }
    std::array<device::TierCount, kTierCount> peaks{};  // of what it brings to life, for the ledger
    bool adds = false, commits = false;                 // as GuardedKernel notes them
  };
  std::array<Variant, 3> variants;
};

// What one session runs.
struct LoadedPlan {
  std::shared_ptr<const CompiledPlan> plan;
  std::shared_ptr<const CompiledPlan> before;             // it fell back: callers may still hold this one
  std::vector<std::unique_ptr<kernels::Kernel>> on_team;  // the plan's host_kernels, by number; else nullptr
  std::vector<std::unique_ptr<kernels::Kernel>> kernels, finishing;  // of runs, of updates
  std::vector<bool> commits;            // per kernel: it updates a parameter in the midst of a run
  std::vector<LoadedProgram> programs;  // by phase
  LoadedProgram fetched_repack;
  std::vector<int32_t> unwritten;  // inputs that its runs read
  bool packed_stale = true;        // those that this plan's repacking makes
  std::vector<Span> spans;         // of its last traced run

  template <class Visit>
  void each_program(const Visit& visit) {
    for (LoadedProgram& loaded : programs) visit(loaded);
    visit(fetched_repack);
  }
};

// What of a program with deferred updates runs.
enum class Pass : uint8_t { kWithoutUpdates, kWhole, kUpdatesAlone };

struct Store {
  std::shared_ptr<device::Device> device;
  int64_t taken_before = 0;
  std::vector<LoadedPlan> plans;
  size_t primary = 0;                // the plan that updates, and repacks what it shares with others
  bool fetched_packed_stale = true;  // of weights that live in a tier
  bool squares_known = false;        // the last run left those of all gradients
  bool update_pending =
      false;  // deferred ones wait for the next run, or for whoever looks at what they change
  bool shows_addresses = false;  // the host may look at any time
  Pass pass = Pass::kWithoutUpdates;

  device::Ledger ledger;  // of this store: several may share the device
  std::array<std::unique_ptr<device::Block>, kTierCount> blocks;
  std::atomic<bool> cancelled{false};
  // A kernel of this run was skipped. Copies heed this and not the cancel, which may come behind the last kernel: then the run
  // is whole, copies and all.
  std::atomic<bool> skipped{false};
  std::atomic<bool> finished{false};   // a kernel of this update ran
  std::atomic<bool> added{false};      // a kernel of this run began to add to what was there before
  std::atomic<bool> committed{false};  // a parameter was updated by this run
  std::mutex fate;                     // GuardedKernel::Flags
  int64_t persistent_bytes = 0;
  std::unique_ptr<ThreadTeam> host_team;  // of kernels on the host lane, if a plan has any
  double submit_seconds = 0;              // of the last run

  // Parameters that were never initialised, loaded or written, by name: zeros, from which nothing is to be trained.
  std::vector<std::string> unwritten;
  // Room to split parameters' elements into halves, or to encode them; nullptr: all are stored as float32.
  static constexpr int64_t kConverted = 1 << 16;  // elements at once
  struct Halves {
    std::array<bf16, kConverted> upper;
    std::array<uint16_t, kConverted> lower;
  };
  std::unique_ptr<Halves> halves;

  // Memory was refused and the queues keep that: start() comes before anything else.
  bool must_start = false;
  std::optional<Error> poison;
  std::optional<Error> stopped;  // nothing runs any more, but what persists can be read

  bool tracing = false;
  struct Traced {
    graph::PhaseIndex phase;
    int32_t instruction;
    int64_t live_bytes;
  };
  std::array<std::vector<Traced>, kLaneCount> traced;  // per lane: what was submitted, in order

  // Last, so that they end first: their work uses everything above. They fail together, and no other
  // session's with them.
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

  // New queues, without the poison of those that there were, whose work is drained. Of the processor's, runs ask for no
  // memory.
  void start();
  // Parameters were changed by the run that failed, those that it was to update first or its own.
  bool updated() const { return committed.load() || (update_pending && finished.load()); }
  // Ends what is under way, whatever comes of it.
  void drain();
  // After drain(): runs these plans from here on, which use no `lost` tier and fit the arena.
  void change(std::vector<std::shared_ptr<const CompiledPlan>> rest, Tier lost);
  void take_memory();
  void load(LoadedPlan& loaded);  // its kernels
  void resolve();                 // all programs of all plans
  void resolve(const LoadedPlan& of, const Program& program,
               const std::vector<std::unique_ptr<kernels::Kernel>>& with, LoadedProgram& loaded);
  // Weights on the device were changed: what is packed of them is stale.
  void packed_weights_changed() {
    for (LoadedPlan& loaded : plans) loaded.packed_stale = true;
  }
  // Submits the program's work, instruction by instruction or as a recording. False: cancelled on the way;
  // all ranges it began have ended.
  bool submit(LoadedPlan& of, LoadedProgram& loaded, const RunKey& key, const std::atomic<bool>& cancelled);
  bool record(LoadedPlan& of, LoadedProgram& loaded, LoadedProgram::Variant& variant, bool measured,
              const RunKey& key, const std::atomic<bool>& cancelled);
  bool walk(LoadedPlan& of, LoadedProgram& loaded, const RunKey& key, const std::atomic<bool>& cancelled);
  void end_ranges(LoadedProgram& loaded);
  size_t works(device::Lane lane) const;  // pieces of work of all programs
  void make_room_for_spans(LoadedPlan& of);
  void collect_spans(LoadedPlan& of, double run_began);
};

// What a refusal of memory costs.
inline constexpr char kBatchIsLost[] =
    "there is no memory for this micro-batch: gradients of its effective batch are lost, parameters and "
    "optimizer state are as before; free something and repeat the effective batch, or make a plan for "
    "smaller "
    "micro-batches";
inline constexpr char kAllIsAsBefore[] =
    "there is no memory for this call: the session is as before; free something and call again";

// unwritten.cc: what a store's runs would read and nobody wrote.
void note_unwritten(Store& store);
// The value was written, up to its last byte; or the host has its address.
void note_written(Store& store, LoadedPlan& of, int32_t value);
// kWrongState: names the parameters and inputs that have no values.
void require_written(const Store& store, const LoadedPlan& of);

}  // namespace cairn::engine
