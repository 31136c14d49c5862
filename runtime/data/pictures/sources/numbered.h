// What sources of files share.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/os/file.h"
#include "runtime/data/pictures/source.h"

namespace cairn::data {

inline constexpr uint64_t kMostCodedBytes = uint64_t{1} << 28;  // of a picture's file
inline constexpr uint64_t kMostClasses = uint64_t{1} << 20;

// Whether a file's name ends as pictures' do, in either case.
bool named_as_picture(std::string_view name);
// A part of a file, or all of it. kCorruptFile: larger than kMostCodedBytes.
std::vector<std::byte> coded_of(const InputFile& file, uint64_t offset, uint64_t bytes,
                                const std::string& name);
// The lines of a small file, without those that are empty; none where there is no file.
std::vector<std::string> lines_of(const std::filesystem::path& path);
// "0", "1" ...
std::vector<std::string> numbered_classes(uint64_t count);
// "kind: 'path'", refused where there is no part to evaluate with.
[[noreturn]] void no_test_part(std::string_view what, const std::filesystem::path& path);

}  // namespace cairn::data
