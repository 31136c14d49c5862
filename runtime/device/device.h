// What a device is: memory in tiers, queues (in-order lanes of work), events, copies, launches. Small on
// purpose; the happens-before rules are in capi/docs/memory.md:
//   1. Work in one queue runs in order of submission. Work in different queues is unordered but for events.
//   2. record(e) marks the point reached by all work submitted to that queue before it; wait(e) holds back all
//      work submitted after it until the marked point of the latest record(e) submitted before the wait is
//      reached.
//   3. Memory may be used again by work that is ordered after the last use in these terms: in queue time.
// Submitting never blocks on the work itself. Errors inside queued work poison the queue's group: the first
// one is kept and thrown by the next synchronize(); work after it in every queue of the group is skipped.
// Other groups of the device go on.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/kernel.h"
#include "runtime/base/lane.h"
#include "runtime/base/os/memory.h"
#include "runtime/device/ledger.h"

namespace cairn {
class InputFile;
}

namespace cairn::device {

using cairn::Lane;

// A block of one tier, counted in the ledger from creation to destruction. Device and host blocks are zeroed.
class Block {
 public:
  virtual ~Block() = default;
  virtual Tier tier() const = 0;
  virtual int64_t bytes() const = 0;
  virtual void* address() const = 0;                   // nullptr for disk
  virtual int64_t pinned_bytes() const { return 0; }   // of them, locked in memory
  virtual int64_t staging_bytes() const { return 0; }  // other memory that their copies go through
  // Bytes to and from the host program's memory, at once: no queued work may use them meanwhile. Not for
  // disk.
  virtual void write(int64_t offset, const void* from, int64_t bytes) {
    std::memcpy(static_cast<char*>(address()) + offset, from, static_cast<size_t>(bytes));
  }
  virtual void read(int64_t offset, void* to, int64_t bytes) const {
    std::memcpy(to, static_cast<const char*>(address()) + offset, static_cast<size_t>(bytes));
  }
  // Of the disk tier: from here on copies read a range of the block from a file, from byte `at` on, and the range takes no
  // room of its own. False: the block cannot. own() ends that before the range is written: ranges that reach into it are
  // the block's own again. No queued work may use the ranges meanwhile.
  virtual bool borrow(int64_t /*offset*/, int64_t /*bytes*/, std::shared_ptr<const InputFile> /*file*/,
                      uint64_t /*at*/) {
    return false;
  }
  virtual void own(int64_t /*offset*/, int64_t /*bytes*/) {}
};

struct Location {
  Block* block = nullptr;
  int64_t offset = 0;
};

// Bytes from one block to another.
struct Copy {
  Location to, from;
  int64_t bytes = 0;
};

// What the copies of one queue moved to or from a tier, and how long they took. Between host and disk that is the disk.
struct Traffic {
  int64_t bytes = 0;
  double busy_seconds = 0;
  Traffic& operator+=(const Traffic& other) {
    bytes += other.bytes;
    busy_seconds += other.busy_seconds;
    return *this;
  }
};

// Queues that work together fail together: one session's error is none of another's.
class Group {
 public:
  virtual ~Group() = default;
  virtual bool poisoned() const = 0;
};

// Work of a group's queues that was submitted once and runs again without being submitted again. Lives until
// the queues are synchronised after its last run.
class Recording {
 public:
  virtual ~Recording() = default;
  // As if it were submitted now, with this seed, step and micro-batch in its calls. Runs do not overlap: all
  // queues of the group are synchronised before the next one.
  virtual void run(const RandomKey& key) = 0;
  // It measures how long its queues copy and wait, which takes time itself.
  virtual bool measures() const { return false; }
};

class Event {  // made by one device, used with its queues only
 public:
  virtual ~Event() = default;
};

class Queue {
 public:
  virtual ~Queue() = default;
  // From here on submitting and doing so much takes no memory: `works` pieces of work under way, copies of up to `parts`
  // parts. kOutOfMemory, or std::bad_alloc: as before.
  virtual void reserve(size_t /*works*/, size_t /*parts*/) {}
  // `call`'s spans must be valid until the work is done (the program owns them). On Lane::kHost: a kernel of the
  // processor's registry for DeviceInfo::host_threads, which brings its threads, and whose operands lie on the host tier.
  virtual void launch(const kernels::Kernel& kernel, const kernels::Call& call) = 0;
  virtual void copy(Location to, Location from, int64_t bytes) = 0;
  // Several copies between the same two blocks as one piece of work, done in this order. `parts` must be
  // valid until the work is done (the program owns them).
  virtual void copy(std::span<const Copy> parts) = 0;
  virtual void record(Event& event) = 0;
  virtual void wait(Event& event) = 0;
  // Blocks the caller until all work submitted so far is done; throws the poison if there is one.
  virtual void synchronize() = 0;
  // Seconds this queue spent waiting for events of other queues since the last call (stall).
  virtual double take_stall_seconds() = 0;
  virtual double take_busy_seconds() = 0;
  // Copies done since the last call, by the tier at the other end: of the two the one that is further from the device.
  virtual std::array<Traffic, kTierCount> take_traffic() = 0;

  // For traces: begin and end of every launch and copy submitted from here on, in order of submission, in
  // seconds of the steady clock. Take them after synchronize(). A queue that cannot measure gives none. It is here that
  // memory is taken for as much work as was reserved.
  struct Busy {
    double begin, end;
  };
  virtual void trace(bool /*on*/) {}
  // Copies that would begin while *flag is set are left out: a cancelled run does not wait for them. nullptr:
  // never. The flag must outlive the queue.
  virtual void skip_copies_while(const std::atomic<bool>* /*flag*/) {}
  virtual std::vector<Busy> take_trace() { return {}; }
};

struct DeviceInfo {
  std::string name;            // "cpu"
  std::string description;     // processor, instruction sets
  std::string processor, isa;  // its parts: identity of a profile
  std::string isa_word;        // the instruction set in use, as CAIRN_ISA names it; a GPU's architecture
  int64_t memory_bytes = 0;
  int64_t host_memory_bytes =
      0;                     // what this process may use of the host; 0: device and host memory are the same
  std::string memory_limit;  // what bounds the host's memory below the machine's (MemoryLimit::by)
  int threads = 0;
  int host_threads = 0;      // of kernels on the host lane
  bool bf16 = false;         // fast bf16 products
  bool host_reaches = true;  // blocks of the device tier have addresses that the host may use
  // For the analytic cost model.
  double f32_flops_per_second = 0, bf16_flops_per_second = 0, memory_bytes_per_second = 0;
  double link_bytes_per_second = 0;  // stated rate of the host link; 0: none
  std::string disk_directory;        // where the disk tier lies

  // A stated rate is a throttle where the host reaches the device's memory, and elsewhere a guess, good until
  // the link is measured.
  double throttle() const { return host_reaches ? link_bytes_per_second : 0; }
};

// A host tier that may be paged out stalls copies where the plan says they hide. CPU devices lock it where
// the system allows (RLIMIT_MEMLOCK); where copies are right either way, a refusal is an error only if asked
// for.
enum class Pinning : uint8_t { kWhereAllowed, kRequired };

struct DeviceOptions {
  int threads = 0;                   // 0: all processors this process may use
  double link_bytes_per_second = 0;  // throttle for copies to and from the host tier; 0: none
  std::string disk_directory = {};   // for the disk tier; "": $TMPDIR or /tmp
  HostAllocator allocator = {};      // allocate == nullptr: the system's
  Pinning pinning = Pinning::kWhereAllowed;
  // For tests: asked before each transfer of `bytes` to or from the disk tier's file. Returns how many of
  // them to transfer at once, or -errno to fail with. Called from any thread.
  std::function<int64_t(bool writes, int64_t offset, int64_t bytes)> disk_fault = {};
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual const kernels::Registry& kernels() const = 0;
  virtual Ledger& ledger() = 0;
  // kOutOfMemory with the fault (device, host); kIo with the fault (disk: no space, no permission), naming
  // the directory. Host blocks have every page present, pinned where allowed. Disk blocks are files reserved
  // in full and unlinked at once, so a crash leaves nothing; their copies go through a ring of
  // pinned memory that comes with the block.
  virtual std::unique_ptr<Block> allocate(Tier tier, int64_t bytes) = 0;
  virtual std::shared_ptr<Group> create_group() = 0;
  // nullptr: the group of all queues that have none of their own.
  virtual std::unique_ptr<Queue> create_queue(Lane lane, const std::shared_ptr<Group>& group = nullptr) = 0;
  virtual std::unique_ptr<Event> create_event() = 0;
  virtual bool poisoned() const = 0;  // all of it, whatever the group
  // Bytes of the device's memory that are taken, by whomever, as its driver counts them; 0: it does not say.
  virtual int64_t taken_bytes() const { return 0; }
  // From here to end_recording() what is submitted to the group's queues is recorded, not run; nothing may be
  // under way in them. False: this device records nothing. measured: another recording of the same work, which outlives this one:
  // this one measures nothing, and its queues give the seconds of that one's last run.
  virtual bool begin_recording(const std::shared_ptr<Group>& /*group*/, const Recording* /*measured*/) {
    return false;
  }
  virtual std::unique_ptr<Recording> end_recording(const std::shared_ptr<Group>& /*group*/) {
    return nullptr;
  }
};

// Opens "cpu", "reference" (the oracle's kernels), or "cuda:N" (kUnsupported with the reason where there is
// none). kNotFound: no such device; the message lists those known.
std::shared_ptr<Device> open(std::string_view name, const DeviceOptions& options);
std::vector<DeviceInfo> list();

// Wraps any device and verifies, at submission and as work runs: ranges inside blocks, use of released
// blocks, foreign events, waits for events never recorded, and races: two pieces of work on overlapping
// bytes, one of them writing, that no event orders (vector clocks over queues). The first violation poisons
// with kInternal.
std::shared_ptr<Device> checked(std::shared_ptr<Device> inner);

}  // namespace cairn::device
