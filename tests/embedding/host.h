// What the host programs of these tests share.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include "tests/embedding/trainer.h"

struct Result {
  int status = 0;
  char digest[33] = {};
  char message[1024] = {};
};

inline int print(const Result& result) {
  std::printf("%d %s %s\n", result.status, result.digest, result.message);
  return 0;
}

// Ends the host with exit code 1, having said why.
template <class... Values>
void require(bool condition, const char* format, const Values&... values) {
  if (condition) return;
  if constexpr (sizeof...(values) == 0)
    std::fputs(format, stderr);
  else
    std::fprintf(stderr, format, values...);
  std::fputs("\n", stderr);
  std::exit(1);
}

// The argument number `index`, or `otherwise`.
inline long number(int count, char** arguments, int index, long otherwise) {
  return index < count ? std::atol(arguments[index]) : otherwise;
}

struct Mode {
  std::string_view name;
  int (*run)(int count, char** arguments);
};

inline int dispatch(int count, char** arguments, std::initializer_list<Mode> modes) {
  for (const Mode& mode : modes)
    if (count > 1 && mode.name == arguments[1]) return mode.run(count - 2, arguments + 2);
  std::fputs("modes:", stderr);
  for (const Mode& mode : modes)
    std::fprintf(stderr, " %.*s", static_cast<int>(mode.name.size()), mode.name.data());
  std::fputs("\n", stderr);
  return 2;
}
