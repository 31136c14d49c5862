// Shares a memory copy between two threads. Where copies and kernels run on the same processors, a copy on
// one thread holds up one of the kernel's threads, and the others wait for it at the next barrier: half the
// copy on each of two costs the kernels half the time.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "runtime/base/os/thread.h"

namespace cairn::device::host {

// Used by one thread at a time.
class Splitter {
 public:
  explicit Splitter(bool helper);  // false: everything on the calling thread
  ~Splitter();
  // Returns when all bytes are there. The ranges do not overlap.
  void move(char* to, const char* from, int64_t bytes);

 private:
  void loop();

  std::mutex mutex_;  // guards the next five
  std::condition_variable changed_;
  char* to_ = nullptr;  // the helper's share; nullptr: none or done
  const char* from_ = nullptr;
  int64_t bytes_ = 0;
  bool ending_ = false;
  Thread helper_;
};

}  // namespace cairn::device::host
