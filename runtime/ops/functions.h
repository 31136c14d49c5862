// The elementwise functions of one operand, from elementwise.def: ops apply them, and linear as its
// activation.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "runtime/ops/ops.h"

namespace cairn::ops {

struct Function {
  std::string_view name;    // the word of linear's activation
  OpCode op, gradient;      // that apply it, and its derivative
  std::string_view choice;  // what their attribute `approximate` says for it; "": they have no such attribute

  // Does the gradient read the argument, and not the result?
  bool reads_argument() const { return row(op).saves == kReads_x; }
};

std::span<const Function> functions();
const Function* find_function(std::string_view name);  // nullptr if there is none
// The function whose derivative a call of `gradient` with these attributes applies; nullptr for other ops.
const Function* differentiated(OpCode gradient, const Attrs& attrs);
// "gelu_tanh, gelu_erf, relu, ..."
const std::string& activation_words();

}  // namespace cairn::ops
