// The one error type of the runtime. Inside the library errors travel as exceptions; capi/src turns them into
// status codes at the ABI, so no exception ever crosses it.
#pragma once
#include <cstdint>
#include <exception>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

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

class Error : public std::exception {
 public:
  Error(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  Error(Code code, std::string message, MemoryFault fault)
      : code_(code), message_(std::move(message)), fault_(std::move(fault)), has_fault_(true) {}
  Code code() const { return code_; }
  const char* what() const noexcept override { return message_.c_str(); }
  const MemoryFault* fault() const { return has_fault_ ? &fault_ : nullptr; }

 private:
  Code code_;
  std::string message_;
  MemoryFault fault_;
  bool has_fault_ = false;
};

// Concatenates anything that prints: cat("op '", name, "' has ", n, " inputs").
template <class... Parts>
std::string cat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

template <class... Parts>
[[noreturn]] void fail(Code code, const Parts&... parts) {
  throw Error(code, cat(parts...));
}

template <class... Parts>
void require(bool condition, Code code, const Parts&... parts) {
  if (!condition) [[unlikely]]
    fail(code, parts...);
}

}  // namespace cairn
