// Removing a checkpoint: what its manifest lists, and nothing that is reached through a link.
#include <algorithm>
#include <cerrno>

#include "runtime/base/os/file.h"
#include "runtime/io/checkpoint.h"
#include "runtime/io/envelope.h"
#include "runtime/io/manifest.h"
#include "runtime/io/own.h"

namespace cairn::io {
namespace fs = std::filesystem;

namespace {

// The folder above is the caller's word and may be a link; the checkpoint itself may not.
Place place_to_remove(const fs::path& directory) {
  Place place;
  place.path = directory;
  while (place.path.has_relative_path() && place.path.filename().empty())
    place.path = place.path.parent_path();
  place.name = place.path.filename().string();
  require(!place.name.empty() && place.name != "." && place.name != "..", Code::kInvalidArgument, "'",
          directory.string(), "' does not name a directory in another; give it as PARENT/NAME");
  std::error_code failed;
  const fs::path parent = place.path.parent_path();
  require(fs::is_directory(parent.empty() ? "." : parent, failed), Code::kNotFound,
          "there is no checkpoint '", directory.string(), "'");
  place.parent = open_directory(parent);
  return place;
}

}  // namespace

bool remove_checkpoint(const fs::path& directory) {
  const Place place = place_to_remove(directory);
  const std::string where = "'" + directory.string() + "'";
  struct stat info;
  if (!look_at(place.parent.get(), place.name, info))
    fail(errno == ENOENT ? Code::kNotFound : Code::kIo, "cannot remove the checkpoint ", where, ": ",
         last_error());
  require(!S_ISLNK(info.st_mode), Code::kInvalidArgument, where,
          " is a link: nothing is removed through it; remove what it names, or the link");
  require(S_ISDIR(info.st_mode), Code::kInvalidArgument, where, " is not a directory");
  const Descriptor opened = open_directory_at(place.parent.get(), place.name);
  require(opened.open() && names_file(place.parent.get(), place.name, opened.get()), Code::kIo,
          "cannot open ", where, ": ", last_error());
  const OwnFiles own = own_files({});
  finish_removals(place, own);
  // Decoded strictly: only a complete manifest says which files may be deleted.
  try {
    const InputFile manifest(opened.get(), kManifestName, directory / kManifestName);
    decode_manifest(FileContent(manifest, kMaxFlatBufferBytes).bytes());
  } catch (const Error& error) {
    if (error.code() == Code::kNotFound)
      fail(Code::kNotFound, where, " is no checkpoint: it has no ", kManifestName, "; nothing was removed");
    if (error.code() != Code::kCorruptFile) throw;
    fail(Code::kCorruptFile, where, ": ", error.what(), "; nothing was removed: remove it by hand");
  }
  const std::vector<std::string> files = own(opened.get(), directory, false);
  const std::vector<std::string> there = entries_of(opened.get(), directory);
  const bool whole = std::all_of(there.begin(), there.end(), [&](const std::string& name) {
    struct stat file;
    return std::find(files.begin(), files.end(), name) != files.end() && look_at(opened.get(), name, file) &&
           S_ISREG(file.st_mode);
  });
  if (whole) {
    remove_whole(place, opened.get(), files);
    return true;
  }
  remove_own(place, place.name, opened.get(), files);
  for (const std::string& file : files) {
    struct stat still;
    const bool exists = look_at(opened.get(), file, still);
    if (exists ? S_ISREG(still.st_mode) : errno != ENOENT)
      fail(Code::kIo, "cannot remove '", (directory / file).string(), "'");
  }
  return false;
}

}  // namespace cairn::io
