// Where the parameter of an update lies: float32, or bfloat16 that is rounded stochastically.
#pragma once
#include <optional>

#include "runtime/base/kernel_closure.h"
#include "runtime/base/optimizers/stochastic.h"
#include "runtime/base/optimizers/update.h"

namespace cairn::kernels::cpu {

// Where a call's parameter lies, from one of its elements on.
struct ParameterPlace {
  float* plain = nullptr;
  bf16* rounded = nullptr;  // one of the two
  RandomKey key = {};
  int64_t first = 0;  // the element's place in the stream of random numbers

  // random: nothing where the parameter is plain.
  ParameterPlace(const Call& call, const std::optional<RandomPlace>& random) {
    if (!random) {
      plain = output<float>(call, update_op::kParameter);
      return;
    }
    rounded = output<bf16>(call, update_op::kParameter);
    key = update_key(call.key, random->stream);
    first = random->first;
  }
  ParameterPlace from(int64_t element) const {
    ParameterPlace place = *this;
    if (plain != nullptr) place.plain += element;
    if (rounded != nullptr) place.rounded += element;
    place.first += element;
    return place;
  }
};

}  // namespace cairn::kernels::cpu
