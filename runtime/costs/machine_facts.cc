#include "runtime/costs/machine_facts.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "runtime/costs/disk_rates.h"
#include "runtime/costs/model.h"
#include "runtime/costs/probe/host_memory.h"

namespace cairn::costs {
namespace {

// errno says why not.
bool can_hold_files(const std::string& directory) {
  int file = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) {  // some file systems have no files without a name
    std::string path = directory + "/cairn-tier-XXXXXX";
    file = ::mkostemp(path.data(), O_CLOEXEC);
    if (file >= 0) ::unlink(path.c_str());
  }
  if (file >= 0) ::close(file);
  return file >= 0;
}

void ask_disk(const std::string& directory, MachineFacts& facts) {
  struct statvfs space = {};
  errno = 0;
  if (statvfs(directory.c_str(), &space) != 0 || !can_hold_files(directory)) {
    facts.disk_refusal =
        cat("no file can be made in '", directory, "': ", std::generic_category().message(errno),
            "; name another directory (TMPDIR, or the device's disk_directory), or leave the tier out");
    return;
  }
  facts.disk_room_bytes = static_cast<int64_t>(space.f_bavail) * static_cast<int64_t>(space.f_frsize);
}

}  // namespace

MachineFacts find_machine_facts(const device::DeviceInfo& info, const Table* table, bool with_disk,
                                const std::string& how) {
  MachineFacts facts;
  if (table != nullptr && table->model) return facts;
  if (with_disk) ask_disk(info.disk_directory, facts);
  const bool knows_disk =
      table != nullptr && table->profile && table->profile->find_link("disk", 0) != nullptr;
  // A profile knows the disk as the device sees it; beside a device with its own memory, the host sees it otherwise.
  if (with_disk && facts.disk_refusal.empty() && (!knows_disk || !info.host_reaches))
    facts.disk = find_disk_link({info.disk_directory, how});
  if (!info.host_reaches)
    facts.host_memory_bytes_per_second = find_host_memory_rate({info.host_threads, how});
  return facts;
}

}  // namespace cairn::costs
