// The rows of optimizers.def, their hyper rules, and what is refused with which words.
#include "runtime/ops/optimizers.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <string>

#include "runtime/base/optimizers/update.h"
#include "runtime/base/text/cat.h"
#include "runtime/ops/ops.h"
#include "runtime/ops/ranges.h"

namespace cairn::ops {
namespace {

TEST(Optimizers, RowsAreParsed) {
  std::set<std::string_view> names;
  for (const OptimizerRow& row : optimizers()) {
    SCOPED_TRACE(row.name);
    EXPECT_TRUE(names.insert(row.name).second) << "twice";
    EXPECT_EQ(&optimizer(row.name), &row);
    EXPECT_LE(row.states.size(), static_cast<size_t>(update_op::kMaxStates));
    EXPECT_NE(row.rule, nullptr);
    EXPECT_FALSE(row.description.empty());
    ASSERT_FALSE(row.hypers.empty());
    EXPECT_EQ(row.hypers[0].name, "rate_scale");
    EXPECT_GE(row.hyper("weight_decay"), 0) << "a parameter may say that it takes none";
    std::set<std::string_view> hypers, states;
    for (const Hyper& hyper : row.hypers) {
      EXPECT_TRUE(hypers.insert(hyper.name).second) << hyper.name << " twice";
      EXPECT_NO_THROW(check_hyper(row, hyper.name, hyper.value)) << "the default of " << hyper.name;
    }
    for (const OptimizerState& state : row.states) {
      EXPECT_TRUE(states.insert(state.name).second) << state.name << " twice";
      EXPECT_TRUE(state.when.empty() || row.hyper(state.when) >= 0) << state.name << ": no " << state.when;
    }
  }
  EXPECT_EQ(names,
            (std::set<std::string_view>{"adamw", "sgd", "lion", "adam", "adamw8", "adafactor", "muon"}));
}

TEST(Ranges, HoldWhatTheirWordsSay) {
  std::set<char> letters;
  for (const Range& range : ranges()) {
    EXPECT_TRUE(letters.insert(range.letter).second) << range.letter;
    EXPECT_EQ(&cairn::ops::range(range.letter), &range);
    EXPECT_EQ(range.holds(range.least), !range.is(RANGE_ABOVE)) << range.letter;
    EXPECT_EQ(range.holds(range.most), !range.is(RANGE_BELOW)) << range.letter;
    if (range.is(RANGE_INTEGER)) EXPECT_FALSE(range.holds(range.least + 0.5)) << range.letter;
    EXPECT_FALSE(range.holds(std::nan(""))) << range.letter;
    EXPECT_FALSE(range.holds(std::nextafter(range.most, 2 * range.most + 1))) << range.letter;
  }
  EXPECT_TRUE(cairn::ops::range('z').holds(0)) << "stands for a default";
  EXPECT_THROW(cairn::ops::range('?'), Error);
}

TEST(Optimizers, StatesAndHyperParameters) {
  const OptimizerRow& adamw = optimizer("adamw");
  ASSERT_EQ(adamw.states.size(), 2u);
  EXPECT_EQ(adamw.states[0].name, "m");
  EXPECT_EQ(adamw.states[1].name, "v");
  EXPECT_EQ(adamw.states[0].when, "");
  ASSERT_EQ(adamw.hypers.size(), 5u);
  EXPECT_EQ(adamw.hypers[static_cast<size_t>(adamw.hyper("beta2"))].value, 0.95);
  EXPECT_EQ(adamw.hypers[static_cast<size_t>(adamw.hyper("eps"))].value, 1e-8);
  EXPECT_EQ(adamw.hyper("momentum"), -1);
  const OptimizerRow& sgd = optimizer("sgd");
  ASSERT_EQ(sgd.states.size(), 1u);
  EXPECT_EQ(sgd.states[0].name, "momentum");
  EXPECT_EQ(sgd.states[0].when, "momentum");
  EXPECT_EQ(optimizer("lion").states.size(), 1u);
  for (const OptimizerRow& row : optimizers())
    EXPECT_EQ(row.is(UPDATE_ELEMENTWISE), row.name != "adafactor" && row.name != "muon") << row.name;
}

// "name shape" of the states that a parameter of this shape has.
std::string states_of(std::string_view name, const Shape& shape) {
  const OptimizerRow& row = optimizer(name);
  std::vector<double> defaults;
  for (const Hyper& hyper : row.hypers) defaults.push_back(hyper.value);
  std::string text;
  for (const OptimizerState& state : row.states)
    if (const auto tensor = row.tensor_of(state, defaults, {DType::kF32, shape, 0}))
      text += cat(text.empty() ? "" : " ", state.name, to_string(tensor->shape));
  return text;
}

TEST(Optimizers, StatesMayHaveFormsOfTheirOwn) {
  EXPECT_EQ(states_of("adafactor", {5}), "v[5]");
  EXPECT_EQ(states_of("adafactor", {}), "v[]");
  EXPECT_EQ(states_of("adafactor", {5, 7}), "row[5] column[7]");
  EXPECT_EQ(states_of("adafactor", {2, 3, 5, 7}), "row[2, 3, 5] column[2, 3, 7]");
  EXPECT_EQ(states_of("muon", {5, 7}), "momentum[5, 7]");
  EXPECT_EQ(states_of("adamw", {5, 7}), "m[5, 7] v[5, 7]");
}

TEST(Optimizers, WhatOneDoesNotTakeIsAnothers) {
  for (const OptimizerRow& row : optimizers()) {
    EXPECT_EQ(row.is(UPDATE_MATRICES), !row.otherwise.empty()) << row.name;
    if (!row.otherwise.empty())
      EXPECT_TRUE(optimizer(row.otherwise).otherwise.empty()) << row.name << ": a rest of a rest";
  }
  EXPECT_EQ(optimizer("muon").otherwise, "adamw");
}

TEST(Optimizers, PlannedHyperParametersAreAttributes) {
  const OptimizerRow& muon = optimizer("muon");
  std::vector<double> values;
  for (const Hyper& hyper : muon.hypers) values.push_back(hyper.value);
  values[static_cast<size_t>(muon.hyper("ns_steps"))] = 7;
  EXPECT_EQ(muon.attrs(values), (Attrs{{"optimizer", std::string("muon")}, {"ns_steps", int64_t{7}}}));
  EXPECT_TRUE(muon.hypers[static_cast<size_t>(muon.hyper("ns_steps"))].planned);
  EXPECT_FALSE(muon.hypers[static_cast<size_t>(muon.hyper("momentum"))].planned);
  EXPECT_EQ(optimizer("lion").attrs({}), (Attrs{{"optimizer", std::string("lion")}}));
}

TEST(Optimizers, StatesOf8BitsAreOfLargeParameters) {
  const OptimizerRow& row = optimizer("adamw8");
  ASSERT_EQ(row.states.size(), 2u);
  const std::vector<double> values(row.hypers.size(), 0.1);
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    const TensorDesc small{dtype, {4095}, 0}, large{dtype, {16, 256}, 0};
    for (const OptimizerState& state : row.states) EXPECT_EQ(row.tensor_of(state, values, small), small);
    EXPECT_EQ(row.tensor_of(row.states[0], values, large), (TensorDesc{DType::kDynamic8, {16, 256}, 0}));
    EXPECT_EQ(row.tensor_of(row.states[1], values, large), (TensorDesc{DType::kUDynamic8, {16, 256}, 0}));
  }
  // 27 % of float32's at most: 260 bytes for 1024.
  const TensorDesc m = *row.tensor_of(row.states[0], values, {DType::kF32, {1 << 20}, 0});
  EXPECT_EQ(m.bytes(), (1 << 20) / 256 * 260);
}

std::array<double, update_op::kHyperSlots> slots(std::string_view name, const std::vector<double>& values,
                                                 uint64_t t) {
  std::array<double, update_op::kHyperSlots> to{};
  optimizer(name).rule(values, {.rate = 0.5, .t = t}, to.data());
  return to;
}

TEST(Optimizers, HyperRulesFillTheSlots) {
  const auto adamw = slots("adamw", {1, 0.9, 0.99, 1e-6, 0.2}, 3);
  EXPECT_EQ(adamw[0], 0.5);
  EXPECT_EQ(adamw[1], 0.9);
  EXPECT_EQ(adamw[2], 0.99);
  EXPECT_EQ(adamw[3], 1e-6);
  EXPECT_EQ(adamw[4], 0.2);
  EXPECT_NEAR(adamw[5], 1 - 0.9 * 0.9 * 0.9, 1e-15);
  EXPECT_NEAR(adamw[6], 1 - 0.99 * 0.99 * 0.99, 1e-15);
  const auto first = slots("sgd", {1, 0.9, 0.3, 1, 0.2}, 1), later = slots("sgd", {1, 0.9, 0.3, 1, 0.2}, 2);
  EXPECT_EQ(first[1], 0.9);
  EXPECT_EQ(first[2], 1.0) << "the first momentum is the gradient";
  EXPECT_EQ(later[2], 0.7);
  EXPECT_EQ(later[3], 1.0);
  EXPECT_EQ(later[4], 0.2);
  const auto lion = slots("lion", {1, 0.9, 0.99, 0.2}, 7);
  EXPECT_EQ(lion[0], 0.5);
  EXPECT_EQ(lion[1], 0.9);
  EXPECT_EQ(lion[2], 0.99);
  EXPECT_EQ(lion[4], 0.2);
  // rate 0.5; rho is at most 1 / sqrt(t), and decay goes by the whole rate.
  const auto soon = slots("adafactor", {1, -0.8, 1e-7, 1e-3, 2, 0.1}, 1),
             late = slots("adafactor", {1, -0.8, 1e-7, 1e-3, 2, 0.1}, 100);
  EXPECT_EQ(soon[0], 0.5);
  EXPECT_EQ(soon[1], 1.0) << "the first v is the gradient's";
  EXPECT_EQ(late[0], 0.1);
  EXPECT_EQ(late[1], std::pow(100.0, -0.8));
  EXPECT_EQ(late[2], 1e-7);
  EXPECT_EQ(late[3], 1e-3);
  EXPECT_EQ(late[4], 2.0);
  EXPECT_EQ(late[5], 0.05);
  const auto muon = slots("muon", {1, 0.95, 1, 5, 1e-6, 1, 0.1}, 9);
  EXPECT_EQ(muon[0], 0.5);
  EXPECT_EQ(muon[1], 0.95);
  EXPECT_EQ(muon[2], 1.0);
  EXPECT_EQ(muon[3], 1e-6);
  EXPECT_EQ(muon[4], 0.1);
  EXPECT_EQ(muon[5], 1.0);
}

template <class Call>
std::string message(const Call& call) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInvalidArgument);
    return e.what();
  }
  return "";
}

TEST(Optimizers, MistakesAreNamed) {
  EXPECT_EQ(message([] { optimizer("adamax"); }),
            "unknown optimizer 'adamax'; known: adamw, sgd, lion, adam, adamw8, adafactor, muon");
  EXPECT_EQ(message([] { optimizer(""); }),
            "unknown optimizer ''; known: adamw, sgd, lion, adam, adamw8, adafactor, muon");
  const auto check = [](std::string_view name, std::string_view hyper, double value) {
    return message([&] { check_hyper(optimizer(name), hyper, value); });
  };
  EXPECT_EQ(check("sgd", "momentum", 0.9), "");
  EXPECT_EQ(check("sgd", "momentum", 1), "sgd: momentum is 1; it must be at least 0 and below 1");
  EXPECT_EQ(check("sgd", "momentum", -0.1), "sgd: momentum is -0.1; it must be at least 0 and below 1");
  EXPECT_EQ(check("sgd", "nesterov", 0.5), "sgd: nesterov is 0.5; it must be 0 or 1");
  EXPECT_EQ(check("adamw", "eps", -1), "adamw: eps is -1; it must be from 0 to 1e38");
  EXPECT_EQ(check("adafactor", "beta2_decay", 0.8),
            "adafactor: beta2_decay is 0.8; it must be from -1e38 to 0");
  EXPECT_EQ(check("adafactor", "clip_threshold", 0.5),
            "adafactor: clip_threshold is 0.5; it must be from 1 to 1e38");
  EXPECT_EQ(check("adafactor", "eps1", 0), "adafactor: eps1 is 0; it must be from 1e-30 to 1e38");
  for (const double steps : {0.0, 2.5, 100.0, -1.0})
    EXPECT_EQ(check("muon", "ns_steps", steps),
              cat("muon: ns_steps is ", steps, "; it must be a whole number from 1 to 99"));
  EXPECT_EQ(check("muon", "ns_steps", 99), "");
  EXPECT_EQ(check("muon", "momentum", 1), "muon: momentum is 1; it must be at least 0 and below 1");
  for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL})
    for (const OptimizerRow& row : optimizers())
      for (const Hyper& hyper : row.hypers)
        EXPECT_NE(check(row.name, hyper.name, value), "") << row.name << ' ' << hyper.name << ' ' << value;
  EXPECT_EQ(check("lion", "momentum", 0.9),
            "'lion' has no hyper-parameter 'momentum'; it has: rate_scale, beta1, beta2, weight_decay");
}

TEST(Optimizers, WhatDoesNotGoTogetherIsNamed) {
  const auto check = [](double momentum, double dampening, double nesterov) {
    const double values[] = {1, momentum, dampening, nesterov, 0};
    return message([&] { check_hypers_together(optimizer("sgd"), values); });
  };
  EXPECT_EQ(check(0, 0, 0), "");
  EXPECT_EQ(check(0, 0.5, 0), "");
  EXPECT_EQ(check(0.9, 0, 1), "");
  EXPECT_NE(check(0, 0, 1).find("sgd: nesterov with momentum 0: "), std::string::npos);
  EXPECT_NE(check(0.9, 0.5, 1).find("sgd: nesterov with dampening 0.5: "), std::string::npos);
  for (const OptimizerRow& row : optimizers()) {
    std::vector<double> defaults;
    for (const Hyper& hyper : row.hypers) defaults.push_back(hyper.value);
    EXPECT_EQ(message([&] { check_hypers_together(row, defaults); }), "") << row.name;
  }
}

// Kernels know the op's operands by position.
TEST(Optimizers, TheOpsOperandsStandWhereKernelsLookForThem) {
  using namespace update_op;
  const OpRow& row = ops::row(OpCode::k_update);
  ASSERT_EQ(row.inputs.size(), static_cast<size_t>(kInputs));
  ASSERT_EQ(row.outputs.size(), static_cast<size_t>(kOutputs));
  EXPECT_EQ(row.inputs[kGrad].name, "grad");
  EXPECT_EQ(row.inputs[kHyper].name, "hyper");
  EXPECT_EQ(row.inputs[kTotal].name, "total");
  EXPECT_EQ(row.outputs[kParameter].name, "p");
  EXPECT_EQ(row.outputs[kFirstState].name, "s0");
  EXPECT_EQ(row.outputs[kPacked].name, "packed");
  EXPECT_EQ(row.outputs[kGradScale].name, "grad_scale");
}

}  // namespace
}  // namespace cairn::ops
