// A compiled plan on a device. The arenas of all tiers, the queues and the persistent values belong to a store,
// which takes all its memory when it is made. Sessions of plans that were made together share a store: parameters,
// gradients and optimizer state are the same values in all of them. One thread at a time may use the sessions of a
// store.
#pragma once
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/compile/compile.h"
#include "runtime/exec/base_digest.h"

namespace cairn::engine {

struct RunKey {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint32_t micro = 0;  // index within the effective batch; 0 overwrites gradients
  // Of a graph with values of the effective batch (JointGraph::in_parts): the part of the micro-batch that runs, for kLoss with
  // micro 0; nothing: all of them, one after the other, as measurements do.
  std::optional<graph::Part> part = {};
};

struct RunReport {
  double seconds = 0;
  double stall_seconds = 0;  // compute waited for copies
  // How long the host took to submit the work, or its recording. update() does not measure it.
  double submit_seconds = 0;
  // By tier, the bytes that copies moved and the seconds that they took, to and from the device or the host's
  // updates. A link's use while it is busy is bytes / (rate * busy_seconds).
  std::array<device::Traffic, kTierCount> out{}, in{};
  bool fell_back = false;  // the disk failed: this micro-batch ran again, on a plan without it
};

// A piece of work, for traces. begin, end: seconds since the run began. instruction: index into the code of the
// phase's program.
struct Span {
  device::Lane lane;
  double begin, end;
  graph::PhaseIndex phase;
  int32_t instruction;
  int64_t live_bytes;  // bytes of the device's arena in use at this instruction
};

struct LoadedPlan;
struct Store;

// kOutOfMemory after which only gradients are lost: adds to `told` that the effective batch is to be repeated.
// Never fails; without memory it says only the latter.
Error refused_batch(const Error* told = nullptr) noexcept;

class Session {
 public:
  // kOutOfMemory / kIo as Device::allocate.
  Session(std::shared_ptr<const CompiledPlan> plan, std::shared_ptr<device::Device> device);
  ~Session();
  // A session of each plan, in their order, on one store. kInvalidArgument: these are not all plans of one
  // compile_set(), in its order.
  static std::vector<std::shared_ptr<Session>> open(std::vector<std::shared_ptr<const CompiledPlan>> plans,
                                                    std::shared_ptr<device::Device> device);

  const CompiledPlan& plan() const;  // the one that runs now
  device::Device& device() const;
  std::shared_ptr<device::Device> device_ptr() const;
  bool shares_store(const Session& other) const { return store_ == other.store_; }

  // Persistent values by joint id. Sizes must match exactly: kInvalidArgument naming the value and both
  // sizes.
  void write(int32_t value, const void* from, int64_t bytes);
  void read(int32_t value, void* to, int64_t bytes) const;
  // Host address on CPU devices; the value must persist. kUnsupported: it lives in a tier, read() it.
  void* address(int32_t value) const;
  // The same in the types that the graph declares: parameters that are stored in fewer bits are rounded to
  // nearest.
  TensorDesc declared(int32_t value) const;
  void write_declared(int32_t value, const void* from);
  void read_declared(int32_t value, void* to) const;
  // Elements of a parameter from `first` on, where a block of its format begins, encoded as what it is saved as.
  // kInvalidArgument: the format cannot store one of the numbers; those before it may be there.
  void write_floats(int32_t value, int64_t first, std::span<const float> from);
  void read_floats(int32_t value, int64_t first, std::span<float> to) const;
  // A state as files have it: a split parameter is one tensor, in the type that the graph declares. Offset and bytes
  // cover complete elements.
  TensorDesc saved(int32_t value) const;
  void write_saved(int32_t value, int64_t offset, const void* from, int64_t bytes);
  void read_saved(int32_t value, int64_t offset, void* to, int64_t bytes) const;
  // From here on a parameter that no update changes, and that lives on the disk tier, is read from files that have its bytes
  // as they are stored, in these parts, one after the other: nothing is copied. What is written to it later ends that. The
  // files must not be changed while they are read (kIo). False: it does not live there, and is as before.
  struct FilePart {
    std::shared_ptr<const InputFile> file;
    uint64_t at;  // in the file
    int64_t bytes;
  };
  bool borrow(int32_t value, std::span<const FilePart> parts);
  // Digests of the frozen parameters, wherever they live. They are read once, and again only when the host has written
  // one of them or has its address: no training step changes them.
  const BaseDigest& base_digest() const;
  bool is_frozen(int32_t value) const;  // a parameter that is not trained
  // Part of a persistent value.
  void write_at(int32_t value, int64_t offset, const void* from, int64_t bytes);
  void read_at(int32_t value, int64_t offset, void* to, int64_t bytes) const;

  // Parameters were changed in place, at their addresses: packed weights are stale, the next run repacks
  // first.
  void parameters_changed();
  // Packs stale weights now, and not as the first part of the next run: for who measures that. Weights in a tier, and those
  // that wait for deferred updates, are left to the run.
  void pack();

  // One micro-batch: forward and backward, and the updates that the plan fused into it, for which the
  // hyper-parameters must have been written. Inputs must have been written. kCancelled: stopped at an instruction
  // boundary; gradients of this step are then undefined (the stepper discards the effective batch). A failing disk
  // costs the session that tier: it goes on with a plan without it (fallback.h). The micro-batch runs again and is
  // reported as fell_back, where nothing of it was added to gradients of earlier ones; else kIo: the effective
  // batch must be repeated, parameters and optimizer state are as before. Where no such plan fits the arena, this
  // and later runs throw kIo, but values can be read. kOutOfMemory with no parameter updated: gradients are lost,
  // all else is as before; the session goes on as soon as there is memory. kWrongState: values that it reads were
  // never written; names them. Any other error poisons the session: later calls throw the same error, or
  // kWrongState with the remedy where memory was refused once parameters were updated.
  RunReport run(const RunKey& key);
  // Sum of squares of all gradients; not finite if one of them is not. kWrongState: the plan has no
  // optimizer.
  double gradient_squares();
  // One optimizer update, with the hyper-parameters written before (JointGraph::hypers). Deferred updates
  // (JointGraph::updates_deferred) are made by the next run, or as soon as the host reads or writes a parameter, a
  // gradient, optimizer state or hyper-parameters. Packed weights of the weights are made on the way. It cannot be
  // cancelled: once begun it is finished. A disk that fails while optimizer state lives there costs that state:
  // kIo, now and for every later run, says whether parameters were changed; values on the device can still be read.
  // key: of the step's micro-batches; what is rounded stochastically follows from its seed and step.
  RunReport update(const RunKey& key);
  Tensor tensor(int32_t value) const;  // device tensor of a value that persists there

  void cancel();  // what runs on the store; any thread
  bool take_cancel();
  bool poisoned() const;
  // From inside a catch block, after a load failed half way: this and every later call throw that error, with
  // the consequence told.
  // Where memory was refused, later calls throw kWrongState with the consequence, a literal.
  [[noreturn]] void poison(const char* consequence);

  // Bytes of the store, as measured: its blocks, and the ranges in use inside them. Peaks are over
  // all runs since construction or reset_peaks().
  device::TierCount count(Tier tier) const;
  // As Device::taken_bytes(): before this session took its memory.
  int64_t taken_before() const;
  void reset_peaks();

  // Spans of every launch and copy of later runs; spans() gives those of the last run. Updates, which make
  // the packed weights of what they update, are not traced: the first traced run makes all packed weights, so
  // that their seconds are known.
  void trace(bool on);
  const std::vector<Span>& spans() const;

 private:
  Session(std::shared_ptr<Store> store, size_t index);

  std::shared_ptr<Store> store_;
  size_t index_ = 0;  // its plan, among the store's

  LoadedPlan& mine() const;
  template <class Each>
  void for_encoded(int32_t value, int64_t first, int64_t count, const Each& each) const;
  bool attempt(const RunKey& key);                       // false: cancelled
  void leave_disk(const Error& why, const RunKey& key);  // throws if this micro-batch must not run again
  bool submit(LoadedPlan& of, graph::When when, const RunKey& key, const std::atomic<bool>& stop);
  void finish(graph::When when, const RunKey& key);  // phases at the end of a step
  // Leaves deferred updates to the next run: after an update or, where updates are fused, after a run.
  void leave_updates() const;
  // Makes the deferred updates without a run.
  void make_deferred_updates() const;
  // Submits and waits for work that no cancel stops. kOutOfMemory with nothing updated: all is as before.
  template <class SubmitAll>
  void submit_whole(const SubmitAll& submit_all) const;
  RunReport report_since(double began);
  void raise() const;        // throws the session's poison, if there is one
  void ready() const;        // the same, and makes new queues if memory was refused before; kOutOfMemory
  void keep_poison() const;  // from inside a catch block: keeps the error and throws it
  // From inside a catch block, after Store::drain(). Where memory was refused and nothing was updated, the session
  // goes on: throws kOutOfMemory with the consequence, a literal. Else it returns.
  void survive_refusal(bool updated, const char* consequence) const;
  // From inside a catch block, after copies between runs failed: throws.
  void lose_disk(std::string_view what) const;

  // session_values.cc
  void begin_averages() const;
  const TensorDesc& described(int32_t value) const;
  // Deferred updates read or change it. Reading hyper-parameters does not count: the host writes them for the next
  // step.
  bool waits_for_updates(int32_t value, bool writes) const;
  void transfer(int32_t value, int64_t offset, void* host, int64_t bytes, bool writes) const;
};

}  // namespace cairn::engine
