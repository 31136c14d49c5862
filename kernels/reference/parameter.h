// The parameter of an update, by element: of type T, or bfloat16 that is rounded stochastically.
#pragma once
#include <optional>

#include "kernels/reference/common.h"
#include "runtime/base/optimizers/stochastic.h"
#include "runtime/base/optimizers/update.h"

namespace cairn::kernels::reference {

template <class T>
class Parameter {
 public:
  // random: nothing where it is of type T.
  Parameter(const Call& call, const std::optional<RandomPlace>& random)
      : random_(random), data_(call.out[update_op::kParameter].data) {
    if (random_) key_ = update_key(call.key, random_->stream);
  }
  double get(int64_t i) const { return random_ ? load(rounded()[i]) : load(plain()[i]); }
  void set(int64_t i, double value) const {
    if (!random_) {
      plain()[i] = store<T>(value);
      return;
    }
    const int64_t place = random_->first + i;
    const PhiloxBlock bits = random_block(key_, static_cast<uint64_t>(place / kHalvesPerBlock));
    rounded()[i] = round_stochastic(static_cast<float>(value),
                                    random_half(bits, static_cast<int>(place % kHalvesPerBlock)));
  }

 private:
  T* plain() const { return static_cast<T*>(data_); }
  bf16* rounded() const { return static_cast<bf16*>(data_); }

  std::optional<RandomPlace> random_;
  void* data_;
  RandomKey key_ = {};
};

}  // namespace cairn::kernels::reference
