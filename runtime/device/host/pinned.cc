#include "runtime/device/host/pinned.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>

#include "runtime/base/checked.h"
#include "runtime/base/os/cgroup.h"
#include "runtime/base/os/thread.h"

namespace cairn::device::host {
namespace {

constexpr int64_t kShare = int64_t{32} << 20;  // a thread for less is not worth starting
constexpr int kPopulateWrite = 23;             // MADV_POPULATE_WRITE, Linux 5.14

bool populate_share(char* address, int64_t bytes) {
  if (madvise(address, static_cast<size_t>(bytes), kPopulateWrite) == 0) return true;
  if (errno != EINVAL) return false;
  for (int64_t i = 0; i < bytes; i += kPageBytes) const_cast<volatile char*>(address)[i] = 0;
  return true;
}

[[noreturn]] void out_of_memory(const State& state, Tier tier, int64_t bytes, std::string_view why) {
  MemoryFault fault;
  fault.requested_bytes = static_cast<uint64_t>(bytes);
  fault.in_use_bytes = static_cast<uint64_t>(state.ledger.count(tier).reserved_bytes);
  fault.budget_bytes = static_cast<uint64_t>(state.info.memory_bytes);
  fault.tier = tier;
  throw Error(Code::kOutOfMemory,
              cat("the ", kTierNames[static_cast<size_t>(tier)], " tier of '", state.info.name,
                  "' cannot give ", bytes, " bytes: ", why, " (", fault.in_use_bytes, " bytes in use, ",
                  state.info.memory_limit.empty() ? "the machine has" : state.info.memory_limit,
                  state.info.memory_limit.empty() ? " " : " allows ", fault.budget_bytes, ")"),
              fault);
}

}  // namespace

bool populate(void* address, int64_t bytes, int threads) {
  auto* const base = static_cast<char*>(address);
  const int64_t whole = align_up(bytes, kPageBytes);
  const int64_t shares = std::clamp<int64_t>(whole / kShare, 1, std::max(threads, 1));
  const int64_t share =
      align_up((whole + shares - 1) / shares, int64_t{2} << 20);  // a multiple of huge pages
  std::atomic<bool> good{true};
  spread("cairn/touch", shares, threads, [&](int64_t s) {
    const int64_t begin = s * share;
    if (begin < whole && !populate_share(base + begin, std::min(share, whole - begin))) good.store(false);
  });
  return good.load();
}

std::string lock_pages(void* address, int64_t bytes) {
  if (mlock(address, static_cast<size_t>(bytes)) == 0) return {};
  return std::generic_category().message(errno);
}

void unlock_pages(void* address, int64_t bytes) { munlock(address, static_cast<size_t>(bytes)); }

Memory::Memory(State& state, Tier tier, int64_t bytes, bool pin) : state_(state), tier_(tier), bytes_(bytes) {
  if (bytes > state.info.memory_bytes)
    out_of_memory(state, tier, bytes, "more than the memory that this process may use");
  // The system promises more than it has, and ends somebody when it is called upon: ask before.
  if (const int64_t available = state.system_memory ? available_memory() : bytes; bytes > available)
    out_of_memory(state, tier, bytes, cat("only ", available, " are available"));
  const HostAllocator& a = state.allocator;
  address_ =
      static_cast<char*>(a.allocate(a.user, static_cast<size_t>(bytes), static_cast<size_t>(kPageBytes)));
  if (address_ == nullptr) out_of_memory(state, tier, bytes, "the allocator refused");
  if (reinterpret_cast<uintptr_t>(address_) % kPageBytes != 0) {
    const auto given = reinterpret_cast<uintptr_t>(address_);
    release();
    fail(Code::kInvalidArgument, "the host's allocator gave a block at address ", given, " for ", bytes,
         " bytes, which is not aligned to the ", kPageBytes, " bytes that were asked for");
  }
  if (!state.system_memory) std::memset(address_, 0, static_cast<size_t>(bytes));
  if (!pin) return;
  const bool present = !state.system_memory || populate(address_, bytes, state.info.threads);
  const std::string refusal = present ? lock_pages(address_, bytes) : "";
  pinned_ = present && refusal.empty();
  if (present && (pinned_ || state.pinning != Pinning::kRequired)) {
    state.ledger.pin(tier, pinned_bytes());
    return;
  }
  release();
  out_of_memory(state, tier, bytes,
                present ? cat("they cannot be pinned: ", refusal, " (limit: RLIMIT_MEMLOCK)")
                        : "the system has too few pages");
}

Memory::~Memory() {
  state_.ledger.pin(tier_, -pinned_bytes());
  release();
}

void Memory::release() {
  if (pinned_) unlock_pages(address_, bytes_);  // an allocator may keep the pages
  const HostAllocator& a = state_.allocator;
  if (a.release != nullptr)
    a.release(a.user, address_, static_cast<size_t>(bytes_), static_cast<size_t>(kPageBytes));
}

}  // namespace cairn::device::host
