// Which files of a directory a save wrote. Private to runtime/io.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/os/temporary.h"

namespace cairn::io {

// manifest.cairn, tensors.bin and the files that the manifest lists. The target of a save must be empty or a
// checkpoint, even a damaged one; kInvalidArgument: it is neither, and is not to be replaced. 1.0 listed no
// files: of its checkpoints, those that the new save brings (`brought`) and the command's tokenizer count.
OwnFiles own_files(std::vector<std::string> brought);

}  // namespace cairn::io
