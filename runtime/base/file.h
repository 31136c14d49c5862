// Files that are there whole or not at all: durable directories, mapped reads.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/error.h"

namespace cairn {

// A read-only mapping of a whole file. kNotFound / kIo naming the path.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
};

// Writes a new directory next to `target`, then puts it in place: files fsynced, directory fsynced, rename
// (exchange if the target exists), parent fsynced. Until commit() returns, the old target is what a reader
// finds; a crash leaves at most a ".NAME.tmp-PID" directory that the next writer of the same target removes
// (a live writer holds a lock on its own). kIo names path, bytes and cause (disk full); kInvalidArgument: the
// target is a file.
class DurableDirectory {
 public:
  explicit DurableDirectory(std::filesystem::path target);
  ~DurableDirectory();  // not committed: removes what was written
  // Streams into a file of the directory.
  class File;
  std::unique_ptr<File> create(const std::string& name);
  void write(const std::string& name, std::span<const std::byte> bytes);
  void commit();  // kWrongState: a file is still open

  class File {
   public:
    ~File();
    void append(const void* data, uint64_t bytes);
    void pad_to(uint64_t alignment);
    uint64_t size() const { return size_; }
    void close();  // fsync

   private:
    friend class DurableDirectory;
    File(int fd, std::string path, std::shared_ptr<int> open);
    int fd_;
    std::string path_;
    uint64_t size_ = 0;
    std::shared_ptr<int> open_;  // files of the directory not closed yet
  };

 private:
  std::filesystem::path target_, temporary_;
  std::shared_ptr<int> open_;
  int lock_ = -1;
  bool committed_ = false;
};

// One file, streamed, same promise: a locked temporary sibling, fsync, rename, fsync of the folder.
class DurableFile {
 public:
  explicit DurableFile(std::filesystem::path target);
  ~DurableFile();  // not committed: removes what was written
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;
  void append(const void* data, uint64_t bytes);
  void write_at(uint64_t offset, const void* data, uint64_t bytes);  // inside what was appended: headers
  uint64_t size() const { return size_; }
  void commit();

 private:
  std::filesystem::path target_, temporary_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

// One whole file through DurableFile.
void write_file_durably(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace cairn
