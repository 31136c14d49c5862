#include "runtime/base/os/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace cairn {
namespace fs = std::filesystem;

// O_NONBLOCK: a pipe must not block the caller before we see that it is one.
namespace {

int64_t modified(const struct stat& info) {
  return static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec;
}

}  // namespace

InputFile::InputFile(const fs::path& path) : path_(path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  while (fd < 0 && errno == EINTR) fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  fd_ = Descriptor(fd);
  check();
}

InputFile::InputFile(int directory, const std::string& name, const fs::path& path)
    : path_(path), fd_(open_at(directory, name, O_RDONLY | O_NONBLOCK)) {
  check();
}

void InputFile::check() {
  require(fd_.open(), errno == ENOENT || errno == ENOTDIR ? Code::kNotFound : Code::kIo, "cannot open '",
          path_.string(), "': ", last_error());
  struct stat info;
  require(::fstat(fd_.get(), &info) == 0, Code::kIo, "cannot look at '", path_.string(), "': ", last_error());
  // What is named is of the wrong kind: the system refuses nothing.
  require(S_ISREG(info.st_mode), Code::kInvalidArgument, "'", path_.string(), "' is ",
          S_ISDIR(info.st_mode) ? "a directory, and no file" : "not a regular file");
  size_ = static_cast<uint64_t>(info.st_size);
  modified_ = modified(info);
}

void InputFile::require_unchanged() const {
  struct stat info;
  const bool same = ::fstat(fd_.get(), &info) == 0 && static_cast<uint64_t>(info.st_size) == size_ &&
                    modified(info) == modified_;
  require(same, Code::kIo, "'", path_.string(),
          "' was written to while it was open, and what it holds is not known any more");
}

void InputFile::read(uint64_t offset, void* to, uint64_t bytes) const {
  read_all(fd_.get(), path_.native(), offset, to, bytes);
}

FileContent::FileContent(const fs::path& path, uint64_t limit) : FileContent(InputFile(path), limit) {}

FileContent::FileContent(const InputFile& file, uint64_t limit) : path_(file.path()) {
  require(file.size() <= limit, Code::kCorruptFile, "'", path_.string(), "' has ", file.size(),
          " bytes, above the ", limit, " that such a file can have");
  size_ = static_cast<size_t>(file.size());
  bytes_ = std::make_unique_for_overwrite<std::byte[]>(size_);
  file.read(0, bytes_.get(), size_);
}

}  // namespace cairn
