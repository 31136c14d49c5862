#include "runtime/base/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "runtime/base/temporary.h"

namespace cairn {
namespace fs = std::filesystem;

MappedFile::MappedFile(const fs::path& path) : path_(path) {
  // O_NONBLOCK: a pipe must not block the caller before we see that it is one.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  require(fd >= 0, errno == ENOENT || errno == ENOTDIR ? Code::kNotFound : Code::kIo, "cannot open '",
          path.string(), "': ", last_error());
  struct stat info;
  const bool regular = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  void* block = nullptr;
  if (regular && info.st_size > 0)
    block = ::mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
  const int error = errno;
  ::close(fd);
  require(regular, Code::kIo, "'", path.string(), "' is not a regular file");
  errno = error;
  require(block != MAP_FAILED, Code::kIo, "cannot map ", info.st_size, " bytes of '", path.string(),
          "': ", last_error());
  if (block != nullptr) bytes_ = {static_cast<const std::byte*>(block), static_cast<size_t>(info.st_size)};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

DurableDirectory::File::File(int fd, std::string path, std::shared_ptr<int> open)
    : fd_(fd), path_(std::move(path)), open_(std::move(open)) {
  ++*open_;
}

DurableDirectory::File::~File() {
  if (fd_ >= 0) ::close(fd_);  // open_ stays counted: what was not flushed must not be committed
}

void DurableDirectory::File::append(const void* data, uint64_t bytes) {
  write_all(fd_, path_, size_, data, bytes);
  size_ += bytes;
}

void DurableDirectory::File::pad_to(uint64_t alignment) {
  static constexpr char kZeros[256] = {};
  for (uint64_t left = (alignment - size_ % alignment) % alignment; left > 0;) {
    const uint64_t piece = std::min<uint64_t>(left, sizeof kZeros);
    append(kZeros, piece);
    left -= piece;
  }
}

void DurableDirectory::File::close() {
  if (fd_ < 0) return;
  sync_fd(fd_, path_);
  const int result = ::close(std::exchange(fd_, -1));
  require(result == 0, Code::kIo, "cannot close '", path_, "': ", last_error());
  --*open_;
}

DurableDirectory::DurableDirectory(fs::path target)
    : target_(resolve_target(target)), open_(std::make_shared<int>(0)) {
  std::error_code ignored;
  require(!fs::exists(target_, ignored) || fs::is_directory(target_, ignored), Code::kInvalidArgument, "'",
          target_.string(), "' exists and is not a directory");
  Temporary made = make_temporary(target_, TemporaryKind::kDirectory);
  temporary_ = std::move(made.path);
  lock_ = made.fd;
}

DurableDirectory::~DurableDirectory() {
  std::error_code ignored;
  // Under the lock still, so that no other writer is in the middle of the same clean-up.
  if (!committed_) fs::remove_all(temporary_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

std::unique_ptr<DurableDirectory::File> DurableDirectory::create(const std::string& name) {
  require(!name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos,
          Code::kInvalidArgument, "'", name, "' is not a plain file name");
  const std::string path = (temporary_ / name).string();
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  require(fd >= 0, Code::kIo, "cannot create '", path, "': ", last_error());
  return std::unique_ptr<File>(new File(fd, path, open_));
}

void DurableDirectory::write(const std::string& name, std::span<const std::byte> bytes) {
  const auto file = create(name);
  file->append(bytes.data(), bytes.size());
  file->close();
}

void DurableDirectory::commit() {
  require(!committed_, Code::kWrongState, "'", target_.string(), "' is committed already");
  require(*open_ == 0, Code::kWrongState, "'", target_.string(), "': ", *open_,
          " of its files are not closed");
  sync_directory(temporary_);
  std::error_code ignored;
  const bool exchange = fs::exists(target_, ignored);
  // Both are one atomic step: a reader finds the old directory or the new one. A plain rename fails if a
  // target that is not empty appeared meanwhile.
  if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(), exchange ? RENAME_EXCHANGE : 0) !=
      0)
    fail(Code::kIo, "cannot put '", temporary_.string(), "' in place of '", target_.string(),
         "': ", last_error(),
         exchange && errno == EINVAL ? "; this file system cannot exchange directories: save under a new name"
                                     : "");
  // From here on temporary_ names the old content, which nobody needs, or nothing.
  committed_ = true;
  sync_directory(target_.parent_path());
  if (exchange) fs::remove_all(temporary_, ignored);
}

DurableFile::DurableFile(fs::path target) : target_(resolve_target(target)) {
  std::error_code ignored;
  require(!fs::exists(target_, ignored) || fs::is_regular_file(target_, ignored), Code::kInvalidArgument, "'",
          target_.string(), "' exists and is not a regular file");
  Temporary made = make_temporary(target_, TemporaryKind::kFile);
  temporary_ = std::move(made.path);
  fd_ = made.fd;
}

DurableFile::~DurableFile() {
  if (fd_ < 0) return;
  std::error_code ignored;
  fs::remove(temporary_, ignored);
  ::close(fd_);
}

void DurableFile::append(const void* data, uint64_t bytes) {
  write_all(fd_, temporary_.string(), size_, data, bytes);
  size_ += bytes;
}

void DurableFile::write_at(uint64_t offset, const void* data, uint64_t bytes) {
  require(offset <= size_ && bytes <= size_ - offset, Code::kInvalidArgument, "bytes ", offset, "..",
          offset + bytes, " were not appended to '", target_.string(), "' yet");
  write_all(fd_, temporary_.string(), offset, data, bytes);
}

void DurableFile::commit() {
  require(fd_ >= 0, Code::kWrongState, "'", target_.string(), "' is committed already");
  sync_fd(fd_, temporary_.string());
  require(::rename(temporary_.c_str(), target_.c_str()) == 0, Code::kIo, "cannot put '", temporary_.string(),
          "' in place of '", target_.string(), "': ", last_error());
  ::close(std::exchange(fd_, -1));
  sync_directory(target_.parent_path());
}

void write_file_durably(const fs::path& path, std::span<const std::byte> bytes) {
  DurableFile file(path);
  file.append(bytes.data(), bytes.size());
  file.commit();
}

}  // namespace cairn
