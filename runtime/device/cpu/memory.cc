#include "runtime/device/cpu/memory.h"

namespace cairn::device::cpu {

CpuBlock::CpuBlock(std::shared_ptr<host::State> state, Tier tier, int64_t bytes)
    : state_(std::move(state)), tier_(tier), bytes_(bytes) {
  require(bytes > 0, Code::kInvalidArgument, "a block needs at least one byte, not ", bytes);
  if (tier == Tier::kDisk) {
    disk_ = std::make_unique<host::Disk>(*state_, bytes);
  } else {
    memory_.emplace(*state_, tier, bytes, tier == Tier::kHost);
  }
  state_->ledger.reserve(tier, bytes);
}

CpuBlock::~CpuBlock() {
  memory_.reset();
  disk_.reset();
  state_->ledger.release(tier_, bytes_);
}

}  // namespace cairn::device::cpu
