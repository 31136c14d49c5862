// Between two looks at what another thread will change: leaves the core's resources to the other thread for some tens of cycles.
#pragma once

namespace cairn {

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");  // its `yield` does nothing on most processors
#endif
}

}  // namespace cairn
