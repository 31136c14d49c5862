#include "tests/cuda/emulated/random.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "tests/cuda/emulated/runtime.h"

namespace cairn::kernels::cuda::emulated {
namespace {

uint64_t first_seed() {
  const char* const given = std::getenv("CAIRN_EMULATION_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
}

std::atomic<uint64_t>& present_seed() {
  static std::atomic<uint64_t> one{first_seed()};
  return one;
}
std::atomic<uint64_t> seedings{1}, threads{0};

uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace

void seed(uint64_t number) {
  present_seed() = number;
  ++seedings;
}

uint32_t draw() {
  static thread_local uint64_t state = 0, seeding = 0;
  static thread_local const uint64_t own = threads++;
  if (seeding != seedings.load(std::memory_order_relaxed)) {
    seeding = seedings;
    state = mixed(present_seed() + 1) + own;
  }
  state += 0x9e3779b97f4a7c15ull;
  return static_cast<uint32_t>(mixed(state) >> 32);
}

void delay(int max_microseconds) {
  if (one_in(2)) return;
  const uint32_t wanted = draw() % static_cast<uint32_t>(max_microseconds);
  std::this_thread::sleep_for(std::chrono::microseconds(wanted));
}

}  // namespace cairn::kernels::cuda::emulated
