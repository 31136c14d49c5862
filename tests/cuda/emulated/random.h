// What the hardware leaves open, drawn: in which order threads run, when asynchronous copies land, how long
// copies take. seed() in runtime.h chooses the drawing.
#pragma once
#include <cstdint>

namespace cairn::kernels::cuda::emulated {

uint32_t draw();
inline bool one_in(uint32_t n) { return draw() % n == 0; }
// Sleeps for up to that long; now and then for no time at all.
void delay(int max_microseconds);

}  // namespace cairn::kernels::cuda::emulated
