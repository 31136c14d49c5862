// The system calls under files: interrupted and short ones are continued, failures name the path and the
// cause. Names are looked up in open directories and links are not followed, so that nothing outside of a
// directory is touched by what somebody puts into it meanwhile.
#pragma once
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace cairn {

// An open file or directory; closed when it goes.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void close() { Descriptor gone(std::move(*this)); }

 private:
  int fd_;
};

std::string last_error();  // of errno

// openat() without following a link at the end of `name`; not open, with errno set, if it fails.
Descriptor open_at(int directory, const std::string& name, int flags);
Descriptor open_directory_at(int directory, const std::string& name);
// A path that the caller was given: links are followed. kIo.
Descriptor open_directory(const std::filesystem::path& path);

// Whether `name` in the directory is the open file itself, and not a link or another file that took the name.
bool names_file(int directory, const std::string& name, int fd);
// lstat() of a name in the directory; false: there is no such file, or it cannot be looked at.
bool look_at(int directory, const std::string& name, struct stat& info);

// All names in it but "." and "..". kIo.
std::vector<std::string> entries_of(int directory, const std::filesystem::path& path);

void write_all(int fd, const std::string& path, uint64_t offset, const void* data, uint64_t bytes);
// kIo, too, if the file ends before: it was cut short since it was opened.
void read_all(int fd, const std::string& path, uint64_t offset, void* to, uint64_t bytes);
void sync_fd(int fd, const std::string& path);
void sync_directory(int fd, const std::filesystem::path& path);

}  // namespace cairn
