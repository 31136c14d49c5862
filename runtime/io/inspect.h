// What a file is, in words.
#pragma once
#include <filesystem>
#include <string>

namespace cairn::io {

// What a file is, for `cairn inspect`: a JSON object (kind, tensors, plan, state ...). kCorruptFile if it is
// none of ours.
std::string inspect(const std::filesystem::path& path);

}  // namespace cairn::io
