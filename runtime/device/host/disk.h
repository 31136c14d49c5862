// The disk tier: a file, and for each direction some transfers at once between it and memory. Memory that suits
// direct transfers takes them itself; other memory goes through a ring of pinned slots: while one is copied
// others are with the disk.
#pragma once
#include <array>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/base/os/thread.h"
#include "runtime/device/host/file.h"
#include "runtime/device/host/pinned.h"
#include "runtime/device/host/splitter.h"

namespace cairn::device::host {

// Bytes of memory and their place in the file.
struct Piece {
  char* memory;
  int64_t offset, bytes;
};

// One direction. Threads that move the same way take turns.
class Channel {
 public:
  static constexpr size_t kWorkers = 4;  // so many transfers at once keep a disk busy
  Channel(State& state, const DiskFile& file, bool writes, int64_t file_bytes);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  // Returns when all is on disk, or in memory; pieces that follow each other in the file travel together. kIo
  // as DiskFile, after all that was under way has ended.
  void move(Splitter& splitter, std::span<const Piece> pieces);
  int64_t bytes() const;  // of the ring

 private:
  enum class Phase { kFree, kWaiting, kMoving, kDone };
  struct Slot {
    char* memory = nullptr;
    char* data = nullptr;   // in memory, at the offset's place within a page, or the piece's own memory:
    bool straight = false;  // then nothing is copied
    int64_t offset = 0, bytes = 0;
    size_t piece = 0;  // what the slot's bytes begin with: this piece,
    int64_t skip = 0;  // after so many of its bytes
    Phase phase = Phase::kFree;
  };
  bool next(std::span<const Piece> pieces, Slot& slot);  // cuts off the next slot's bytes; false: no more
  void exchange(Splitter& splitter, std::span<const Piece> pieces, const Slot& slot) const;
  void submit(Slot& slot);
  void settle(Slot& slot);  // waits until it is done; throws what went wrong
  void work();
  void end();

  State& state_;
  const DiskFile& file_;
  const bool writes_;
  const int64_t slot_bytes_;
  const Memory memory_;
  std::mutex turn_;
  size_t piece_ = 0;  // where next() goes on
  int64_t skip_ = 0;

  std::mutex mutex_;  // guards the next four and the slots' phases
  std::condition_variable submitted_, done_;
  std::exception_ptr error_;
  bool ending_ = false;
  std::vector<Slot> slots_;
  std::array<Thread, kWorkers> workers_;
};

class Disk {
 public:
  Disk(State& state, int64_t bytes);
  void write(Splitter& splitter, std::span<const Piece> pieces) { out_.move(splitter, pieces); }
  void read(Splitter& splitter, std::span<const Piece> pieces) { in_.move(splitter, pieces); }
  int64_t staging_bytes() const { return out_.bytes() + in_.bytes(); }
  DiskFile& file() { return file_; }

 private:
  DiskFile file_;
  Channel out_, in_;
};

}  // namespace cairn::device::host
