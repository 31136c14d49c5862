// Chapter 3: building a graph, and every way to get it wrong.
#include <algorithm>
#include <cstring>

#include "tests/capi/rig.h"

namespace cairn_test {
namespace {

struct GraphTest : testing::Test {
  cairn_status_t op(const char* name, const std::vector<cairn::Value>& in,
                    const std::vector<cairn_attr_t>& attrs = {}) {
    return cairn_graph_op(graph.get(), name, in.data(), in.size(), attrs.data(), attrs.size(), &out, 1,
                          failure);
  }
  cairn_status_t begin(const char* name, uint32_t policy = 0, uint32_t tier = 0) {
    cairn_region_options_t options = CAIRN_REGION_OPTIONS_INIT;
    options.name = name;
    options.policy = policy;
    options.tier = tier;
    return cairn_graph_region_begin(graph.get(), &options, &region, failure);
  }
  cairn::Instance instance = cairn::Instance::create();
  cairn::Graph graph = cairn::Graph::create(instance);
  cairn::Value out = 0;
  cairn::Region region = 0;
  Failure failure;
};

TEST_F(GraphTest, Adapters) {
  const auto adapt = [&](auto change) {
    cairn_adapter_t rule = CAIRN_ADAPTER_INIT;
    change(rule);
    return cairn_graph_adapt(graph.get(), &rule, failure);
  };
  const auto refused = [&](auto change, const std::vector<std::string>& says) {
    expect_failure(adapt(change), CAIRN_STATUS_INVALID_ARGUMENT, failure, says);
  };
  refused([](auto& r) { r.rank = 0; }, {"rank is 0"});
  refused([](auto& r) { r.kind = 4; }, {"rule.kind"});
  refused([](auto& r) { r.alpha = -1; }, {"alpha is -1"});
  refused([](auto& r) { r.dropout = 1; }, {"dropout is 1"});
  refused([](auto& r) { r.ranks = "q_proj"; }, {"rule.ranks", "'q_proj'", "PATTERN=RANK"});
  refused([](auto& r) { r.ranks = "q_proj=2.5"; }, {"'q_proj=2.5'", "whole number"});
  refused([](auto& r) { r.alphas = "a=1,b=x"; }, {"rule.alphas", "'b=x'"});
  expect_failure(cairn_graph_adapt(graph.get(), nullptr, failure), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"rule"});
  EXPECT_EQ(adapt([](auto& r) { r.ranks = "q_proj=2,v_proj=3"; }), CAIRN_STATUS_OK);
  const int64_t shape[] = {4, 4};
  cairn::Value x = 0, w = 0;
  const cairn_tensor_desc_t in = {"x", shape, 2, CAIRN_F32}, of = {"h.q_proj.weight", shape, 2, CAIRN_F32};
  EXPECT_EQ(cairn_graph_input(graph.get(), &in, &x, failure), CAIRN_STATUS_OK);
  EXPECT_EQ(cairn_graph_parameter(graph.get(), &of, nullptr, &w, failure), CAIRN_STATUS_OK);
  EXPECT_EQ(op("linear", {x, w}), CAIRN_STATUS_OK);
  cairn_value_info_t info = CAIRN_VALUE_INFO_INIT;
  const cairn_value_t a = cairn_graph_find(graph.get(), "h.q_proj.lora_A.weight");
  EXPECT_EQ(cairn_graph_value_info(graph.get(), a, &info, failure), CAIRN_STATUS_OK);
  EXPECT_EQ(info.dims[0], 2);
  expect_failure(op("linear", {x, w}), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"'h.q_proj'", "one use"});
}

TEST_F(GraphTest, WrongTensors) {
  const int64_t fine[] = {2, 3}, zero[] = {2, 0}, huge[] = {INT64_MAX, 3};
  const auto input = [&](cairn_tensor_desc_t desc) {
    return cairn_graph_input(graph.get(), &desc, &out, failure);
  };
  expect_failure(input({nullptr, fine, 2, CAIRN_F32}), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"name"});
  expect_failure(input({"", fine, 2, CAIRN_F32}), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"name"});
  expect_failure(input({"x", nullptr, 2, CAIRN_F32}), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"'x'", "dims"});
  expect_failure(input({"x", fine, 9, CAIRN_F32}), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"'x'", "9"});
  expect_failure(input({"x", zero, 2, CAIRN_F32}), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"'x'", "dimension 1 is 0"});
  expect_failure(input({"x", huge, 2, CAIRN_F32}), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"overflow"});
  expect_failure(input({"x", fine, 2, 7}), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"dtype", "7"});
  EXPECT_EQ(cairn_graph_value_count(graph.get()), 0u);
  graph.input("x", {2, 3});
  expect_failure(input({"x", fine, 2, CAIRN_F32}), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"'x'"});
  expect_failure(cairn_graph_input(graph.get(), nullptr, &out, failure), CAIRN_STATUS_INVALID_ARGUMENT,
                 failure, {"'desc'"});
  const cairn_tensor_desc_t desc = {"y", fine, 2, CAIRN_F32};
  expect_failure(cairn_graph_input(graph.get(), &desc, nullptr, failure), CAIRN_STATUS_INVALID_ARGUMENT,
                 failure, {"'out_value'"});
  EXPECT_EQ(cairn_graph_value_count(graph.get()), 1u);
}

TEST_F(GraphTest, WrongParameters) {
  const int64_t dims[] = {2, 3};
  const cairn_tensor_desc_t desc = {"w", dims, 2, CAIRN_F32};
  const auto with = [&](auto change) {
    cairn_parameter_options_t options = CAIRN_PARAMETER_OPTIONS_INIT;
    change(options);
    return cairn_graph_parameter(graph.get(), &desc, &options, &out, failure);
  };
  expect_failure(with([](auto& o) { o.init = 5; }), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"init", "5"});
  expect_failure(with([](auto& o) { o.frozen = 2; }), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"frozen"});
  expect_failure(with([](auto& o) { o.no_decay = 9; }), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"no_decay"});
  expect_failure(with([](auto& o) { o.init_scale = NAN; }), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"init_scale"});
  expect_failure(with([](auto& o) { o.reserved = 1; }), CAIRN_STATUS_UNSUPPORTED, failure, {"reserved"});
  const cairn_tensor_desc_t whole = {"w", dims, 2, CAIRN_I32};
  expect_failure(cairn_graph_parameter(graph.get(), &whole, nullptr, &out, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"'w'", "i32"});
  EXPECT_EQ(cairn_graph_value_count(graph.get()), 0u);
}

TEST_F(GraphTest, WrongOps) {
  const auto x = graph.input("x", {8, 4});
  const auto w = graph.parameter("w", {5, 3});
  out = 77;
  expect_failure(op("gelo", {x}), CAIRN_STATUS_NOT_FOUND, failure, {"gelo"});
  expect_failure(op("adamw", {x}), CAIRN_STATUS_NOT_FOUND, failure, {"adamw"});
  expect_failure(op("linear", {x, w}), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"linear", "[8, 4]", "[5, 3]", "w"});
  expect_failure(op("linear", {x, 99}), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"linear", "99", "2"});
  expect_failure(op("linear", {x}), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"linear", "'w'"});
  expect_failure(op("gelu", {x, x}), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"gelu", "2"});
  EXPECT_EQ(cairn_graph_op(graph.get(), "gelu", nullptr, 1, nullptr, 0, &out, 1, failure),
            CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(cairn_graph_op(graph.get(), nullptr, &x, 1, nullptr, 0, &out, 1, failure),
            CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(cairn_graph_op(graph.get(), "gelu", &x, 1, nullptr, 0, nullptr, 1, failure),
            CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(out, 77u) << "out params stay untouched";
  EXPECT_EQ(cairn_graph_value_count(graph.get()), 2u);
}

TEST_F(GraphTest, OpsAreListed) {
  const auto ops = cairn::ops();
  ASSERT_GT(ops.size(), 20u);
  for (const auto& row : ops) {
    EXPECT_NE(op(row.name, {}), CAIRN_STATUS_NOT_FOUND) << row.name;
    EXPECT_GT(std::string(row.description).size(), 10u) << row.name;
  }
  const auto linear = std::find_if(ops.begin(), ops.end(), [](auto& o) { return !strcmp(o.name, "linear"); });
  ASSERT_NE(linear, ops.end());
  EXPECT_STREQ(linear->inputs, "x w b?");
  EXPECT_STREQ(linear->outputs, "y pre?");
  EXPECT_STREQ(linear->attributes, "activation:s");
  cairn_op_info_t row = CAIRN_OP_INFO_INIT;
  expect_failure(cairn_op_describe(ops.size(), &row, failure), CAIRN_STATUS_NOT_FOUND, failure,
                 {std::to_string(ops.size())});
  EXPECT_EQ(cairn_op_describe(0, nullptr, failure), CAIRN_STATUS_INVALID_ARGUMENT);
}

TEST_F(GraphTest, WrongAttributes) {
  const auto x = graph.input("x", {8, 4});
  const auto attr = [](const char* name, uint32_t kind) {
    cairn_attr_t a{};
    a.name = name;
    a.kind = kind;
    a.word = "tanh";
    a.real = 1;
    return a;
  };
  expect_failure(op("gelu", {x}, {attr("aproximate", CAIRN_ATTR_WORD)}), CAIRN_STATUS_INVALID_ARGUMENT,
                 failure, {"gelu", "'aproximate'", "approximate"});
  expect_failure(op("gelu", {x}, {attr("approximate", CAIRN_ATTR_REAL)}), CAIRN_STATUS_INVALID_ARGUMENT,
                 failure, {"gelu", "'approximate'", "word"});
  expect_failure(op("gelu", {x}, {attr("approximate", 5)}), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"kind 5"});
  expect_failure(op("gelu", {x}, {attr(nullptr, CAIRN_ATTR_WORD)}), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"gelu"});
  expect_failure(op("gelu", {x}, {attr("approximate", 2), attr("approximate", 2)}),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"twice"});
  cairn_attr_t wordless = attr("approximate", CAIRN_ATTR_WORD);
  wordless.word = nullptr;
  expect_failure(op("gelu", {x}, {wordless}), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"NULL"});
  cairn_attr_t listless = attr("shape", CAIRN_ATTR_LIST);
  listless.list_count = 2;
  expect_failure(op("reshape", {x}, {listless}), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"shape", "NULL"});
  cairn_attr_t realless = attr("shape", CAIRN_ATTR_REALS);
  expect_failure(op("reshape", {x}, {realless}), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"'shape'", "a list of integers"});
  realless.list_count = 2;
  expect_failure(op("reshape", {x}, {realless}), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"shape", "NULL"});
  expect_failure(op("scale", {x}), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"scale", "'factor'"});
  EXPECT_EQ(cairn_graph_value_count(graph.get()), 1u);
}

TEST_F(GraphTest, ListsOfRealNumbers) {
  const auto x = graph.input("x", {1, 3, 4});
  const double frequencies[] = {1, 0.25};
  cairn_attr_t heads{}, list{};
  heads.name = "heads";
  heads.integer = 1;
  list.name = "frequencies";
  list.kind = CAIRN_ATTR_REALS;
  list.reals = frequencies;
  list.list_count = 2;
  EXPECT_EQ(op("rope", {x}, {heads, list}), CAIRN_STATUS_OK);
  const std::vector<double> as_vector = {1, 0.25};
  EXPECT_EQ(graph.info(graph.op("rope", {x}, {{"heads", 1}, {"frequencies", as_vector}})).dims[2], 4);
  list.list_count = 1;
  expect_failure(op("rope", {x}, {heads, list}), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"rope: frequencies is a list of 1: it must have 2 numbers"});
}

TEST_F(GraphTest, MoreOrFewerOutputsMayBeAskedFor) {
  const auto x = graph.input("x", {8, 4});
  const auto five = graph.ops<5>("layernorm", {x});
  EXPECT_TRUE(five[0] && five[1] && five[2]);
  EXPECT_EQ(five[3], 0u);
  EXPECT_EQ(five[4], 0u);
  EXPECT_EQ(cairn_graph_op(graph.get(), "relu", &x, 1, nullptr, 0, nullptr, 0, failure), CAIRN_STATUS_OK);
}

TEST_F(GraphTest, Regions) {
  expect_failure(begin(nullptr), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"name"});
  expect_failure(begin("a", 4), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"policy", "4"});
  expect_failure(begin("a", CAIRN_REGION_OFFLOAD, 3), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"tier", "3"});
  expect_failure(begin("a", CAIRN_REGION_KEEP, CAIRN_TIER_HOST), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"'a'"});
  expect_failure(cairn_graph_region_end(graph.get(), 1, failure), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"1"});

  std::vector<cairn::Region> open;
  for (int depth = 1; depth <= 8; ++depth) {
    ASSERT_EQ(begin("deep"), CAIRN_STATUS_OK) << failure.message();
    open.push_back(region);
  }
  expect_failure(begin("deep"), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"8"});
  expect_failure(cairn_graph_region_end(graph.get(), open[3], failure), CAIRN_STATUS_WRONG_STATE, failure,
                 {"deep"});
  const auto x = graph.input("x", {2, 2});
  const auto y = graph.op("relu", {x});
  EXPECT_EQ(graph.info(y).region, open.back());
  while (open.size() > 1) {
    ASSERT_EQ(cairn_graph_region_end(graph.get(), open.back(), failure), CAIRN_STATUS_OK)
        << failure.message();
    open.pop_back();
  }
  cairn_freeze_options_t freeze = CAIRN_FREEZE_OPTIONS_INIT;
  freeze.outputs = &y;
  freeze.output_count = 1;
  expect_failure(cairn_graph_freeze(graph.get(), &freeze, failure), CAIRN_STATUS_WRONG_STATE, failure,
                 {"'deep'"});
  ASSERT_EQ(cairn_graph_region_end(graph.get(), open[0], failure), CAIRN_STATUS_OK);
  EXPECT_EQ(cairn_graph_freeze(graph.get(), &freeze, failure), CAIRN_STATUS_OK) << failure.message();
}

TEST_F(GraphTest, FrozenIsFrozen) {
  const auto x = graph.input("x", {4, 4});
  const auto y = graph.op("relu", {x});
  cairn_freeze_options_t freeze = CAIRN_FREEZE_OPTIONS_INIT;
  freeze.loss = 99;
  expect_failure(cairn_graph_freeze(graph.get(), &freeze, failure), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"loss", "99"});
  freeze.loss = y;
  expect_failure(cairn_graph_freeze(graph.get(), &freeze, failure), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"loss", "[4, 4]"});
  freeze.loss = 0;
  freeze.output_count = 1;
  expect_failure(cairn_graph_freeze(graph.get(), &freeze, failure), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"outputs"});
  const cairn_value_t none = 0;
  freeze.outputs = &none;
  expect_failure(cairn_graph_freeze(graph.get(), &freeze, failure), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"outputs[0]"});
  graph.freeze(0, {y});
  expect_failure(cairn_graph_freeze(graph.get(), &freeze, failure), CAIRN_STATUS_WRONG_STATE, failure,
                 {"frozen"});
  expect_failure(op("relu", {x}), CAIRN_STATUS_WRONG_STATE, failure, {"frozen"});
  expect_failure(begin("late"), CAIRN_STATUS_WRONG_STATE, failure, {"frozen"});
  expect_failure(cairn_graph_name(graph.get(), y, "late", failure), CAIRN_STATUS_WRONG_STATE, failure,
                 {"frozen"});
  const int64_t dims[] = {1};
  const cairn_tensor_desc_t desc = {"late", dims, 1, CAIRN_F32};
  expect_failure(cairn_graph_parameter(graph.get(), &desc, nullptr, &out, failure), CAIRN_STATUS_WRONG_STATE,
                 failure, {"frozen"});
}

TEST_F(GraphTest, Residents) {
  const auto mean = graph.resident("mean", {4}, CAIRN_RESIDENT_STATISTIC, 0.5);
  const auto cache = graph.resident("cache", {8, 4}, CAIRN_RESIDENT_CACHE, 0, CAIRN_BF16);
  EXPECT_EQ(graph.info(mean).kind, static_cast<uint32_t>(CAIRN_RESIDENT_STATISTIC));
  EXPECT_EQ(graph.info(cache).kind, static_cast<uint32_t>(CAIRN_RESIDENT_CACHE));
  EXPECT_EQ(graph.info(cache).bytes, 64u);
  const auto x = graph.input("x", {2, 4});
  EXPECT_EQ(op("running_mean", {x, mean}), CAIRN_STATUS_OK);
  EXPECT_EQ(out, 0u) << "it makes no value";
  expect_failure(op("running_mean", {x, cache}), CAIRN_STATUS_INVALID_ARGUMENT, failure);
  const int64_t dims[] = {4};
  const cairn_tensor_desc_t desc = {"other", dims, 1, CAIRN_F32};
  expect_failure(cairn_graph_resident(graph.get(), &desc, 1, 0, &out, failure), CAIRN_STATUS_INVALID_ARGUMENT,
                 failure, {"'other'", "kind is 1", "CACHE"});
}

TEST_F(GraphTest, TableOfValues) {
  const auto x = graph.input("x", {8, 4});
  const char* borrowed = graph.info(x).name;
  for (int i = 0; i < 300; ++i) graph.input("filler" + std::to_string(i), {2});
  EXPECT_STREQ(borrowed, "x") << "a borrowed name must outlive growth";
  const auto y = graph.op("relu", {x});
  graph.name(y, "y");
  EXPECT_EQ(graph.find("y"), y);
  EXPECT_EQ(graph.find("nothing"), 0u);
  const auto info = graph.info(y);
  EXPECT_STREQ(info.name, "y");
  EXPECT_EQ(info.rank, 2u);
  EXPECT_EQ(info.dims[0], 8);
  EXPECT_EQ(info.dims[1], 4);
  EXPECT_EQ(info.dims[2], 0);
  EXPECT_EQ(info.bytes, 128u);
  EXPECT_EQ(info.kind, 2u);
  EXPECT_EQ(info.region, 0u);
  cairn_value_info_t row = CAIRN_VALUE_INFO_INIT;
  for (cairn_value_t none : {cairn_value_t{0}, y + 1})
    expect_failure(cairn_graph_value_info(graph.get(), none, &row, failure), CAIRN_STATUS_NOT_FOUND, failure,
                   {std::to_string(none)});
  expect_failure(cairn_graph_name(graph.get(), y, "x", failure), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"'x'"});
  expect_failure(cairn_graph_name(graph.get(), 0, "z", failure), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"0"});
}

}  // namespace
}  // namespace cairn_test
