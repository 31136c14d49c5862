// cairn.hpp: exceptions carry what the error object knows; objects are references.
#include "tests/capi/rig.h"

namespace cairn_test {
namespace {

TEST(Cpp, ErrorsCarryStatusMessageAndFault) {
  const Devices devices;
  const auto graph = perceptron(devices.instance);
  cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
  options.budget_bytes = 1;
  try {
    cairn::Plan::create(graph, devices.device, options);
    FAIL() << "one byte is too little";
  } catch (const cairn::Error& e) {
    EXPECT_EQ(e.status(), CAIRN_STATUS_OVER_BUDGET);
    EXPECT_STREQ(e.status_name(), "OVER_BUDGET");
    EXPECT_NE(std::string(e.what()).find("budget"), std::string::npos);
    ASSERT_TRUE(e.fault().has_value());
    EXPECT_GT(e.fault()->smallest_budget_bytes, 1u);
  }
  try {
    cairn::Device::open(devices.instance, "abacus");
    FAIL() << "there is no abacus";
  } catch (const cairn::Error& e) {
    EXPECT_EQ(e.status(), CAIRN_STATUS_NOT_FOUND);
    EXPECT_FALSE(e.fault().has_value());
  }
}

TEST(Cpp, CopiesAreReferencesMovesLeaveNothing) {
  auto graph = cairn::Graph::create(cairn::Instance::create());
  cairn::Graph same = graph;
  same.input("x", {2, 2});
  EXPECT_EQ(graph.value_count(), 1u);
  cairn::Graph moved = std::move(same);
  EXPECT_FALSE(same);
  EXPECT_EQ(moved.get(), graph.get());
  graph = {};
  EXPECT_EQ(moved.value_count(), 1u);
}

TEST(Cpp, AttributesOfEveryKind) {
  auto graph = cairn::Graph::create(cairn::Instance::create());
  const auto x = graph.input("x", {4, 6});
  EXPECT_EQ(graph.info(graph.op("reshape", {x}, {{"shape", std::vector<int64_t>{3, 8}}})).dims[1], 8);
  EXPECT_EQ(graph.info(graph.op("slice", {x}, {{"axis", 1}, {"begin", 2}, {"end", 5}})).dims[1], 3);
  EXPECT_EQ(graph.info(graph.op("scale", {x}, {{"factor", 0.5}})).dims[1], 6);
  EXPECT_EQ(graph.info(graph.op("cast", {x}, {{"dtype", "bf16"}})).dtype, static_cast<uint32_t>(CAIRN_BF16));
  EXPECT_THROW(graph.op("scale", {x}, {{"factor", "half"}}), cairn::Error);
}

TEST(Cpp, VersionIsTheLibrarys) { EXPECT_EQ(cairn::version(), cairn_version()); }

}  // namespace
}  // namespace cairn_test
