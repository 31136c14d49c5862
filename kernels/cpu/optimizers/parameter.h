// How the parameter of an update is stored: float32, bfloat16 that is rounded stochastically, or bfloat16 and the 16
// bits below it. A float32 one may also have a copy of 16 bits, which is written with it.
#pragma once
#include "runtime/base/kernel_closure.h"
#include "runtime/base/optimizers/stochastic.h"
#include "runtime/base/optimizers/update.h"

namespace cairn::kernels::cpu {

// Where a call's parameter lies, from one of its elements on.
struct ParameterPlace {
  float* plain = nullptr;
  bf16* narrow = nullptr;    // one of the two
  uint16_t* low = nullptr;   // the lower halves of a `narrow` that is split
  uint16_t* copy = nullptr;  // a copy of `plain`, rounded to copy_type
  DType copy_type = DType::kBF16;
  RandomKey key = {};
  int64_t first = 0;  // the element's place in the stream of random numbers

  ParameterPlace(const Call& call, const ParameterForm& form) {
    if (!form.random && form.low == 0) {
      plain = output<float>(call, update_op::kParameter);
      copy = output<uint16_t>(call, update_op::kPacked);
      copy_type = form.packed_type;
      return;
    }
    narrow = output<bf16>(call, update_op::kParameter);
    if (form.low > 0) low = output<uint16_t>(call, form.low);
    if (!form.random) return;
    key = update_key(call.key, form.random->stream);
    first = form.random->first;
  }
  ParameterPlace from(int64_t element) const {
    ParameterPlace place = *this;
    if (plain != nullptr) place.plain += element;
    if (narrow != nullptr) place.narrow += element;
    if (low != nullptr) place.low += element;
    if (copy != nullptr) place.copy += element;
    place.first += element;
    return place;
  }
};

}  // namespace cairn::kernels::cpu
