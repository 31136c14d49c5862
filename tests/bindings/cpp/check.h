// Checks of the programs in this folder, which are compiled without a test framework, in every way that the header allows.
#pragma once
#include <cstdio>

#include "cairn/cairn.hpp"

namespace check {
inline int failed = 0;
}

#define CHECK(what)                                                           \
  do {                                                                        \
    if (!(what)) {                                                            \
      ++check::failed;                                                        \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
    }                                                                         \
  } while (false)
