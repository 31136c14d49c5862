// Temporary siblings of a file or directory that is about to be replaced, what dead writers left of them, and
// removing what is ours and nothing else.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/os/system.h"

namespace cairn {

// Lists the files of an open directory that cairn wrote, in the order in which they may be deleted: the file that names the
// others comes last. All other files belong to somebody else and are kept. abandoned: a temporary directory, whose
// writer may have died before it wrote everything. path: for messages.
using OwnFiles =
    std::function<std::vector<std::string>(int directory, const std::filesystem::path& path, bool abandoned)>;

// Where something is to be put: a folder, open, and a name in it.
struct Place {
  std::filesystem::path path;  // both
  Descriptor parent;
  std::string name;
  std::vector<std::filesystem::path> made;  // folders above that were missing

  void forget() noexcept;  // removes `made`, if nothing was put there
};

// Links are resolved, so that the thing itself is replaced and not a link to it. Makes missing folders above.
// kIo, kInvalidArgument (the root folder).
Place place_of(const std::filesystem::path& target);

// A new, empty ".NAME.tmp-PID[.N]" in the folder, held by an exclusive flock for as long as it is open. The
// lock, not the process id, says that the writer lives: ids repeat after a restart or in another container.
struct Temporary {
  std::string name;
  std::filesystem::path path;
  Descriptor fd;
};
enum class TemporaryKind { kFile, kDirectory };
// Removes what dead writers of the same kind and name left, first. kIo names path and cause.
Temporary make_temporary(const Place& place, TemporaryKind kind, const OwnFiles& own = {});

// Finishes removals in a folder that were interrupted.
void finish_removals(const Place& place, const OwnFiles& own);

// Deletes the files named, if they are regular files, and the directory, if it is empty then. `opened` is the
// directory itself. Returns true if everything was removed.
bool remove_own(const Place& place, const std::string& name, int opened,
                const std::vector<std::string>& files);

// Moves files that cairn did not write from `from` to `to` under the same names; a file whose name exists in `to` is not
// moved. Then deletes `from` as above, once what was moved is on the disk (moved: an earlier writer may have moved
// something). What a failure leaves is done by the next writer.
void retire(const Place& place, const std::string& from, int opened, int to, const OwnFiles& own, bool moved);

// Takes a directory of ours, all of whose files are `files`, out of sight in one step, then deletes it. kIo:
// it is as before, or out of sight and deleted by the next writer in this folder.
void remove_whole(const Place& place, int opened, const std::vector<std::string>& files);

}  // namespace cairn
