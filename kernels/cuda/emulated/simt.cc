#include "kernels/cuda/emulated/simt.h"

#include <deque>
#include <vector>

#include "kernels/cuda/emulated/fiber.h"
#include "runtime/base/error.h"

namespace cairn::kernels::cuda::emulated {

thread_local Index thread_index, block_index, block_size, grid_size;

namespace {

constexpr int kWarpThreads = 32;

enum class Waits : uint8_t { kNothing, kBlock, kWarp, kDone };

struct Thread {
  Fiber fiber;
  Waits waits = Waits::kDone;
  uint64_t given = 0;
};

// The blocks of one operating system thread: fibers and shared memory are kept from launch to launch.
class Block {
 public:
  void run(const Grid& grid, const std::function<void()>& thread) {
    body_ = &thread;
    grow(grid.threads);
    count_ = grid.threads;
    shared_.resize(static_cast<size_t>(grid.shared_bytes) + 16);
    grid_size = {static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z)};
    block_size = {static_cast<unsigned>(grid.threads), 1, 1};
    for (int64_t z = 0; z < grid.z; ++z)
      for (int64_t y = 0; y < grid.y; ++y)
        for (int64_t x = 0; x < grid.x; ++x) {
          block_index = {static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z)};
          std::memset(shared_.data(), 0xff, shared_.size());
          run_block();
        }
  }

  void* shared() {
    return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(shared_.data()) + 15) & ~uintptr_t{15});
  }

  void wait(Waits what) {
    Thread& thread = threads_[current_];
    thread.waits = what;
    const Index own = thread_index;
    thread.fiber.leave();
    thread_index = own;
  }

  uint64_t exchange(uint64_t given, int lane) {
    threads_[current_].given = given;
    wait(Waits::kWarp);
    const size_t from = current_ / kWarpThreads * kWarpThreads + static_cast<size_t>(lane);
    require(lane >= 0 && lane < kWarpThreads && from < count_, Code::kInternal, "a shuffle from lane ", lane,
            " of a block of ", count_, " threads");
    const uint64_t taken = threads_[from].given;
    wait(Waits::kWarp);  // before the next one gives
    return taken;
  }

 private:
  void grow(int threads) {
    while (threads_.size() < static_cast<size_t>(threads)) threads_.emplace_back();
  }

  static void enter() {
    Block& block = own();
    (*block.body_)();
    Thread& thread = block.threads_[block.current_];
    thread.waits = Waits::kDone;
    thread.fiber.leave();
  }

  void run_block() {
    for (size_t t = 0; t < count_; ++t) {
      threads_[t].fiber.restart(&Block::enter);
      threads_[t].waits = Waits::kNothing;
    }
    for (size_t left = count_; left > 0;) {
      left = 0;
      for (size_t t = 0; t < count_; ++t) {
        if (threads_[t].waits == Waits::kNothing) step(t);
        left += threads_[t].waits != Waits::kDone;
      }
      if (left > 0) release();
    }
  }

  void step(size_t t) {
    current_ = t;
    thread_index = {static_cast<unsigned>(t), 0, 0};
    threads_[t].fiber.go_on();
  }

  // Lets go whoever waits for a warp that is all there; then, if all wait for the block, everybody.
  void release() {
    bool any = false;
    for (size_t first = 0; first < count_; first += kWarpThreads) {
      const size_t last = std::min(count_, first + kWarpThreads);
      if (all(first, last, Waits::kWarp)) any = true, set(first, last);
    }
    if (any) return;
    require(all(0, count_, Waits::kBlock), Code::kInternal,
            "some threads of a block never reach the barrier where the others wait");
    set(0, count_);
  }
  bool all(size_t first, size_t last, Waits what) const {
    for (size_t t = first; t < last; ++t)
      if (threads_[t].waits != what) return false;
    return true;
  }
  void set(size_t first, size_t last) {
    for (size_t t = first; t < last; ++t) threads_[t].waits = Waits::kNothing;
  }

 public:
  static Block& own() {
    static thread_local Block block;
    return block;
  }

 private:
  const std::function<void()>* body_ = nullptr;
  std::deque<Thread> threads_;
  std::vector<char> shared_;
  size_t count_ = 0, current_ = 0;
};

}  // namespace

void run(const Grid& grid, const std::function<void()>& thread) {
  require(grid.threads > 0 && grid.threads <= 1024, Code::kInternal, "a block of ", grid.threads, " threads");
  require(grid.x < (int64_t{1} << 31) && grid.y < 65536 && grid.z < 65536, Code::kInternal,
          "a grid too large");
  Block::own().run(grid, thread);
}

void check_aligned(const void* address, size_t to) {
  require(reinterpret_cast<uintptr_t>(address) % to == 0, Code::kInternal, "a kernel reads or writes ", to,
          " bytes at once at an address that is no multiple of that");
}

void* dynamic_shared() { return Block::own().shared(); }
void sync_block() { Block::own().wait(Waits::kBlock); }
void sync_warp() { Block::own().wait(Waits::kWarp); }
uint64_t exchange(uint64_t given, int lane) { return Block::own().exchange(given, lane); }

}  // namespace cairn::kernels::cuda::emulated
