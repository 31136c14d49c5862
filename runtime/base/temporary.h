// Temporary siblings of a file or directory that is about to be replaced, and the system calls under durable
// writes.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace cairn {

// A new, empty ".NAME.tmp-PID[.N]" beside `target`, held by an exclusive flock for as long as `fd` is open.
// The lock, not the process id, says that the writer lives: ids repeat after a restart or in another
// container.
struct Temporary {
  std::filesystem::path path;
  int fd = -1;
};
enum class TemporaryKind { kFile, kDirectory };
// Also removes siblings of dead writers and makes missing parent folders. kIo names path and cause.
Temporary make_temporary(const std::filesystem::path& target, TemporaryKind kind);

// `path` without a trailing slash, symbolic links resolved, so that the thing itself is replaced and not a
// link to it.
std::filesystem::path resolve_target(const std::filesystem::path& path);

std::string last_error();  // of errno
void write_all(int fd, const std::string& path, uint64_t offset, const void* data, uint64_t bytes);
void sync_fd(int fd, const std::string& path);
void sync_directory(const std::filesystem::path& path);

}  // namespace cairn
