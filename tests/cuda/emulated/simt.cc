#include "tests/cuda/emulated/simt.h"

#include <numeric>
#include <vector>

#include "runtime/base/error.h"
#include "tests/cuda/emulated/fiber.h"
#include "tests/cuda/emulated/random.h"

namespace cairn::kernels::cuda::emulated {

thread_local Index thread_index, block_index, block_size, grid_size;

namespace {

constexpr int kWarpThreads = 32;

enum class Waits : uint8_t { kNothing, kBlock, kWarp, kDone };

struct AsyncCopy {
  void* to;
  const void* from;  // nullptr: zeros
  uint64_t group;
};

// Of 16 bytes each, they land at any time between where they are asked for and where they are waited for.
class AsyncCopies {
 public:
  void add(void* to, const void* from) {
    pending_.push_back({to, from, group_});
    if (one_in(2)) land_one(pending_.size() - 1);
    some();
  }
  void commit() {
    ++group_;
    some();
  }
  // Until at most `left` groups are under way.
  void wait(uint64_t left) {
    for (size_t i = pending_.size(); i-- > 0;)
      if (pending_[i].group + left < group_) land_one(i);
    some();
  }
  void some() {
    for (size_t i = pending_.size(); i-- > 0;)
      if (one_in(8)) land_one(i);
  }
  void all() {
    while (!pending_.empty()) land_one(pending_.size() - 1);
    group_ = 0;
  }

 private:
  void land_one(size_t i) {
    const AsyncCopy copy = pending_[i];
    pending_[i] = pending_.back();
    pending_.pop_back();
    if (copy.from != nullptr)
      std::memcpy(copy.to, copy.from, 16);
    else
      std::memset(copy.to, 0, 16);
  }

  std::vector<AsyncCopy> pending_;
  uint64_t group_ = 0;  // that the next copy belongs to
};

struct Thread {
  Fiber fiber;
  uint64_t given[2] = {};  // to the last two exchanges
  unsigned exchanges = 0;
  AsyncCopies copies;
};

// 0, ..., count - 1 in an order that is drawn.
class Order {
 public:
  explicit Order(int64_t count) : count_(static_cast<uint64_t>(count)), at_(draw() % count_) {
    do {
      stride_ = (draw() | 1) % count_;  // of a power of two, that is enough
    } while ((count_ & (count_ - 1)) != 0 && std::gcd(stride_, count_) != 1);
  }
  int64_t next() {
    at_ += stride_;
    if (at_ >= count_) at_ -= count_;
    return static_cast<int64_t>(at_);
  }

 private:
  uint64_t count_, at_, stride_;
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
    const int64_t blocks = grid.x * grid.y * grid.z;
    Order order(blocks);
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t at = order.next();
      block_index = {static_cast<unsigned>(at % grid.x), static_cast<unsigned>(at / grid.x % grid.y),
                     static_cast<unsigned>(at / grid.x / grid.y)};
      std::memset(shared_.data(), 0xff, shared_.size());
      run_block();
    }
  }

  void* shared() {
    return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(shared_.data()) + 15) & ~uintptr_t{15});
  }

  void wait(Waits what) {
    Thread& thread = threads_[current_];
    thread.copies.some();
    waits_[current_] = what;
    const Index own = thread_index;
    thread.fiber.leave();
    thread_index = own;
  }

  // A lane may be one exchange ahead of others, but not two: it would have waited for them at the first.
  uint64_t exchange(uint64_t given, int lane) {
    const unsigned at = threads_[current_].exchanges++ % 2;
    threads_[current_].given[at] = given;
    wait(Waits::kWarp);
    const size_t from = current_ / kWarpThreads * kWarpThreads + static_cast<size_t>(lane);
    require(lane >= 0 && lane < kWarpThreads && from < count_, Code::kInternal, "a shuffle from lane ", lane,
            " of a block of ", count_, " threads");
    return threads_[from].given[at];
  }

 private:
  void grow(int threads) {
    const auto count = std::max(threads_.size(), static_cast<size_t>(threads));
    threads_.resize(count);
    waits_.resize(count);
  }

  static void enter() {
    Block& block = own();
    (*block.body_)();
    Thread& thread = block.threads_[block.current_];
    thread.copies.all();
    block.waits_[block.current_] = Waits::kDone;
    thread.fiber.leave();
  }

  // Warps take turns as it is drawn: one may be far ahead of another, up to the barrier where it needs it.
  void run_block() {
    for (size_t t = 0; t < count_; ++t) {
      threads_[t].fiber.restart(&Block::enter);
      threads_[t].exchanges = 0;
    }
    set(0, count_);
    everybody();
    while (!ready_.empty()) {
      const size_t pick = draw() % ready_.size();
      if (turn(ready_[pick])) continue;
      ready_[pick] = ready_.back();
      ready_.pop_back();
      if (ready_.empty()) release();
    }
  }
  void everybody() {
    ready_.resize((count_ + kWarpThreads - 1) / kWarpThreads);
    std::iota(ready_.begin(), ready_.end(), size_t{0});
  }

  // Every thread of the warp that waits for nothing, in the order that is drawn. Can the warp go on?
  bool turn(size_t warp) {
    const size_t first = warp * kWarpThreads, last = std::min(count_, first + kWarpThreads);
    Order order(static_cast<int64_t>(last - first));
    for (size_t i = first; i < last; ++i) {
      const size_t t = first + static_cast<size_t>(order.next());
      if (waits_[t] == Waits::kNothing) step(t);
    }
    if (!all(first, last, Waits::kWarp)) return false;
    set(first, last);
    return true;
  }

  void step(size_t t) {
    current_ = t;
    thread_index = {static_cast<unsigned>(t), 0, 0};
    threads_[t].fiber.go_on();
  }

  // No warp can go on: the block is done, or all wait for it.
  void release() {
    if (all(0, count_, Waits::kDone)) return;
    require(all(0, count_, Waits::kBlock), Code::kInternal,
            "some threads of a block never reach the barrier where the others wait");
    set(0, count_);
    everybody();
  }
  bool all(size_t first, size_t last, Waits what) const {
    return std::all_of(waits_.begin() + first, waits_.begin() + last, [&](Waits w) { return w == what; });
  }
  void set(size_t first, size_t last) {
    std::fill(waits_.begin() + first, waits_.begin() + last, Waits::kNothing);
  }

 public:
  static Block& own() {
    static thread_local Block block;
    return block;
  }
  AsyncCopies& copies() { return threads_[current_].copies; }

 private:
  const std::function<void()>* body_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<Waits> waits_;  // by thread
  std::vector<char> shared_;
  std::vector<size_t> ready_;  // warps
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
void async_copy(void* to, const void* from) { Block::own().copies().add(to, from); }
void async_commit() { Block::own().copies().commit(); }
void async_wait(int left) { Block::own().copies().wait(static_cast<uint64_t>(left)); }

}  // namespace cairn::kernels::cuda::emulated
