// What plans store parameters as by their names, and the table of formats.
#include <map>

#include "tests/capi/rig.h"

namespace {

using namespace cairn_test;

// x[2, 64] -> a frozen layer and one that trains.
cairn::Graph model(const cairn::Instance& instance) {
  auto graph = cairn::Graph::create(instance);
  const cairn::Value x = graph.input("x", {2, 64});
  cairn_parameter_options_t frozen = cairn::init_normal(1);
  frozen.frozen = 1;
  const cairn::Value h = graph.op("linear", {x, graph.parameter("h.0.weight", {64, 64}, frozen)});
  const cairn::Value y = graph.op("linear", {h, graph.parameter("head", {1, 64}, cairn::init_normal(1))});
  graph.freeze(graph.op("mse", {y, graph.input("t", {2, 1})}));
  return graph;
}

TEST(Formats, SessionsReadTheNumbersThatAreStored) {
  const Devices devices;
  const auto graph = model(devices.instance);
  const auto plan = cairn::Plan::create(graph, devices.device, cairn::PlanOptions().format("h.*", "int8"));
  auto session = cairn::Session::create(plan, devices.device);
  session.initialise(3);
  std::vector<float> numbers(64 * 64), read(64 * 64);
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = i % 64 == 0 ? 127.0f : static_cast<float>(i % 64) - 30.75f;
  session.write("h.0.weight", numbers);
  session.read("h.0.weight", read);
  for (size_t i = 0; i < numbers.size(); ++i)
    ASSERT_EQ(read[i], std::floor(numbers[i])) << i;  // the scale is 1
  Failure failure;
  numbers[70] = INFINITY;
  expect_failure(
      cairn_session_write(session.get(), "h.0.weight", numbers.data(), 4 * numbers.size(), failure),
      CAIRN_STATUS_INVALID_ARGUMENT, failure, {"h.0.weight", "int8"});
}

TEST(Formats, WhatIsRefusedIsNamed) {
  const Devices devices;
  const auto graph = model(devices.instance);
  const auto refused = [&](std::vector<cairn_parameter_format_t> rules, const std::vector<std::string>& words,
                           uint32_t reserved = 0, cairn_status_t status = CAIRN_STATUS_INVALID_ARGUMENT) {
    cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
    options.formats = rules.data();
    options.format_count = static_cast<uint32_t>(rules.size());
    options.reserved2 = reserved;
    cairn_plan_t* plan = nullptr;
    Failure failure;
    expect_failure(cairn_plan_create(graph.get(), devices.device.get(), &options, &plan, failure), status,
                   failure, words);
  };
  refused({{"head", "int8"}}, {"'head'", "int8", "f32, bf16 or split"});
  refused({{"k.*", "int8"}}, {"k.*=int8", "no parameter", "h.0.weight"});
  refused({{"h.*", "int3"}}, {"int3"});
  refused({{"h.*", "int8"}, {nullptr, "int8"}}, {"options.formats[1].pattern"});
  refused({{"h.*", nullptr}}, {"options.formats[0].format"});
  refused({{"h.*", "int8"}}, {"reserved"}, 1, CAIRN_STATUS_UNSUPPORTED);
}

TEST(Formats, AreListed) {
  std::map<std::string, cairn_format_info_t> rows;
  for (const cairn_format_info_t& row : cairn::formats()) rows[row.name] = row;
  EXPECT_EQ(rows.at("int8").block, 64u);
  EXPECT_EQ(rows.at("int8").bits, 8u);
  EXPECT_EQ(rows.at("int8").scale_bytes, 4u);
  EXPECT_EQ(rows.at("int8").trains, 0u);
  EXPECT_STREQ(rows.at("int8").read, "dequantised");
  EXPECT_STREQ(rows.at("dynamic8").read, "by updates");
  EXPECT_STREQ(rows.at("bf16").computed_as, "bf16");
  for (const char* name : {"f32", "bf16", "split"}) EXPECT_EQ(rows.at(name).trains, 1u) << name;
}

}  // namespace
