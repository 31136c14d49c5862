// Where the operands of the op `update` stand, for all who make one and all who compute it; its row in ops.def
// has them in this order.
#pragma once

namespace cairn::update_op {

inline constexpr int kHyperSlots = 8;  // float64 values that an update reads
inline constexpr int kMaxStates = 4;   // states of one parameter that an update takes
// Slot of the hyper-parameters with the factor of the gradient, which undoes the loss scale and clips.
inline constexpr int kFactorSlot = 7;

inline constexpr int kGrad = 0, kHyper = 1, kTotal = 2, kInputs = 3;
inline constexpr int kParameter = 0, kFirstState = 1, kPacked = kFirstState + kMaxStates,
                     kGradScale = kPacked + 1, kOutputs = kGradScale + 1;

}  // namespace cairn::update_op
