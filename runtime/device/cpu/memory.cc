#include "runtime/device/cpu/memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "runtime/base/checked.h"

namespace cairn::device::cpu {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

int open_unnamed(const std::string& directory) {
  const int file = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) return file;
  std::string path = directory + "/cairn-tier-XXXXXX";  // file systems without O_TMPFILE
  const int named = mkostemp(path.data(), O_CLOEXEC);
  require(named >= 0, Code::kIo, "disk tier: cannot make a file in '", directory, "': ", reason(errno));
  unlink(path.c_str());
  return named;
}

[[noreturn]] void out_of_memory(const State& state, Tier tier, int64_t bytes, std::string_view why) {
  MemoryFault fault;
  fault.requested_bytes = static_cast<uint64_t>(bytes);
  fault.in_use_bytes = static_cast<uint64_t>(state.ledger.count(tier).reserved_bytes);
  fault.budget_bytes = static_cast<uint64_t>(state.info.memory_bytes);
  fault.tier = tier;
  throw Error(Code::kOutOfMemory,
              cat("the ", kTierNames[static_cast<size_t>(tier)], " tier of '", state.info.name,
                  "' cannot give ", bytes, " bytes: ", why, " (", fault.in_use_bytes,
                  " bytes in use, the machine has ", fault.budget_bytes, ")"),
              fault);
}

}  // namespace

DiskFile::DiskFile(const std::string& directory, int64_t bytes)
    : directory_(directory), descriptor_(open_unnamed(directory)) {
  const int error = posix_fallocate(descriptor_, 0, bytes);
  if (error == 0) return;
  close(descriptor_);
  fail(Code::kIo, "disk tier: cannot reserve ", bytes, " bytes in '", directory, "': ", reason(error));
}

DiskFile::~DiskFile() { close(descriptor_); }

void DiskFile::read(void* to, int64_t offset, int64_t bytes) const {
  for (int64_t done = 0; done < bytes;) {
    const ssize_t n =
        pread(descriptor_, static_cast<char*>(to) + done, static_cast<size_t>(bytes - done), offset + done);
    if (n < 0 && errno == EINTR) continue;
    require(n > 0, Code::kIo, "disk tier in '", directory_, "': reading ", bytes, " bytes at ", offset, ": ",
            n < 0 ? reason(errno) : "the file ends early");
    done += n;
  }
}

void DiskFile::write(const void* from, int64_t offset, int64_t bytes) const {
  for (int64_t done = 0; done < bytes;) {
    const ssize_t n = pwrite(descriptor_, static_cast<const char*>(from) + done,
                             static_cast<size_t>(bytes - done), offset + done);
    if (n < 0 && errno == EINTR) continue;
    require(n > 0, Code::kIo, "disk tier in '", directory_, "': writing ", bytes, " bytes at ", offset, ": ",
            n < 0 ? reason(errno) : "nothing was written");
    done += n;
  }
}

CpuBlock::CpuBlock(std::shared_ptr<State> state, Tier tier, int64_t bytes)
    : state_(std::move(state)), tier_(tier), bytes_(bytes) {
  require(bytes > 0, Code::kInvalidArgument, "a block needs at least one byte, not ", bytes);
  if (tier == Tier::kDisk) {
    file_ = std::make_unique<DiskFile>(state_->info.disk_directory, bytes);
  } else {
    if (bytes > state_->info.memory_bytes)
      out_of_memory(*state_, tier, bytes, "more than the machine's memory");
    const HostAllocator& a = state_->allocator;
    address_ = a.allocate(a.user, static_cast<size_t>(bytes), static_cast<size_t>(kPageBytes));
    if (address_ == nullptr) out_of_memory(*state_, tier, bytes, "the allocator refused");
    if (!state_->system_memory) std::memset(address_, 0, static_cast<size_t>(bytes));
  }
  state_->ledger.reserve(tier, bytes);
}

CpuBlock::~CpuBlock() {
  const HostAllocator& a = state_->allocator;
  if (address_ != nullptr && a.release != nullptr)
    a.release(a.user, address_, static_cast<size_t>(bytes_), static_cast<size_t>(kPageBytes));
  state_->ledger.release(tier_, bytes_);
}

}  // namespace cairn::device::cpu
