#include "runtime/device/cuda/memory.h"

#include <algorithm>
#include <cstring>

#include "runtime/device/cuda/numa.h"

namespace cairn::device::cuda {
namespace {

[[noreturn]] void out_of_memory(const State& state, const Ledger& ledger, Tier tier, int64_t bytes,
                                std::string_view why, int64_t whole) {
  MemoryFault fault;
  fault.requested_bytes = static_cast<uint64_t>(bytes);
  fault.in_use_bytes = static_cast<uint64_t>(ledger.count(tier).reserved_bytes);
  fault.budget_bytes = static_cast<uint64_t>(whole);
  fault.tier = tier;
  throw Error(
      Code::kOutOfMemory,
      cat("the ", kTierNames[static_cast<size_t>(tier)], " tier of '", state.info.name, "' cannot give ",
          bytes, " bytes: ", why, " (", fault.in_use_bytes, " bytes in use by cairn, of ", whole, ")"),
      fault);
}

void* allocate(State& state, int64_t bytes) {
  size_t free_bytes = 0, total_bytes = 0;
  state.must(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, static_cast<size_t>(bytes));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // not sticky, but remembered
    out_of_memory(state, state.ledger(), Tier::kDevice, bytes, cat(free_bytes, " are free on the GPU"),
                  static_cast<int64_t>(total_bytes));
  }
  state.must(status, cat("cudaMalloc of ", bytes, " bytes"));
  try {
    state.zero_now(memory, bytes);
  } catch (...) {
    cudaFree(memory);
    throw;
  }
  return memory;
}

}  // namespace

HostMemory::HostMemory(State& state, Tier tier, int64_t bytes)
    : state_(state), tier_(tier), bytes_(bytes), memory_(state.host, tier, bytes, false) {
  state.enter();
  if (state.host.system_memory) {
    prefer_node(memory_.address(), bytes, state.node);
    host::populate(memory_.address(), bytes, state.host.info.threads);
  }
  const cudaError_t status =
      cudaHostRegister(memory_.address(), static_cast<size_t>(bytes), cudaHostRegisterPortable);
  if (status == cudaSuccess) {
    state_.ledger().pin(tier_, bytes_);
    return;
  }
  if (is_lost(status)) throw state.note(status, "cudaHostRegister");
  cudaGetLastError();
  out_of_memory(
      state, state.ledger(), tier, bytes,
      cat("they cannot be pinned: ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ')'),
      state.host.info.memory_bytes);
}

HostMemory::~HostMemory() {
  cudaHostUnregister(memory_.address());
  state_.ledger().pin(tier_, -bytes_);
}

DiskMemory::DiskMemory(State& state, int64_t bytes)
    : disk(state.host, bytes),
      out(state, Tier::kHost, std::min(bytes, kSlotBytes)),
      in(state, Tier::kHost, std::min(bytes, kSlotBytes)) {}

CudaBlock::CudaBlock(std::shared_ptr<State> state, Tier tier, int64_t bytes)
    : state_(std::move(state)), tier_(tier), bytes_(bytes) {
  require(bytes > 0, Code::kInvalidArgument, "a block needs at least one byte, not ", bytes);
  state_->enter();
  switch (tier) {
    case Tier::kDevice:
      device_ = allocate(*state_, bytes);
      break;
    case Tier::kHost:
      host_.emplace(*state_, tier, bytes);
      break;
    case Tier::kDisk:
      disk_ = std::make_unique<DiskMemory>(*state_, bytes);
      state_->ledger().stage(tier_, staging_bytes());
      break;
  }
  state_->ledger().reserve(tier, bytes);
}

CudaBlock::~CudaBlock() {
  cudaSetDevice(state_->ordinal);
  if (disk_) state_->ledger().stage(tier_, -staging_bytes());
  cudaFree(device_);  // of a lost device, too: it says so, and nothing more can be done
  host_.reset();
  disk_.reset();
  state_->ledger().release(tier_, bytes_);
}

int64_t CudaBlock::staging_bytes() const {
  return disk_ ? disk_->disk.staging_bytes() + disk_->out.bytes() + disk_->in.bytes() : 0;
}

void CudaBlock::write(int64_t offset, const void* from, int64_t bytes) {
  if (device_ == nullptr) return Block::write(offset, from, bytes);
  state_->copy_now(static_cast<char*>(device_) + offset, from, bytes, cudaMemcpyHostToDevice,
                   "a copy to the device");
}

void CudaBlock::read(int64_t offset, void* to, int64_t bytes) const {
  if (device_ == nullptr) return Block::read(offset, to, bytes);
  state_->copy_now(to, static_cast<const char*>(device_) + offset, bytes, cudaMemcpyDeviceToHost,
                   "a copy from the device");
}

}  // namespace cairn::device::cuda
