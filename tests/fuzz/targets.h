// One function per loader: any bytes end in success or in one of the declared errors. Used by the libFuzzer
// programs (CAIRN_FUZZ) and, with mutated samples, by the ordinary tests.
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace cairn::fuzz {

struct Target {
  const char* name;
  void (*run)(std::span<const std::byte> input);  // throws std::logic_error on an undeclared error
  std::vector<std::string> (*seeds)();
  int rounds = 3000;  // of mutated samples in the ordinary tests
};
// graph, plan, manifest: the input is the file without its digest, which is put under it.
std::span<const Target> targets();

}  // namespace cairn::fuzz
