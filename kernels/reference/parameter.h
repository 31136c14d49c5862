// The parameter of an update, by element: of type T, bfloat16 that is rounded stochastically, or split.
#pragma once
#include "kernels/reference/common.h"
#include "runtime/base/optimizers/stochastic.h"
#include "runtime/base/optimizers/update.h"
#include "runtime/formats/split.h"

namespace cairn::kernels::reference {

template <class T>
class Parameter {
 public:
  Parameter(const Call& call, const ParameterForm& form)
      : random_(form.random), data_(call.out[update_op::kParameter].data) {
    if (random_) key_ = update_key(call.key, random_->stream);
    if (form.low > 0) low_ = call.out[form.low].as<uint16_t>();
  }
  double get(int64_t i) const {
    if (low_ != nullptr) return static_cast<double>(join_halves(narrow()[i], low_[i]));
    return random_ ? load(narrow()[i]) : load(plain()[i]);
  }
  void set(int64_t i, double value) const {
    if (low_ != nullptr) {
      narrow()[i] = high_half(static_cast<float>(value));
      low_[i] = low_half(static_cast<float>(value));
    } else if (random_) {
      narrow()[i] = rounded(i, static_cast<float>(value));
    } else {
      plain()[i] = store<T>(value);
    }
  }

 private:
  bf16 rounded(int64_t i, float value) const {
    const int64_t place = random_->first + i;
    const PhiloxBlock bits = random_block(key_, static_cast<uint64_t>(place / kHalvesPerBlock));
    return round_stochastic(value, random_half(bits, static_cast<int>(place % kHalvesPerBlock)));
  }
  T* plain() const { return static_cast<T*>(data_); }
  bf16* narrow() const { return static_cast<bf16*>(data_); }

  std::optional<RandomPlace> random_;
  void* data_;
  uint16_t* low_ = nullptr;
  RandomKey key_ = {};
};

}  // namespace cairn::kernels::reference
