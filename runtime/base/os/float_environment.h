// The floating-point environment of a thread: rounding, denormals as zero, traps. It belongs to the host, and a
// library of the host's that was linked with -ffast-math changes it unseen; results must not depend on it.
#pragma once
#include <cstdint>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <cfenv>
#include <cstring>
#endif

namespace cairn {

// Reads and writes the registers of a thread. Every field is as the processor has it.
#if defined(__x86_64__)
struct FloatRegisters {
  uint32_t vectors;  // MXCSR
  uint16_t x87;      // rounds for the C library, too, when it reads and writes decimal numbers

  bool operator==(const FloatRegisters&) const = default;
  static constexpr FloatRegisters defaults() { return {0x1f80, 0x037f}; }
  static FloatRegisters read() {
    FloatRegisters now;
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(now.vectors), "=m"(now.x87));
    return now;
  }
  // Costs little more than the comparison where nothing changes.
  void write() const {
    const FloatRegisters now = read();
    if (now.vectors != vectors) __asm__ volatile("ldmxcsr %0" : : "m"(vectors) : "memory");
    // Exceptions that are pending would be raised at once where they are unmasked.
    if (now.x87 != x87) __asm__ volatile("fnclex\n\tfldcw %0" : : "m"(x87) : "memory");
  }
};
#elif defined(__aarch64__)
struct FloatRegisters {
  uint64_t control, status;  // FPCR, FPSR

  bool operator==(const FloatRegisters&) const = default;
  static constexpr FloatRegisters defaults() { return {0, 0}; }
  static FloatRegisters read() {
    FloatRegisters now;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(now.control), "=r"(now.status));
    return now;
  }
  void write() const {
    const FloatRegisters now = read();
    if (now.control != control) __asm__ volatile("msr fpcr, %0" : : "r"(control) : "memory");
    if (now.status != status) __asm__ volatile("msr fpsr, %0" : : "r"(status) : "memory");
  }
};
#else
struct FloatRegisters {
  std::fenv_t all;

  bool operator==(const FloatRegisters& other) const {
    return std::memcmp(&all, &other.all, sizeof all) == 0;
  }
  static FloatRegisters defaults() { return {*FE_DFL_ENV}; }
  static FloatRegisters read() {
    FloatRegisters now;
    std::fegetenv(&now.all);
    return now;
  }
  void write() const { std::fesetenv(&all); }
};
#endif

// At its end this thread's environment is as it was at its beginning: around calls of the host's code.
class KeptFloatEnvironment {
 public:
  KeptFloatEnvironment() = default;
  ~KeptFloatEnvironment() { before_.write(); }
  KeptFloatEnvironment(const KeptFloatEnvironment&) = delete;
  KeptFloatEnvironment& operator=(const KeptFloatEnvironment&) = delete;

 private:
  const FloatRegisters before_ = FloatRegisters::read();
};

// In its scope this thread rounds to nearest, keeps denormals and traps nothing, as every thread of the library's
// own does. Then all is as it was, down to the exceptions that the host has yet to look at.
class DefaultFloatEnvironment : KeptFloatEnvironment {
 public:
  DefaultFloatEnvironment() { FloatRegisters::defaults().write(); }
};

}  // namespace cairn
