// What lies in a directory. std::filesystem's iterators end the process where the system gives no memory,
// even those that return an error code.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace cairn {

// Names of the entries, "." and ".." left out, in no order. kIo, kOutOfMemory name the path and the cause.
std::vector<std::string> names_in(const std::filesystem::path& directory);

}  // namespace cairn
