// A tar archive's members: ustar, with pax's and GNU's long names.
#pragma once
#include <functional>
#include <string>

#include "runtime/base/os/file.h"

namespace cairn::data {

struct TarMember {
  std::string name;
  uint64_t offset = 0, size = 0;
};

// Calls take(member) for every regular file. kCorruptFile: foreign or truncated.
void each_member(const InputFile& file, const std::function<void(const TarMember&)>& take);

}  // namespace cairn::data
