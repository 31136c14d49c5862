#include "tests/cuda/emulated/world.h"

#include <cstdlib>
#include <limits>

namespace cairn::kernels::cuda::emulated {
namespace {

// As the toolkit's documentation of each says, or "any further work returns the same error".
bool is_sticky(cudaError_t status) {
  constexpr cudaError_t kSticky[] = {
      cudaErrorECCUncorrectable,    cudaErrorNvlinkUncorrectable, cudaErrorContained,
      cudaErrorIllegalAddress,      cudaErrorLaunchTimeout,       cudaErrorAssert,
      cudaErrorHardwareStackError,  cudaErrorIllegalInstruction,  cudaErrorMisalignedAddress,
      cudaErrorInvalidAddressSpace, cudaErrorInvalidPc,           cudaErrorLaunchFailure,
      cudaErrorTensorMemoryLeak,    cudaErrorMpsClientTerminated, cudaErrorExternalDevice,
  };
  return std::find(std::begin(kSticky), std::end(kSticky), status) != std::end(kSticky);
}

// For programs that load this as a plugin: which libraries there are.
void read_libraries(World& w) {
  const auto number = [](const char* name, int otherwise) {
    const char* const given = std::getenv(name);
    return given != nullptr ? std::atoi(given) : otherwise;
  };
  w.libraries.attention = number("CAIRN_EMULATED_CUDNN", w.libraries.attention);
  w.libraries.first_algorithm_slow = number("CAIRN_EMULATED_SLOW_PRODUCTS", 0) != 0;
  w.libraries.sums_slow = number("CAIRN_EMULATED_SLOW_SUMS", 0) != 0;
}

// Failures from the beginning on: "cudaHostRegister=801,...".
void read_failures(World& w) {
  const char* const given = std::getenv("CAIRN_EMULATED_FAILURES");
  std::string_view left = given != nullptr ? given : "";
  while (!left.empty()) {
    const std::string one(left.substr(0, left.find(',')));
    left.remove_prefix(std::min(left.size(), one.size() + 1));
    const size_t equal = std::min(one.find('='), one.size() - 1);
    w.failures[one.substr(0, equal)] = {static_cast<cudaError_t>(std::atoi(one.c_str() + equal + 1)), 0,
                                        std::numeric_limits<int>::max()};
  }
}

int64_t sum(const std::map<const char*, size_t>& blocks) {
  std::lock_guard lock(world().mutex);
  size_t total = 0;
  for (const auto& [at, bytes] : blocks) total += bytes;
  return static_cast<int64_t>(total);
}

}  // namespace

World& world() {
  static World* const one = [] {  // outlives every thread
    auto* const made = new World;
    read_libraries(*made);
    read_failures(*made);
    return made;
  }();
  return *one;
}

cudaError_t enter(std::string_view function) {
  World& w = world();
  std::lock_guard lock(w.mutex);
  ++w.calls[std::string(function)];
  if (w.sticky != cudaSuccess) return w.sticky;
  const auto found = w.failures.find(function);
  if (found == w.failures.end()) return cudaSuccess;
  World::Failure& failure = found->second;
  if (failure.after-- > 0) return cudaSuccess;
  const cudaError_t status = failure.status;
  if (--failure.times <= 0) w.failures.erase(found);
  if (is_sticky(status)) w.sticky = status;
  return status;
}

bool inside(const std::map<const char*, size_t>& blocks, const char* at, size_t bytes) {
  auto block = blocks.upper_bound(at);
  if (block == blocks.begin()) return false;
  --block;
  return at + bytes <= block->first + block->second;
}

void stick(cudaError_t status) {
  World& w = world();
  std::lock_guard lock(w.mutex);
  if (w.sticky == cudaSuccess) w.sticky = status;
}

void fail(std::string_view function, cudaError_t status, int after, int times) {
  World& w = world();
  std::lock_guard lock(w.mutex);
  w.failures[std::string(function)] = {status, after, times};
}

void reset() {
  World& w = world();
  std::lock_guard lock(w.mutex);
  w.failures.clear();
  w.calls.clear();
  w.sticky = cudaSuccess;
  w.pageable = 0;
  w.gpu = {};
  w.libraries = {};
}

Gpu& gpu() { return world().gpu; }
Libraries& libraries() { return world().libraries; }
int64_t pageable_copies() { return world().pageable; }

int64_t calls(std::string_view function) {
  World& w = world();
  std::lock_guard lock(w.mutex);
  const auto found = w.calls.find(function);
  return found == w.calls.end() ? 0 : found->second;
}

int64_t allocated_bytes() { return sum(world().device); }
int64_t registered_bytes() { return sum(world().host); }

}  // namespace cairn::kernels::cuda::emulated
