// Programs of Google Benchmark, with the usage and the errors of all programs that measure.
#pragma once
#include <benchmark/benchmark.h>

#include <string>

#include "bench/arguments.h"

namespace cairn::bench {

// A command line whose `--help` ends with the library's own options.
inline Arguments benchmark_arguments(int argc, char** argv, std::string usage) {
  return {argc, argv, std::move(usage), benchmark::PrintDefaultHelp};
}

// Behind the program's own options: those of the library. Of what is left then, at most `most` words, none is an option.
inline const std::vector<std::string>& initialize_benchmarks(Arguments& arguments, size_t most = 0) {
  arguments.pass_to([](int* count, char** words) { benchmark::Initialize(count, words); });
  return arguments.words(most);
}

}  // namespace cairn::bench
