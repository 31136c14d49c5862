// Reading files that may change meanwhile, and writing files that are either complete or not there.
#pragma once
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/os/temporary.h"

namespace cairn {

// A regular file, read at positions by any number of threads. It is not mapped: when somebody cuts it short
// while it is open, a read is kIo and not a signal. kNotFound / kIo naming the path.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path);
  InputFile(int directory, const std::string& name, const std::filesystem::path& path);  // no link followed
  uint64_t size() const { return size_; }                                                // when it was opened
  void read(uint64_t offset, void* to, uint64_t bytes) const;
  const std::filesystem::path& path() const { return path_; }
  // kIo: somebody has written to it since it was opened. One that took its name is another file.
  void require_unchanged() const;

 private:
  void check();

  std::filesystem::path path_;
  Descriptor fd_;
  uint64_t size_ = 0;
  int64_t modified_ = 0;  // nanoseconds
};

// The content of a file, in memory. kCorruptFile: it is larger than `limit`.
class FileContent {
 public:
  explicit FileContent(const std::filesystem::path& path,
                       uint64_t limit = std::numeric_limits<int64_t>::max());
  explicit FileContent(const InputFile& file, uint64_t limit = std::numeric_limits<int64_t>::max());
  std::span<const std::byte> bytes() const { return {bytes_.get(), size_}; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::unique_ptr<std::byte[]> bytes_;  // aligned to max_align_t
  size_t size_ = 0;
};

// Writes a new directory next to `target`, then puts it in place: files fsynced, directory fsynced, rename
// (exchange if the target exists), parent fsynced. Until commit() returns, the old target is what a reader
// finds; a crash leaves at most a ".NAME.tmp-PID" directory, which the next writer of the same target removes
// (a live writer holds a lock on its own). Files of the old target that are not `own` are in the new one,
// too. kIo names path, bytes and cause (disk full), and all is as before; kInvalidArgument: the target is a
// file.
class DurableDirectory {
 public:
  // `own` throws kInvalidArgument for a target that must not be replaced.
  DurableDirectory(const std::filesystem::path& target, OwnFiles own);
  ~DurableDirectory();  // not committed: removes what was written
  DurableDirectory(const DurableDirectory&) = delete;
  DurableDirectory& operator=(const DurableDirectory&) = delete;
  // Streams into a file of the directory. kInvalidArgument: the target has a file of that name that cairn did not write.
  class File;
  std::unique_ptr<File> create(const std::string& name);
  void write(const std::string& name, std::span<const std::byte> bytes);
  // The same for a file of the directory: it has its old content or the new one at every moment. "NAME.new"
  // is its name until it is complete.
  void rewrite(const std::string& name, std::span<const std::byte> bytes);
  // Where the file is until commit(), for reading it back.
  const std::filesystem::path& path() const { return temporary_.path; }
  void commit();  // kWrongState: a file is still open

  class File {
   public:
    ~File() = default;  // not closed: what was not flushed must not be committed
    void append(const void* data, uint64_t bytes);
    void pad_to(uint64_t alignment);
    uint64_t size() const { return size_; }
    void close();  // fsync

   private:
    friend class DurableDirectory;
    File(Descriptor fd, std::string path, std::shared_ptr<int> open);
    Descriptor fd_;
    std::string path_;
    uint64_t size_ = 0;
    std::shared_ptr<int> open_;  // files of the directory not closed yet
  };

 private:
  std::vector<std::string> not_ours(int old) const;
  void link_from(int old);
  void put(unsigned flags) const;

  Place place_;
  OwnFiles own_;
  Temporary temporary_;
  std::vector<std::string> created_, foreign_;  // in the new directory; in the old one and not ours
  std::shared_ptr<int> open_;
  bool committed_ = false;
  bool keep_ = false;  // whether it is in place after a power failure is not known: nothing may be deleted
};

// One file, streamed, same promise: a locked temporary sibling, fsync, rename, fsync of the folder.
class DurableFile {
 public:
  explicit DurableFile(const std::filesystem::path& target);
  ~DurableFile();  // not committed: removes what was written
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;
  void append(const void* data, uint64_t bytes);
  void write_at(uint64_t offset, const void* data, uint64_t bytes);  // inside what was appended: headers
  uint64_t size() const { return size_; }
  void commit();

 private:
  Place place_;
  Temporary temporary_;
  uint64_t size_ = 0;
  bool committed_ = false, renamed_ = false;
};

// Writes one file through DurableFile.
void write_file_durably(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace cairn
