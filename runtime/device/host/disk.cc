#include "runtime/device/host/disk.h"

#include <algorithm>

#include "runtime/base/checked.h"

namespace cairn::device::host {
namespace {

// As many slots are under way as there are workers; of the others one is being copied and one waits. Transfers
// of this size come near the rate of larger ones, and the first of a copy is soon under way.
constexpr int64_t kSlotBytes = int64_t{2} << 20;
constexpr int64_t kSlots = Channel::kWorkers + 2;
// Shorter transfers are not made in place but through the slots, which join neighbouring ones.
constexpr int64_t kMinDirect = int64_t{256} << 10;

}  // namespace

Channel::Channel(State& state, const DiskFile& file, bool writes, int64_t file_bytes)
    : state_(state),
      file_(file),
      writes_(writes),
      slot_bytes_(std::min(kSlotBytes, align_up(file_bytes, kPageBytes))),
      memory_(state, Tier::kHost, kSlots * (slot_bytes_ + kPageBytes), true),
      slots_(kSlots) {
  for (size_t s = 0; s < slots_.size(); ++s)
    slots_[s].memory = memory_.address() + static_cast<int64_t>(s) * (slot_bytes_ + kPageBytes);
  try {
    for (Thread& worker : workers_)
      worker.start<&Channel::work>(writes ? "cairn/disk-out" : "cairn/disk-in", this);
  } catch (...) {
    end();
    throw;
  }
  state_.ledger.stage(Tier::kDisk, bytes());
}

Channel::~Channel() {
  state_.ledger.stage(Tier::kDisk, -bytes());
  end();
}

int64_t Channel::bytes() const { return kSlots * (slot_bytes_ + kPageBytes); }

void Channel::end() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  submitted_.notify_all();
  for (Thread& worker : workers_) worker.join();
}

void Channel::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto waiting = [](const Slot& s) { return s.phase == Phase::kWaiting; };
    auto slot = slots_.end();
    submitted_.wait(lock, [&] {
      slot = std::find_if(slots_.begin(), slots_.end(), waiting);
      return slot != slots_.end() || ending_;
    });
    if (slot == slots_.end()) return;
    slot->phase = Phase::kMoving;
    const bool skip = error_ != nullptr;
    lock.unlock();
    std::exception_ptr error;
    if (!skip) try {
        file_.transfer(writes_, slot->data, slot->offset, slot->bytes);
      } catch (...) {
        error = std::current_exception();
      }
    lock.lock();
    if (error != nullptr && error_ == nullptr) error_ = error;
    slot->phase = Phase::kDone;
    done_.notify_all();
  }
}

void Channel::submit(Slot& slot) {
  {
    std::lock_guard lock(mutex_);
    slot.phase = Phase::kWaiting;
  }
  submitted_.notify_one();
}

void Channel::settle(Slot& slot) {
  std::unique_lock lock(mutex_);
  if (slot.phase == Phase::kFree) return;
  done_.wait(lock, [&] { return slot.phase == Phase::kDone; });
  slot.phase = Phase::kFree;
  if (error_ != nullptr) std::rethrow_exception(error_);
}

bool Channel::next(std::span<const Piece> pieces, Slot& slot) {
  if (piece_ == pieces.size()) return false;
  slot.piece = piece_;
  slot.skip = skip_;
  slot.offset = pieces[piece_].offset + skip_;
  // A slot ends where a page ends, so that only the first and the last piece of a transfer are parts of pages.
  const int64_t most = slot_bytes_ - slot.offset % kPageBytes;
  char* const memory = pieces[piece_].memory + skip_;
  const int64_t here = std::min(pieces[piece_].bytes - skip_, most);
  slot.straight = here >= std::min(kMinDirect, slot_bytes_) && file_.suits(memory, slot.offset);
  slot.data = slot.straight ? memory : slot.memory + slot.offset % kPageBytes;
  slot.bytes = 0;
  while (piece_ < pieces.size() && slot.bytes < (slot.straight ? here : most) &&
         pieces[piece_].offset + skip_ == slot.offset + slot.bytes) {
    const int64_t part = std::min(pieces[piece_].bytes - skip_, most - slot.bytes);
    slot.bytes += part;
    skip_ += part;
    if (skip_ == pieces[piece_].bytes) ++piece_, skip_ = 0;
  }
  return true;
}

// Between the slot and the pieces its bytes belong to.
void Channel::exchange(Splitter& splitter, std::span<const Piece> pieces, const Slot& slot) const {
  if (slot.straight) return;
  size_t piece = slot.piece;
  int64_t skip = slot.skip;
  for (int64_t done = 0; done < slot.bytes; ++piece, skip = 0) {
    const int64_t part = std::min(pieces[piece].bytes - skip, slot.bytes - done);
    char* const memory = pieces[piece].memory + skip;
    splitter.move(writes_ ? slot.data + done : memory, writes_ ? memory : slot.data + done, part);
    done += part;
  }
}

void Channel::move(Splitter& splitter, std::span<const Piece> pieces) {
  const std::lock_guard turn(turn_);
  piece_ = 0;
  skip_ = 0;
  {
    std::lock_guard lock(mutex_);
    error_ = nullptr;
  }
  try {
    size_t ahead = 0;  // slots submitted and not settled, the oldest first
    size_t slot = 0;
    const auto settle_oldest = [&] {
      Slot& oldest = slots_[(slot + slots_.size() - ahead) % slots_.size()];
      --ahead;
      settle(oldest);
      if (!writes_) exchange(splitter, pieces, oldest);
    };
    for (;;) {
      if (ahead == slots_.size()) settle_oldest();
      if (!next(pieces, slots_[slot])) break;
      if (writes_) exchange(splitter, pieces, slots_[slot]);
      submit(slots_[slot]);
      slot = (slot + 1) % slots_.size();
      ++ahead;
    }
    while (ahead > 0) settle_oldest();
  } catch (...) {  // what is under way uses the slots
    for (Slot& slot : slots_) try {
        settle(slot);
      } catch (...) {  // the same error
      }
    throw;
  }
}

Disk::Disk(State& state, int64_t bytes)
    : file_(state.info.disk_directory, bytes, state.disk_fault),
      out_(state, file_, true, bytes),
      in_(state, file_, false, bytes) {}

}  // namespace cairn::device::host
