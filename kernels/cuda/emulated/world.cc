#include "kernels/cuda/emulated/world.h"

namespace cairn::kernels::cuda::emulated {
namespace {

bool is_sticky(cudaError_t status) {
  return status == cudaErrorIllegalAddress || status == cudaErrorLaunchFailure ||
         status == cudaErrorECCUncorrectable;
}

int64_t sum(const std::map<const char*, size_t>& blocks) {
  std::lock_guard lock(world().mutex);
  size_t total = 0;
  for (const auto& [at, bytes] : blocks) total += bytes;
  return static_cast<int64_t>(total);
}

}  // namespace

World& world() {
  static World* const one = new World;  // outlives every thread
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
  w.gpu = {};
}

Gpu& gpu() { return world().gpu; }

int64_t calls(std::string_view function) {
  World& w = world();
  std::lock_guard lock(w.mutex);
  const auto found = w.calls.find(function);
  return found == w.calls.end() ? 0 : found->second;
}

int64_t allocated_bytes() { return sum(world().device); }
int64_t registered_bytes() { return sum(world().host); }

}  // namespace cairn::kernels::cuda::emulated
