// The optimizers, as data. Rows are in optimizers.def; kernels know them by name through the attribute
// `optimizer` of the op `update`.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/base/attrs.h"
#include "runtime/base/optimizers/update_operands.h"
#include "runtime/base/tensor.h"

namespace cairn::ops {

enum UpdateTrait : uint32_t {
  UPDATE_ELEMENTWISE = 1u << 0,  // an element of p and states depends on that element alone
  UPDATE_MATRICES = 1u << 1,     // it takes matrices of hidden layers alone: see graph::assign_groups()
};

struct Hyper {
  std::string_view name;
  char range;  // of ranges.h
  double value;
  bool planned;  // an attribute of `update`, which a plan is made with: no stepper changes it
  std::string_view description;
};

// What a state is, as a tensor, for a parameter; nullopt: such a parameter has none.
using StateForm = std::optional<TensorDesc> (*)(const TensorDesc& parameter);

struct OptimizerState {
  std::string_view name;
  StateForm form;
  std::string_view when = {};  // the hyper-parameter without which it is not there; empty: always there
};

// What the hyper-parameters of one update follow from.
struct UpdateStep {
  double rate = 0;      // the schedule's, times rate_scale
  uint64_t t = 1;       // updates of this optimizer, this one included
  double factor = 1.0;  // of the gradient
};
// values: as OptimizerRow::hypers. Fills update_op::kHyperSlots numbers.
using HyperRule = void (*)(std::span<const double> values, const UpdateStep& step, double* slots);

struct OptimizerRow {
  std::string_view name;
  std::vector<OptimizerState> states;
  std::vector<Hyper> hypers;  // the first is rate_scale
  HyperRule rule;
  uint32_t traits;
  std::string_view description;
  // The optimizer of those parameters that this one does not take; empty: it takes all.
  std::string_view otherwise = {};

  bool is(UpdateTrait t) const { return traits & t; }
  int hyper(std::string_view hyper_name) const;  // index into hypers; -1: it has none of that name
  // The state as a tensor, under hyper-parameters (as `hypers`); nullopt: the parameter has none.
  std::optional<TensorDesc> tensor_of(const OptimizerState& state, std::span<const double> values,
                                      const TensorDesc& parameter) const;
  // The attributes of an op `update` under hyper-parameters (as `hypers`).
  Attrs attrs(std::span<const double> values) const;
};

std::span<const OptimizerRow> optimizers();
// kInvalidArgument lists those known.
const OptimizerRow& optimizer(std::string_view name);
// kInvalidArgument names optimizer, hyper-parameter and range.
void check_hyper(const OptimizerRow& row, std::string_view hyper, double value);
// Whether the hyper-parameters of one group (as row.hypers) go together; kInvalidArgument names the two that
// do not.
void check_hypers_together(const OptimizerRow& row, std::span<const double> values);

}  // namespace cairn::ops
