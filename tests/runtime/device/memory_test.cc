#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "tests/runtime/device/support.h"

namespace cairn::device {
namespace {

double seconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}

TEST(Memory, BlocksAreZeroedCountedAndGivenBack) {
  const auto device = open_cpu();
  {
    const auto a = device->allocate(Tier::kDevice, 1000), b = device->allocate(Tier::kHost, 3 << 20),
               c = device->allocate(Tier::kDisk, 5000);
    EXPECT_EQ(a->bytes(), 1000);
    EXPECT_EQ(static_cast<char*>(a->address())[999], 0);
    EXPECT_EQ(static_cast<char*>(b->address())[(3 << 20) - 1], 0);
    EXPECT_EQ(c->address(), nullptr);
    EXPECT_EQ(c->tier(), Tier::kDisk);
    EXPECT_EQ(device->ledger().count(Tier::kDevice).reserved_bytes, 1000);
    EXPECT_EQ(device->ledger().count(Tier::kHost).reserved_bytes, 3 << 20);
    EXPECT_EQ(device->ledger().count(Tier::kDisk).reserved_bytes, 5000);
  }
  for (const Tier tier : {Tier::kDevice, Tier::kHost, Tier::kDisk}) {
    EXPECT_EQ(device->ledger().count(tier).reserved_bytes, 0);
    EXPECT_GT(device->ledger().count(tier).peak_reserved_bytes, 0);
  }
}

struct CountingAllocator {
  int64_t held = 0, limit = 1 << 20;
  HostAllocator hooks() {
    return {this,
            [](void* user, size_t bytes, size_t alignment) -> void* {
              auto* self = static_cast<CountingAllocator*>(user);
              if (self->held + static_cast<int64_t>(bytes) > self->limit) return nullptr;
              self->held += static_cast<int64_t>(bytes);
              void* block = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
              std::memset(block, 0xee, bytes);
              return block;
            },
            [](void* user, void* block, size_t bytes, size_t) {
              static_cast<CountingAllocator*>(user)->held -= static_cast<int64_t>(bytes);
              std::free(block);
            }};
  }
};

TEST(Memory, TheHostsAllocatorServesArenaAndHostTier) {
  CountingAllocator allocator;
  DeviceOptions options;
  options.allocator = allocator.hooks();
  const auto device = open_cpu(options);
  {
    const auto a = device->allocate(Tier::kDevice, 1000), b = device->allocate(Tier::kHost, 2000);
    EXPECT_EQ(allocator.held, 3000);
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(static_cast<unsigned char*>(a->address())[i], 0) << "not zeroed";
    try {
      device->allocate(Tier::kDevice, 2 << 20);
      FAIL() << "the allocator's refusal was ignored";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kOutOfMemory);
      ASSERT_NE(error.fault(), nullptr);
      EXPECT_EQ(error.fault()->requested_bytes, 2u << 20);
      EXPECT_EQ(error.fault()->in_use_bytes, 1000u);
      EXPECT_EQ(error.fault()->tier, Tier::kDevice);
    }
  }
  EXPECT_EQ(allocator.held, 0);
  EXPECT_EQ(device->ledger().count(Tier::kDevice).reserved_bytes, 0);
}

TEST(Memory, TheHostTierIsPresentAndPinnedWhereAllowed) {
  const auto device = open_cpu();
  constexpr int64_t kBytes = (5 << 20) + 100;
  {
    const auto arena = device->allocate(Tier::kDevice, kBytes), host = device->allocate(Tier::kHost, kBytes);
    const int64_t pinned = host->pinned_bytes();
    EXPECT_TRUE(pinned == 0 || pinned == kBytes) << pinned;
    EXPECT_EQ(arena->pinned_bytes(), 0);
    EXPECT_EQ(device->ledger().count(Tier::kHost).pinned_bytes, pinned);
    EXPECT_EQ(device->ledger().count(Tier::kDevice).pinned_bytes, 0);
    const int64_t pages = (kBytes + 4095) / 4096;
    std::vector<unsigned char> present(static_cast<size_t>(pages));
    ASSERT_EQ(mincore(host->address(), static_cast<size_t>(kBytes), present.data()), 0);
    EXPECT_EQ(std::count_if(present.begin(), present.end(), [](unsigned char p) { return p & 1; }), pages)
        << "pages would come in the first step";
  }
  EXPECT_EQ(device->ledger().count(Tier::kHost).pinned_bytes, 0);
}

TEST(Memory, AHostThatIsShortOfMemoryIsAnErrorAndNoKilledProcess) {
  const auto device = open_cpu();
  std::string message;
  // The machine has as much, but never free.
  for (const Tier tier : {Tier::kHost, Tier::kDevice}) {
    EXPECT_EQ(code_of([&] { device->allocate(tier, device->info().memory_bytes); }, &message),
              Code::kOutOfMemory);
    EXPECT_NE(message.find("available"), std::string::npos) << message;
    EXPECT_EQ(device->ledger().count(tier).reserved_bytes, 0);
  }
}

// In a process of its own, which may lock nothing.
int pin_without_leave() {
  const rlimit none{0, 0};
  if (setrlimit(RLIMIT_MEMLOCK, &none) != 0 || (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0))
    return 77;
  DeviceOptions options;
  const auto lenient = open_cpu(options);
  const auto block = lenient->allocate(Tier::kHost, 1 << 20);
  if (block->pinned_bytes() != 0) return 77;  // this system lets everybody
  options.pinning = Pinning::kRequired;
  std::string message;
  const auto strict = open_cpu(options);
  if (code_of([&] { strict->allocate(Tier::kHost, 1 << 20); }, &message) != Code::kOutOfMemory) return 1;
  if (message.find("RLIMIT_MEMLOCK") == std::string::npos) return 2;
  return strict->ledger().count(Tier::kHost).reserved_bytes == 0 ? 0 : 3;
}

TEST(MemoryDeathTest, WhatCannotBePinnedIsAnErrorOnlyIfAskedFor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      _exit(pin_without_leave()),
      [](int status) { return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77); },
      "");
}

TEST(Memory, MoreThanTheMachineHasIsOutOfMemory) {
  const auto device = open_cpu();
  std::string message;
  EXPECT_EQ(code_of([&] { device->allocate(Tier::kDevice, device->info().memory_bytes + 1); }, &message),
            Code::kOutOfMemory);
  EXPECT_NE(message.find("memory"), std::string::npos);
  EXPECT_EQ(code_of([&] { device->allocate(Tier::kHost, 0); }), Code::kInvalidArgument);
}

TEST(Throttle, CopiesTakeAtLeastTheirBytesAtTheLinksRate) {
  DeviceOptions options;
  options.link_bytes_per_second = 100e6;
  const auto device = open_cpu(options);
  constexpr int64_t kBytes = 4 << 20;
  const auto a = device->allocate(Tier::kDevice, kBytes), host = device->allocate(Tier::kHost, kBytes);
  const auto out = device->create_queue(Lane::kCopyOut), in = device->create_queue(Lane::kCopyIn);
  auto start = std::chrono::steady_clock::now();
  out->copy({host.get(), 0}, {a.get(), 0}, kBytes);
  out->copy({host.get(), 0}, {a.get(), 0}, kBytes);
  out->synchronize();
  EXPECT_GE(seconds_since(start), 2 * kBytes / 100e6 * 0.999);
  start = std::chrono::steady_clock::now();
  in->copy({a.get(), 0}, {host.get(), 0}, kBytes);
  in->synchronize();
  EXPECT_GE(seconds_since(start), kBytes / 100e6 * 0.999);
  // Two queues of one direction share the link.
  const auto second = device->create_queue(Lane::kCopyOut);
  const auto other = device->allocate(Tier::kHost, kBytes);
  start = std::chrono::steady_clock::now();
  out->copy({host.get(), 0}, {a.get(), 0}, kBytes);
  second->copy({other.get(), 0}, {a.get(), 0}, kBytes);
  out->synchronize();
  second->synchronize();
  EXPECT_GE(seconds_since(start), 2 * kBytes / 100e6 * 0.999);
}

}  // namespace
}  // namespace cairn::device
