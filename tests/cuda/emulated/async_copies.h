// The asynchronous copies of one thread, of 16 bytes each: they land at any time between where they are asked for and where they
// are waited for.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/cuda/emulated/random.h"

namespace cairn::kernels::cuda::emulated {

class AsyncCopies {
 public:
  void add(void* to, const void* from) {  // from nullptr: zeros
    pending_.push_back({to, from, group_});
    if (one_in(2)) land_one(pending_.size() - 1);
    some();
  }
  void commit() {
    ++group_;
    some();
  }
  // Until at most `left` groups are under way.
  void wait(uint64_t left) {
    for (size_t i = pending_.size(); i-- > 0;)
      if (pending_[i].group + left < group_) land_one(i);
    some();
  }
  void some() {
    for (size_t i = pending_.size(); i-- > 0;)
      if (one_in(8)) land_one(i);
  }
  void all() {
    while (!pending_.empty()) land_one(pending_.size() - 1);
    group_ = 0;
  }
  void forget() {
    pending_.clear();
    group_ = 0;
  }

 private:
  struct Copy {
    void* to;
    const void* from;
    uint64_t group;
  };
  void land_one(size_t i) {
    const Copy copy = pending_[i];
    pending_[i] = pending_.back();
    pending_.pop_back();
    if (copy.from != nullptr)
      std::memcpy(copy.to, copy.from, 16);
    else
      std::memset(copy.to, 0, 16);
  }

  std::vector<Copy> pending_;
  uint64_t group_ = 0;  // that the next copy belongs to
};

}  // namespace cairn::kernels::cuda::emulated
