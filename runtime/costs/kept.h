// Files in which measurements are kept for later processes.
#pragma once
#include <string>
#include <string_view>

#include "runtime/base/os/file.h"

namespace cairn::costs {

// The directory that was named, else $XDG_CACHE_HOME/cairn or $HOME/.cache/cairn; "" where neither is
// set, or $HOME is missing.
std::string kept_directory(const std::string& named);
// "kind-HASH.json": the name of the file for what the text describes.
std::string kept_name(std::string_view kind, std::string_view of);
// "", or why it could not be kept.
std::string keep(const std::string& path, const std::string& text);

// Held while one process measures. Without it all of them do, which costs time and nothing else.
class MeasuringTurn {
 public:
  explicit MeasuringTurn(const std::string& directory);

 private:
  Descriptor lock_;
};

}  // namespace cairn::costs
