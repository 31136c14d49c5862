// What Highway compiles for: on x86-64 AVX-512, AVX2 and a portable fallback; on AArch64 SVE, NEON and that fallback; fewer
// targets keep the build short. Included before any Highway header by every file that uses it.
#pragma once
// NEON is compiled in addition to the fallback, not instead of it: `portable` is a set of its own there, too.
// Highway does so with g++; clang compiles what all processors have, which is NEON, for every set.
#if defined(__aarch64__) && !defined(__clang__)
#define HWY_BASELINE_TARGETS HWY_BASELINE_SCALAR
#endif
#include <hwy/detect_targets.h>
#ifndef CAIRN_UNUSED_TARGETS  // builds for sanitizers leave out what this processor would not run
#define CAIRN_UNUSED_TARGETS 0
#endif
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE2 | HWY_SVE2_128 | HWY_SVE_256 | CAIRN_UNUSED_TARGETS)
