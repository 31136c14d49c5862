// The one error type of the runtime. Inside the library errors travel as exceptions; capi/src turns them into
// status codes at the ABI, so no exception ever crosses it.
#pragma once
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "runtime/base/text/cat.h"

namespace cairn {

// Values equal CAIRN_STATUS_* in cairn.h (checked in capi/src/status.cc). Append only.
enum class Code : int32_t {
  kOk = 0,
  kInvalidArgument = 1,
  kWrongState = 2,
  kOutOfMemory = 3,
  kOverBudget = 4,
  kUnsupported = 5,
  kNotFound = 6,
  kCorruptFile = 7,
  kIo = 8,
  kDeviceLost = 9,
  kCancelled = 10,
  kNonFinite = 11,
  kInternal = 12,
};

// Where bytes live. Values are part of the ABI.
enum class Tier : uint32_t { kDevice = 0, kHost = 1, kDisk = 2 };
inline constexpr int kTierCount = 3;
inline constexpr std::string_view kTierNames[kTierCount] = {"device", "host", "disk"};

// Filled for kOutOfMemory and kOverBudget; all in bytes.
struct MemoryFault {
  uint64_t requested_bytes = 0;
  uint64_t in_use_bytes = 0;
  uint64_t budget_bytes = 0;
  uint64_t smallest_budget_bytes = 0;  // 0: unknown
  Tier tier = Tier::kDevice;
  std::string region;  // what forms the peak; may be empty
};

// Copies share what they say, so that keeping and throwing an error again never fails for want of memory.
class Error : public std::exception {
 public:
  Error(Code code, std::string message);
  Error(Code code, std::string message, MemoryFault fault);
  // Takes no memory: for what has to be said when there is none. `message` is a literal.
  static Error of_literal(Code code, const char* message) noexcept { return Error(Literal(), code, message); }

  Code code() const { return code_; }
  const char* what() const noexcept override { return text_; }
  const MemoryFault* fault() const { return fault_; }

 private:
  struct Said;
  struct Literal {};
  Error(Literal, Code code, const char* text) noexcept : code_(code), text_(text) {}

  Code code_;
  const char* text_;
  const MemoryFault* fault_ = nullptr;
  std::shared_ptr<const Said> said_;  // owns both; empty for a literal
};
static_assert(std::is_nothrow_copy_constructible_v<Error> && std::is_nothrow_copy_assignable_v<Error>);

template <class... Parts>
[[noreturn, gnu::cold]] void fail(Code code, const Parts&... parts) {
  throw Error(code, cat(parts...));
}

template <class... Parts>
void require(bool condition, Code code, const Parts&... parts) {
  if (!condition) [[unlikely]]
    fail(code, parts...);
}

// Runs a check of bytes that came from outside. Its error is thrown again with the status `code` and with `parts` in front of
// the message. kOutOfMemory is passed on as it is, since it is not the bytes' fault.
template <class... Parts>
[[noreturn]] void fail_as(Code code, const Error& said, const Parts&... parts) {
  if (said.code() == Code::kOutOfMemory) throw said;
  fail(code, parts..., said.what());
}

// The status of a failed system call: ENOMEM is want of memory, anything else kIo.
Code code_of_errno(int number);

}  // namespace cairn
