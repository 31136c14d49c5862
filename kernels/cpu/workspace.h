// Parts of a kernel's workspace, each at a multiple of kAlignment.
#pragma once
#include <cstdint>

#include "runtime/base/checked.h"

namespace cairn::kernels::cpu {

class Workspace {
 public:
  int64_t add(int64_t bytes) {  // returns the offset
    const int64_t at = bytes_;
    bytes_ = checked_add(bytes_, align_up(bytes, kAlignment));
    return at;
  }
  int64_t bytes() const { return bytes_; }
  template <class T>
  static T* at(void* workspace, int64_t offset) {
    return reinterpret_cast<T*>(static_cast<char*>(workspace) + offset);
  }

 private:
  int64_t bytes_ = 0;
};

}  // namespace cairn::kernels::cpu
