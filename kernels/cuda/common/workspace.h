// A kernel's workspace in parts, laid out when the kernel is made.
#pragma once
#include "runtime/base/checked.h"
#include "runtime/base/kernel.h"

namespace cairn::kernels::cuda {

class Workspace {
 public:
  // Where the part begins.
  int64_t add(int64_t bytes) {
    const int64_t at = bytes_;
    bytes_ = align_up(checked_add(bytes_, bytes), 256);
    return at;
  }
  int64_t bytes() const { return bytes_; }

  template <class T = void>
  static T* at(const Call& call, int64_t offset) {
    return reinterpret_cast<T*>(static_cast<char*>(call.workspace) + offset);
  }

 private:
  int64_t bytes_ = 0;
};

}  // namespace cairn::kernels::cuda
