// Chapter 4: the classes of mixed precision, and rules that give ops another one.
#include <cstddef>
#include <map>

#include "tests/capi/rig.h"

namespace cairn_test {
namespace {

struct AmpTest : testing::Test {
  cairn_plan_options_t options_of(const std::vector<cairn_amp_rule_t>& rules, uint32_t amp = CAIRN_AMP_BF16) {
    cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
    options.amp = amp;
    options.amp_rules = rules.data();
    options.amp_rule_count = static_cast<uint32_t>(rules.size());
    return options;
  }
  void refused(const cairn_plan_options_t& options, const std::vector<std::string>& words,
               cairn_status_t status = CAIRN_STATUS_INVALID_ARGUMENT) {
    cairn_plan_t* plan = nullptr;
    expect_failure(cairn_plan_create(graph.get(), devices.device.get(), &options, &plan, failure), status,
                   failure, words);
    EXPECT_EQ(plan, nullptr);
    cairn_plan_release(plan);
  }
  // The parameters after a few steps.
  std::vector<std::vector<float>> trained(const cairn_plan_options_t& options) {
    Trainer trainer(devices, graph, options);
    for (int i = 0; i < 3; ++i) {
      trainer.write(0.5f + 0.25f * static_cast<float>(i));
      trainer.stepper.micro();
    }
    std::vector<std::vector<float>> found;
    for (int i = 0; i < kLayers; ++i) {
      found.emplace_back(kWidth * kWidth);
      trainer.session.read("layer" + std::to_string(i) + ".weight", found.back());
    }
    return found;
  }
  Devices devices;
  cairn::Graph graph = perceptron(devices.instance);
  Failure failure;
};

TEST_F(AmpTest, ClassesAreDescribed) {
  std::map<std::string, bool> known;
  for (const cairn_amp_class_info_t& info : cairn::amp_classes()) {
    known[info.name] = info.by_rule != 0;
    EXPECT_GT(std::string(info.description).size(), 20u) << info.name;
  }
  const std::map<std::string, bool> wanted = {
      {"half", true}, {"follow", true}, {"full", true}, {"mixed", false}, {"as_is", false}};
  EXPECT_EQ(known, wanted);
  cairn_amp_class_info_t info = CAIRN_AMP_CLASS_INFO_INIT;
  expect_failure(cairn_amp_class_describe(known.size(), &info, failure), CAIRN_STATUS_NOT_FOUND, failure,
                 {std::to_string(known.size())});
  expect_failure(cairn_amp_class_describe(0, nullptr, failure), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"out_info"});
  std::map<std::string, std::string> ops;
  for (const cairn_op_info_t& op : cairn::ops()) {
    ops[op.name] = op.amp_class;
    EXPECT_TRUE(known.count(op.amp_class)) << op.name;
  }
  EXPECT_EQ(ops["linear"], "half");
  EXPECT_EQ(ops["softmax"], "full");
  EXPECT_EQ(ops["gelu"], "follow");
  EXPECT_EQ(ops["mse"], "mixed");
  EXPECT_EQ(ops["cast"], "as_is");
}

TEST_F(AmpTest, AnOlderCallersOpInfoIsFilledAsFarAsItGoes) {
  cairn_op_info_t info = CAIRN_OP_INFO_INIT;
  info.struct_size = offsetof(cairn_op_info_t, amp_class);
  const char untouched[] = "untouched";
  info.amp_class = untouched;
  ASSERT_EQ(cairn_op_describe(0, &info, nullptr), CAIRN_STATUS_OK);
  EXPECT_EQ(info.amp_class, untouched);
  EXPECT_NE(info.description, nullptr);
}

TEST_F(AmpTest, AnOlderCallersPlanHasNoRules) {
  const std::vector<cairn_amp_rule_t> rules = {{"no such op", nullptr, "full"}};
  cairn_plan_options_t options = options_of(rules);
  options.struct_size = offsetof(cairn_plan_options_t, amp_rules);
  EXPECT_NO_THROW(cairn::Plan::create(graph, devices.device, options));
}

TEST_F(AmpTest, PlansTellTheClassOfEveryOp) {
  const std::vector<cairn_amp_rule_t> rules = {{"linear", nullptr, "full"}, {nullptr, "layer1", "half"}};
  const auto plan = cairn::Plan::create(graph, devices.device, options_of(rules));
  const std::vector<cairn_plan_op_t> ops = plan.ops();
  ASSERT_EQ(ops.size(), static_cast<size_t>(kLayers) + 1);
  for (int i = 0; i < kLayers; ++i) {
    const cairn_plan_op_t& op = ops[static_cast<size_t>(i)];
    EXPECT_STREQ(op.op, "linear");
    EXPECT_EQ(op.region, "layer" + std::to_string(i));
    EXPECT_STREQ(op.amp_class, i == 1 ? "half" : "full");
    EXPECT_EQ(op.amp_rule, i == 1 ? 1 : 0);
  }
  EXPECT_STREQ(ops.back().amp_class, "mixed");
  EXPECT_EQ(ops.back().amp_rule, -1);
  EXPECT_STREQ(ops.back().region, "");
  cairn_plan_op_t row = CAIRN_PLAN_OP_INIT;
  expect_failure(cairn_plan_op(plan.get(), ops.size(), &row, failure), CAIRN_STATUS_NOT_FOUND, failure,
                 {std::to_string(ops.size())});
  expect_failure(cairn_plan_op(nullptr, 0, &row, failure), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"'plan'"});
}

TEST_F(AmpTest, EverythingInFloat32TrainsAsWithoutMixedPrecision) {
  const std::vector<cairn_amp_rule_t> rules = {{"*", nullptr, "full"}};
  const auto off = trained(CAIRN_PLAN_OPTIONS_INIT);
  EXPECT_EQ(trained(options_of(rules)), off);
  EXPECT_NE(trained(options_of({})), off);
  EXPECT_EQ(trained(options_of(rules, CAIRN_AMP_OFF)), off);
}

TEST_F(AmpTest, WrongRulesAreNamed) {
  std::vector<cairn_amp_rule_t> rules = {{"linear", nullptr, "bf16"}};
  refused(options_of(rules), {"'linear'", "'bf16'", "half, follow, full, default"});
  refused(options_of(rules, CAIRN_AMP_OFF), {"'bf16'"});
  rules = {{"linaer", nullptr, "full"}};
  refused(options_of(rules), {"'linaer'", "matches no op", "linear", "mse"});
  rules = {{nullptr, "block*", "full"}};
  refused(options_of(rules), {"'block*'", "matches no region", "layer0", "layer3"});
  rules = {{nullptr, nullptr, "full"}};
  refused(options_of(rules), {"neither an op nor a region"});
  rules = {{"linear", nullptr, "full"}, {"linear", nullptr, nullptr}};
  refused(options_of(rules), {"amp_rules[1].amp_class"});
  cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
  options.amp_rule_count = 1;
  refused(options, {"options.amp_rules"});
  options = CAIRN_PLAN_OPTIONS_INIT;
  options.parameters = CAIRN_F16;
  refused(options, {"options.parameters"});
}

// The host sees the type that its rule asks for.
TEST_F(AmpTest, AHostsOpMayBeHalf) {
  static uint32_t seen;
  cairn_custom_op_t twice = CAIRN_CUSTOM_OP_INIT;
  twice.name = "twice";
  twice.inputs = twice.outputs = twice.recomputable = 1;
  twice.shape = [](void*, const cairn_tensor_t* in, cairn_tensor_t* out) -> int32_t {
    seen = in->dtype;
    *out = *in;
    return 0;
  };
  twice.forward = [](void*, const cairn_tensor_t*, const cairn_tensor_t*, void*) -> int32_t { return 0; };
  twice.backward = twice.forward;
  auto own = cairn::Graph::create(devices.instance);
  own.custom_op(twice);
  const cairn::Value w = own.parameter("w", {4, 4}, cairn::init_normal(0.2));
  const cairn::Value x = own.op("linear", {own.input("x", {4, 4}), w});
  own.freeze(own.op("mse", {own.op("twice", {x}), own.input("target", {4, 4})}));
  const auto plan_with = [&](const std::vector<cairn_amp_rule_t>& rules) {
    return cairn::Plan::create(own, devices.device, options_of(rules)).ops()[1];
  };
  EXPECT_STREQ(plan_with({}).amp_class, "full");
  EXPECT_EQ(seen, static_cast<uint32_t>(CAIRN_F32));
  EXPECT_STREQ(plan_with({{"twice", nullptr, "half"}}).op, "twice");
  EXPECT_EQ(seen, static_cast<uint32_t>(CAIRN_BF16));
}

}  // namespace
}  // namespace cairn_test
