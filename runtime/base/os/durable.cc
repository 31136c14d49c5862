#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "runtime/base/os/file.h"

namespace cairn {
namespace fs = std::filesystem;
namespace {

bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

DurableDirectory::File::File(Descriptor fd, std::string path, std::shared_ptr<int> open)
    : fd_(std::move(fd)), path_(std::move(path)), open_(std::move(open)) {
  ++*open_;
}

void DurableDirectory::File::append(const void* data, uint64_t bytes) {
  write_all(fd_.get(), path_, size_, data, bytes);
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
  if (!fd_.open()) return;
  sync_fd(fd_.get(), path_);
  fd_.close();
  --*open_;
}

DurableDirectory::DurableDirectory(const fs::path& target, OwnFiles own)
    : place_(place_of(target)), own_(std::move(own)), open_(std::make_shared<int>(0)) {
  try {
    const Descriptor old = open_directory_at(place_.parent.get(), place_.name);
    require(old.open() || errno == ENOENT, errno == ENOTDIR ? Code::kInvalidArgument : Code::kIo,
            "cannot replace '", place_.path.string(),
            "' by a directory: ", errno == ENOTDIR ? "it is a file" : last_error());
    if (old.open()) foreign_ = not_ours(old.get());
    temporary_ = make_temporary(place_, TemporaryKind::kDirectory, own_);
  } catch (...) {
    place_.forget();
    throw;
  }
}

DurableDirectory::~DurableDirectory() {
  if (committed_) return;
  // Under the lock still, so that no other writer is in the middle of the same clean-up.
  if (!keep_) remove_own(place_, temporary_.name, temporary_.fd.get(), created_);
  place_.forget();
}

std::unique_ptr<DurableDirectory::File> DurableDirectory::create(const std::string& name) {
  require(!name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos,
          Code::kInvalidArgument, "'", name, "' is not a plain file name");
  require(!among(foreign_, name), Code::kInvalidArgument, "'", (place_.path / name).string(),
          "' was not written by the save that is replaced; move it elsewhere or save under another name");
  const std::string path = (temporary_.path / name).string();
  Descriptor fd = open_at(temporary_.fd.get(), name, O_RDWR | O_CREAT | O_EXCL);
  require(fd.open(), Code::kIo, "cannot create '", path, "': ", last_error());
  created_.push_back(name);
  return std::unique_ptr<File>(new File(std::move(fd), path, open_));
}

void DurableDirectory::write(const std::string& name, std::span<const std::byte> bytes) {
  const auto file = create(name);
  file->append(bytes.data(), bytes.size());
  file->close();
}

void DurableDirectory::rewrite(const std::string& name, std::span<const std::byte> bytes) {
  const std::string fresh = name + ".new";
  write(fresh, bytes);
  const int directory = temporary_.fd.get();
  require(::renameat(directory, fresh.c_str(), directory, name.c_str()) == 0, Code::kIo, "cannot replace '",
          (temporary_.path / name).string(), "': ", last_error());
}

std::vector<std::string> DurableDirectory::not_ours(int old) const {
  const std::vector<std::string> ours = own_(old, place_.path, false);
  std::vector<std::string> others;
  for (const std::string& name : entries_of(old, place_.path)) {
    struct stat info;
    if (!among(ours, name) || !look_at(old, name, info) || !S_ISREG(info.st_mode)) others.push_back(name);
  }
  return others;
}

// Links the files that cairn did not write into the new directory, so that they are in place at every moment. What cannot be
// linked (directories, file systems without links) is moved after the exchange.
void DurableDirectory::link_from(int old) {
  for (const std::string& name : not_ours(old))
    if (::linkat(old, name.c_str(), temporary_.fd.get(), name.c_str(), 0) == 0) created_.push_back(name);
}

void DurableDirectory::put(unsigned flags) const {
  const int parent = place_.parent.get();
  if (::renameat2(parent, temporary_.name.c_str(), parent, place_.name.c_str(), flags) == 0) return;
  const bool unable = flags == RENAME_EXCHANGE && errno == EINVAL;
  fail(Code::kIo, "cannot put '", temporary_.path.string(), "' in place of '", place_.path.string(),
       "': ", last_error(),
       unable ? "; this file system cannot exchange directories: save under a new name" : "");
}

void DurableDirectory::commit() {
  require(!committed_, Code::kWrongState, "'", place_.path.string(), "' is committed already");
  require(*open_ == 0, Code::kWrongState, "'", place_.path.string(), "': ", *open_,
          " of its files are not closed");
  const int parent = place_.parent.get();
  const fs::path folder = place_.path.parent_path();
  const Descriptor old = open_directory_at(parent, place_.name);
  if (old.open()) link_from(old.get());
  sync_directory(temporary_.fd.get(), temporary_.path);
  // Both are one atomic step: a reader finds the old directory or the new one. A plain rename fails if a
  // target that is not empty appeared meanwhile.
  put(old.open() ? RENAME_EXCHANGE : 0);
  try {
    sync_directory(parent, folder);
  } catch (const std::exception&) {
    // The old directory is put back. Until a flush succeeds a power failure may leave either of them in place, so
    // both are kept complete.
    keep_ = true;
    if (old.open())
      put(RENAME_EXCHANGE);
    else if (::renameat2(parent, place_.name.c_str(), parent, temporary_.name.c_str(), 0) != 0)
      throw;
    try {
      sync_directory(parent, folder);
      keep_ = false;
    } catch (const std::exception&) {
    }
    throw;
  }
  committed_ = true;
  // The temporary's name is now that of the old content, if there was any.
  const Descriptor left = open_directory_at(parent, temporary_.name);
  if (left.open()) retire(place_, temporary_.name, left.get(), temporary_.fd.get(), own_, false);
}

DurableFile::DurableFile(const fs::path& target) : place_(place_of(target)) {
  try {
    struct stat info;
    require(!look_at(place_.parent.get(), place_.name, info) || S_ISREG(info.st_mode), Code::kInvalidArgument,
            "'", place_.path.string(), "' exists and is not a regular file");
    temporary_ = make_temporary(place_, TemporaryKind::kFile);
  } catch (...) {
    place_.forget();
    throw;
  }
}

DurableFile::~DurableFile() {
  if (committed_) return;
  const int parent = place_.parent.get();
  if (!renamed_ && names_file(parent, temporary_.name, temporary_.fd.get()))
    ::unlinkat(parent, temporary_.name.c_str(), 0);
  place_.forget();
}

void DurableFile::append(const void* data, uint64_t bytes) {
  write_all(temporary_.fd.get(), temporary_.path.string(), size_, data, bytes);
  size_ += bytes;
}

void DurableFile::write_at(uint64_t offset, const void* data, uint64_t bytes) {
  require(offset <= size_ && bytes <= size_ - offset, Code::kInvalidArgument, "bytes ", offset, "..",
          offset + bytes, " were not appended to '", place_.path.string(), "' yet");
  write_all(temporary_.fd.get(), temporary_.path.string(), offset, data, bytes);
}

void DurableFile::commit() {
  require(!committed_ && !renamed_, Code::kWrongState, "'", place_.path.string(), "' is committed already");
  sync_fd(temporary_.fd.get(), temporary_.path.string());
  const int parent = place_.parent.get();
  const fs::path folder = place_.path.parent_path();  // nothing after the rename takes memory
  if (::renameat(parent, temporary_.name.c_str(), parent, place_.name.c_str()) != 0)
    fail(Code::kIo, "cannot put '", temporary_.path.string(), "' in place of '", place_.path.string(),
         "': ", last_error());
  renamed_ = true;
  temporary_.fd.close();
  sync_directory(parent, folder);
  committed_ = true;
}

void write_file_durably(const fs::path& path, std::span<const std::byte> bytes) {
  DurableFile file(path);
  file.append(bytes.data(), bytes.size());
  file.commit();
}

}  // namespace cairn
