// A libFuzzer program for the target named by CAIRN_FUZZ_TARGET. Begins with the samples when its corpus is
// empty.
#include <cstdint>
#include <cstring>

#include "tests/fuzz/targets.h"

namespace {

const cairn::fuzz::Target& target() {
  for (const auto& row : cairn::fuzz::targets())
    if (std::strcmp(row.name, CAIRN_FUZZ_TARGET) == 0) return row;
  __builtin_trap();
}

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  target().run({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  static const std::vector<std::string> seeds = target().seeds();
  const std::string& sample = seeds[seed % seeds.size()];
  if ((size < 8 || seed % 1000 == 0) && sample.size() <= max_size) {
    std::memcpy(data, sample.data(), sample.size());
    size = sample.size();
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
