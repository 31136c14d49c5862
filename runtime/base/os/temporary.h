// Temporary siblings of a file or directory that is about to be replaced, what dead writers left of them, and
// removing what is ours and nothing else.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/os/system.h"

namespace cairn {

// Which files of an open directory a writer of ours has made, in the order in which they may be deleted (what
// tells the others comes last). All else is somebody's, and stays. `abandoned`: a temporary directory, whose
// writer may have died before it wrote everything. `path` is for messages.
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

// What removals that were cut off left in a folder.
void finish_removals(const Place& place, const OwnFiles& own);

// Deletes the files named, if they are regular files, and the directory, if it is empty then. `opened` is the
// directory itself. What cannot be removed stays: true if nothing did.
bool remove_own(const Place& place, const std::string& name, int opened,
                const std::vector<std::string>& files);

// Takes what is not ours out of `from` and puts it into `to` under the same names; what is there by the same
// name stays where it is. Then deletes `from` as above, once what was moved is on the disk (`moved`: somebody
// before us may have moved something). Failures leave things for the next writer.
void retire(const Place& place, const std::string& from, int opened, int to, const OwnFiles& own, bool moved);

// Takes a directory of ours, all of whose files are `files`, out of sight in one step, then deletes it. kIo:
// it is as before, or out of sight and deleted by the next writer in this folder.
void remove_whole(const Place& place, int opened, const std::vector<std::string>& files);

}  // namespace cairn
