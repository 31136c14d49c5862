#include "tests/cuda/emulated/simt.h"

#include <exception>
#include <numeric>
#include <vector>

#include "runtime/base/error.h"
#include "tests/cuda/emulated/async_copies.h"
#include "tests/cuda/emulated/fiber.h"
#include "tests/cuda/emulated/random.h"

namespace cairn::kernels::cuda::emulated {

thread_local Index thread_index, block_index, block_size, grid_size;

namespace {

constexpr int kWarpThreads = 32;
constexpr size_t kNobody = ~size_t{0};

enum class Waits : uint8_t { kNothing, kBlock, kWarp, kDone };

struct Thread {
  Fiber* fiber = nullptr;  // that it runs on, once it began
  uint64_t given[2] = {};  // to the last two exchanges
  unsigned exchanges = 0;
  AsyncCopies copies;
};

// 0, ..., count - 1 in an order that is drawn.
class Order {
 public:
  Order() = default;
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
  uint64_t count_ = 0, at_ = 0, stride_ = 0;
};

// The blocks of one operating system thread: fibers and shared memory are kept from launch to launch. A thread that waits
// switches to the next one itself, and one that is done goes on as the next that has not begun: threads that meet no
// barrier run one after the other on one stack, without any switch.
class Block {
 public:
  void run(const Grid& grid, const std::function<void()>& thread) {
    body_ = &thread;
    grow(grid.threads);
    count_ = static_cast<size_t>(grid.threads);
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

  [[gnu::always_inline]] void wait(Waits what) {
    Thread& thread = threads_[current_];
    thread.copies.some();
    waits_[current_] = what;
    const size_t own = current_, next = choose();
    if (next != own) switch_to(thread.fiber->context, context_of(next));
  }

  // A lane may be one exchange ahead of others, but not two: it would have waited for them at the first.
  [[gnu::always_inline]] uint64_t exchange(uint64_t given, int lane) {
    const unsigned at = threads_[current_].exchanges++ % 2;
    threads_[current_].given[at] = given;
    wait(Waits::kWarp);
    const size_t from = current_ / kWarpThreads * kWarpThreads + static_cast<size_t>(lane);
    require(lane >= 0 && lane < kWarpThreads && from < count_, Code::kInternal, "a shuffle from lane ", lane,
            " of a block of ", count_, " threads");
    return threads_[from].given[at];
  }

  static Block& own() {
    static thread_local Block block;
    return block;
  }
  AsyncCopies& copies() { return threads_[current_].copies; }

 private:
  void grow(int threads) {
    const auto count = std::max(threads_.size(), static_cast<size_t>(threads));
    threads_.resize(count);
    waits_.resize(count);
    fibers_.resize(count);
  }

  void run_block() {
    for (size_t t = 0; t < count_; ++t) {
      threads_[t].fiber = nullptr;
      threads_[t].exchanges = 0;
      threads_[t].copies.forget();
    }
    free_.clear();
    for (Fiber& fiber : fibers_) free_.push_back(&fiber);
    error_ = nullptr;
    set(0, count_);
    everybody();
    begin_turn();
    switch_to(outside_, context_of(choose()));
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

  // The function of every fiber: threads from their beginning on, while those that come next have not begun.
  static void enter() {
    Block& block = own();
    Fiber* const fiber = block.threads_[block.current_].fiber;
    size_t next = kNobody;
    try {
      do {
        (*block.body_)();
        block.threads_[block.current_].copies.all();
        block.waits_[block.current_] = Waits::kDone;
        next = block.choose();
      } while (next != kNobody && block.begins_on(next, fiber));
    } catch (...) {  // what the block's other threads have on their stacks is dropped
      block.error_ = std::current_exception();
      next = kNobody;
    }
    block.free_.push_back(fiber);
    switch_to(fiber->context, block.context_of(next));
    __builtin_unreachable();
  }
  bool begins_on(size_t thread, Fiber* fiber) {
    if (threads_[thread].fiber != nullptr) return false;
    threads_[thread].fiber = fiber;
    return true;
  }
  const Context& context_of(size_t thread) {
    if (thread == kNobody) return outside_;
    Fiber*& fiber = threads_[thread].fiber;
    if (fiber == nullptr) {
      fiber = free_.back();
      free_.pop_back();
      fiber->restart(&Block::enter);
    }
    return fiber->context;
  }

  // The thread that goes on, which is made the present one; kNobody at the block's end. Warps take turns as it is drawn: one may be
  // far ahead of another, up to the barrier where it needs it. In its turn a warp runs every thread that waits for nothing, in
  // the order that is drawn.
  size_t choose() {
    for (;;) {
      for (; left_ > 0; --left_) {
        const size_t t = first_ + static_cast<size_t>(lanes_.next());
        if (waits_[t] != Waits::kNothing) continue;
        --left_;
        current_ = t;
        thread_index = {static_cast<unsigned>(t), 0, 0};
        return t;
      }
      if (!end_turn()) return kNobody;
      begin_turn();
    }
  }
  void begin_turn() {
    pick_ = draw() % ready_.size();
    first_ = ready_[pick_] * kWarpThreads;
    last_ = std::min(count_, first_ + kWarpThreads);
    left_ = last_ - first_;
    lanes_ = Order(static_cast<int64_t>(left_));
  }
  // Is there another turn?
  bool end_turn() {
    if (all(first_, last_, Waits::kWarp)) {
      set(first_, last_);
      return true;
    }
    ready_[pick_] = ready_.back();
    ready_.pop_back();
    if (ready_.empty()) release();
    return !ready_.empty();
  }
  // No warp can go on: the block is done, or all wait for it.
  void release() {
    if (all(0, count_, Waits::kDone)) return;
    require(all(0, count_, Waits::kBlock), Code::kInternal,
            "some threads of a block never reach the barrier where the others wait");
    set(0, count_);
    everybody();
  }
  void everybody() {
    ready_.resize((count_ + kWarpThreads - 1) / kWarpThreads);
    std::iota(ready_.begin(), ready_.end(), size_t{0});
  }
  bool all(size_t first, size_t last, Waits what) const {
    return std::all_of(waits_.begin() + first, waits_.begin() + last, [&](Waits w) { return w == what; });
  }
  void set(size_t first, size_t last) {
    std::fill(waits_.begin() + first, waits_.begin() + last, Waits::kNothing);
  }

  const std::function<void()>* body_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<Waits> waits_;  // by thread
  std::vector<Fiber> fibers_;
  std::vector<Fiber*> free_;  // the last one left is the first one taken: its stack is in the cache
  std::vector<char> shared_;
  size_t count_ = 0, current_ = 0;  // threads; the one that runs
  // The present turn: of the warp of threads first_, ..., last_ - 1, of which `left_` are still to be looked at.
  std::vector<size_t> ready_;  // warps that can have a turn
  size_t pick_ = 0, first_ = 0, last_ = 0, left_ = 0;
  Order lanes_;
  Context outside_;
  std::exception_ptr error_;  // of a thread
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
