// What Highway compiles for: AVX-512, AVX2, and a portable fallback; fewer targets keep the build short.
// Included before any Highway header by every file that uses it.
#pragma once
#include <hwy/detect_targets.h>
#ifndef CAIRN_UNUSED_TARGETS  // builds for sanitizers leave out what this processor would not run
#define CAIRN_UNUSED_TARGETS 0
#endif
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | CAIRN_UNUSED_TARGETS)
