#include "runtime/base/os/temporary.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/base/error.h"

namespace cairn {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kMark = ".tmp-";
constexpr const char* kRemovedStem = ".cairn-removed";

void make_directories(const fs::path& path, std::vector<fs::path>& made) {
  std::error_code failed;
  if (path.empty() || fs::is_directory(path, failed)) return;
  require(
      (!failed || failed == std::errc::no_such_file_or_directory || failed == std::errc::not_a_directory) &&
          path.has_relative_path(),
      Code::kIo, "cannot look at directory '", path.string(), "': ", failed.message());
  make_directories(path.parent_path(), made);
  if (::mkdir(path.c_str(), 0777) != 0) {
    require(errno == EEXIST, Code::kIo, "cannot make directory '", path.string(), "': ", last_error());
    return;
  }
  made.push_back(path);
  const fs::path above = path.parent_path();
  sync_directory(open_directory(above).get(), above);
}

fs::path resolved(const fs::path& path) {
  std::error_code failed;
  fs::path full = fs::weakly_canonical(fs::absolute(path, failed), failed);
  require(!failed, code_of_errno(failed.value()), "cannot resolve '", path.string(), "': ", failed.message());
  if (full.filename().empty()) full = full.parent_path();
  require(!full.filename().empty(), Code::kInvalidArgument, "'", path.string(), "' cannot be replaced");
  return full;
}

// STEM.tmp-PID or STEM.tmp-PID.N
bool temporary_of(std::string_view name, const std::string& stem) {
  if (!name.starts_with(stem) || !name.substr(stem.size()).starts_with(kMark)) return false;
  name.remove_prefix(stem.size() + kMark.size());
  const auto digits = [&] {
    const size_t end = std::min(name.find_first_not_of("0123456789"), name.size());
    name.remove_prefix(end);
    return end > 0;
  };
  if (!digits()) return false;
  if (name.empty()) return true;
  name.remove_prefix(1);
  return digits() && name.empty();
}

std::string candidate(const std::string& stem, int attempt) {
  const std::string name = stem + std::string(kMark) + std::to_string(::getpid());
  return attempt == 0 ? name : name + "." + std::to_string(attempt);
}

// Calls each(name, descriptor) for the temporaries of a stem whose writers are dead.
template <class Each>
void for_dead(const Place& place, const std::string& stem, TemporaryKind kind, const Each& each) {
  const int parent = place.parent.get();
  std::vector<std::string> names;
  try {
    names = entries_of(parent, place.path.parent_path());
  } catch (const Error&) {
    return;  // a folder that can be written but not listed: nothing is found in it, nothing removed
  }
  bool flushed = false;
  for (const std::string& name : names) {
    if (!temporary_of(name, stem)) continue;
    const bool directory = kind == TemporaryKind::kDirectory;
    const Descriptor found = open_at(parent, name, O_RDONLY | O_NONBLOCK | (directory ? O_DIRECTORY : 0));
    struct stat info;
    if (!found.open() || ::fstat(found.get(), &info) != 0 || (!directory && !S_ISREG(info.st_mode))) continue;
    if (::flock(found.get(), LOCK_EX | LOCK_NB) != 0 || !names_file(parent, name, found.get())) continue;
    // This directory is left from an exchange. The exchange must be on the disk before the files are deleted: otherwise, after a
    // power failure, the directory could be in its old place, and empty.
    try {
      if (!std::exchange(flushed, true)) sync_directory(parent, place.path.parent_path());
    } catch (const Error&) {
      return;
    }
    each(name, found.get());
  }
}

}  // namespace

void Place::forget() noexcept {
  for (auto folder = made.rbegin(); folder != made.rend(); ++folder) ::rmdir(folder->c_str());
}

Place place_of(const fs::path& target) {
  Place place;
  place.path = resolved(target);
  place.name = place.path.filename().string();
  try {
    make_directories(place.path.parent_path(), place.made);
    place.parent = open_directory(place.path.parent_path());
  } catch (...) {
    place.forget();
    throw;
  }
  return place;
}

Temporary make_temporary(const Place& place, TemporaryKind kind, const OwnFiles& own) {
  const int parent = place.parent.get();
  const std::string stem = "." + place.name;
  for_dead(place, stem, kind, [&](const std::string& name, int opened) {
    if (kind == TemporaryKind::kFile)
      ::unlinkat(parent, name.c_str(), 0);
    else
      retire(place, name, opened, open_directory_at(parent, place.name).get(), own, true);
  });
  if (kind == TemporaryKind::kDirectory) finish_removals(place, own);
  for (int attempt = 0; attempt < 1000; ++attempt) {
    Temporary made;
    made.name = candidate(stem, attempt);
    made.path = place.path.parent_path() / made.name;
    bool there = false;
    if (kind == TemporaryKind::kFile)
      made.fd = open_at(parent, made.name, O_RDWR | O_CREAT | O_EXCL);
    else if (::mkdirat(parent, made.name.c_str(), 0777) == 0)
      there = true, made.fd = open_directory_at(parent, made.name);
    if (!made.fd.open()) {
      const int error = errno;
      if (there) ::unlinkat(parent, made.name.c_str(), AT_REMOVEDIR);
      errno = error;
      require(errno == EEXIST || errno == ENOENT, Code::kIo, "cannot make '", made.path.string(),
              "': ", last_error());
      continue;
    }
    if (::flock(made.fd.get(), LOCK_EX | LOCK_NB) == 0 && names_file(parent, made.name, made.fd.get()))
      return made;
    // Another writer took it for a dead one's before the lock, or this file system has no locks.
  }
  fail(Code::kIo, "cannot make a temporary next to '", place.path.string(),
       "': every name is taken, or the file system has no locks (flock)");
}

void finish_removals(const Place& place, const OwnFiles& own) {
  for_dead(place, kRemovedStem, TemporaryKind::kDirectory,
           [&](const std::string& name, int opened) { retire(place, name, opened, -1, own, true); });
}

bool remove_own(const Place& place, const std::string& name, int opened,
                const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    struct stat info;
    const bool there = look_at(opened, file, info);
    // What tells whose the others are comes last, and must not go before them.
    if (!there && errno != ENOENT) return false;
    if (there && S_ISREG(info.st_mode) && ::unlinkat(opened, file.c_str(), 0) != 0) return false;
  }
  const int parent = place.parent.get();
  return names_file(parent, name, opened) && ::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0;
}

void retire(const Place& place, const std::string& from, int opened, int to, const OwnFiles& own,
            bool moved) try {
  const fs::path path = place.path.parent_path() / from;
  const std::vector<std::string> files = own(opened, path, true);
  for (const std::string& name : entries_of(opened, path)) {
    struct stat here, there;
    if (to < 0 || !look_at(opened, name, here)) continue;
    if (S_ISREG(here.st_mode) && std::find(files.begin(), files.end(), name) != files.end()) continue;
    if (!look_at(to, name, there))
      moved = ::renameat2(opened, name.c_str(), to, name.c_str(), RENAME_NOREPLACE) == 0 || moved;
    else if (!S_ISDIR(here.st_mode) && here.st_ino == there.st_ino && here.st_dev == there.st_dev)
      ::unlinkat(opened, name.c_str(), 0);  // a second name of the same file, made by the commit
  }
  if (moved && to >= 0) sync_directory(to, place.path);
  remove_own(place, from, opened, files);
} catch (const std::exception&) {
  // What cannot be told apart or removed now is there for the next writer.
}

void remove_whole(const Place& place, int opened, const std::vector<std::string>& files) {
  const int parent = place.parent.get();
  const fs::path folder = place.path.parent_path();
  std::string hidden;
  bool out_of_sight = false;
  for (int attempt = 0; attempt < 1000 && !out_of_sight; ++attempt) {
    hidden = candidate(kRemovedStem, attempt);
    out_of_sight = ::renameat2(parent, place.name.c_str(), parent, hidden.c_str(), RENAME_NOREPLACE) == 0;
    if (!out_of_sight && errno != EEXIST)
      fail(Code::kIo, "cannot remove '", place.path.string(), "': ", last_error());
  }
  if (!out_of_sight)
    fail(Code::kIo, "cannot remove '", place.path.string(), "': every name next to it is taken");
  // From here on words, and memory for them, are for failures alone: what is gone is not told to be refused.
  const auto put_back = [&] {
    ::renameat2(parent, hidden.c_str(), parent, place.name.c_str(), RENAME_NOREPLACE);
  };
  if (!names_file(parent, hidden, opened)) {
    put_back();
    fail(Code::kIo, "cannot remove '", place.path.string(), "': somebody else changes it");
  }
  try {
    sync_directory(parent, folder);
  } catch (const std::exception&) {
    put_back();
    throw;
  }
  if (!remove_own(place, hidden, opened, files))
    fail(Code::kIo, "cannot remove all of '", place.path.string(), "': ", last_error(), "; the rest is in '",
         hidden, "' next to it");
}

}  // namespace cairn
