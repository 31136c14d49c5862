// Whatever name a graph takes, its checkpoint, model file, plan file, plan JSON and safetensors file open
// again.
#include <gtest/gtest.h>

#include <iostream>

#include "runtime/base/text/name.h"
#include "runtime/io/checkpoint.h"
#include "runtime/io/graph_file.h"
#include "runtime/io/inspect.h"
#include "runtime/io/plan_file.h"
#include "runtime/io/safetensors/names.h"
#include "tests/runtime/io/rig.h"
#include "tests/runtime/io/scratch.h"
#include "tests/support/seeds.h"

namespace cairn::io {
namespace {

struct Names {
  std::string input = "ids", parameter = "table", value = "x", output = "h", outer = "a", inner = "b";
};

std::shared_ptr<graph::Graph> model(const Names& names) {
  auto g = std::make_shared<graph::Graph>();
  const auto ids = g->input(names.input, {DType::kI32, {8}});
  const auto targets = g->input("goals", {DType::kI32, {8}});
  const auto outer = g->region_begin(names.outer, Policy::kRecompute);
  const auto inner = g->region_begin(names.inner, Policy::kPlannerDecides);
  const auto table =
      g->parameter(names.parameter, {DType::kF32, {11, 8}}, {.init = graph::Init::kNormal, .init_scale = 1});
  const auto x = g->op("embedding", {table, ids})[0];
  g->name_value(x, names.value);
  const auto h = g->op("gelu", {x})[0];
  g->name_value(h, names.output);
  g->region_end(inner);
  g->region_end(outer);
  const auto loss = g->op("linear_cross_entropy", {h, table, targets});
  g->freeze(loss[0], loss[1], {h});
  return g;
}

// Writes all of a session in the middle of an accumulation and reads it again.
void round_trip(const std::shared_ptr<graph::Graph>& graph, const test::Scratch& scratch) {
  engine::PlanOptions options;
  options.tiers = {Tier::kHost, Tier::kDisk};
  options.amp = graph::AmpMode::kBf16;
  test::Rig rig(graph, 7, options);
  const auto feed = [&](graph::ValueId value) {
    const std::vector<int32_t> tokens(8, 3);
    rig.session->write(rig.session->plan().joint->find(graph->values()[value].name), tokens.data(), 32);
  };
  for (size_t v = 0; v < graph->values().size(); ++v)
    if (graph->values()[v].kind == graph::ValueKind::kInput) feed(static_cast<graph::ValueId>(v));
  rig.stepper->micro();
  save(*rig.stepper, scratch / "saved", {});
  Checkpoint(scratch / "saved").restore(*rig.stepper);
  EXPECT_EQ(decode_graph(encode_graph(*graph))->digest(), graph->digest());
  export_safetensors(*rig.session, {}, scratch / "weights");
  import_safetensors(*rig.session, {}, scratch / "weights");
  const plan::Problem& problem = rig.session->plan().problem;
  const plan::Plan& plan = rig.session->plan().plan;
  EXPECT_EQ(plan::problem_from_json(plan::to_json(problem)).values.size(), problem.values.size());
  decode_plan(encode_plan(problem, plan));
  for (const char* file : {"saved", "weights"}) EXPECT_FALSE(inspect(scratch / file).empty());
}

// Takes the graph, or refuses a name of it; what it takes must go all the way.
bool taken(const Names& names, const test::Scratch& scratch) {
  std::shared_ptr<graph::Graph> graph;
  const auto refused = test::failure([&] { graph = model(names); });
  if (refused.code != Code::kOk) {
    EXPECT_EQ(refused.code, Code::kInvalidArgument) << refused.message;
    return false;
  }
  const auto result = test::failure([&] { round_trip(graph, scratch); });
  EXPECT_EQ(result.code, Code::kOk) << result.message.substr(0, 400);
  return true;
}

TEST(NameRule, TheLongestNamesGoAllTheWay) {
  const test::Scratch scratch;
  const std::string longest(kMaxNameBytes, 'n'), longer = longest + "n";
  std::string Names::*const kGiven[] = {&Names::input, &Names::parameter, &Names::value, &Names::output};
  for (std::string Names::*given : kGiven) {
    Names names;
    names.*given = longest;
    EXPECT_TRUE(taken(names, scratch));
    names.*given = longer;
    EXPECT_FALSE(taken(names, scratch));
  }
  // Of regions, the path counts.
  Names names;
  names.outer = std::string(kMaxNameBytes - 2, 'o');
  EXPECT_TRUE(taken(names, scratch));
  names.outer += "o";
  EXPECT_FALSE(taken(names, scratch));
  names.inner = std::string(kMaxNameBytes - 2, 'i');
  names.outer = "o";
  EXPECT_TRUE(taken(names, scratch));
  names.inner += "i";
  EXPECT_FALSE(taken(names, scratch));
}

TEST(NameRule, NoTwoThingsShareAName) {
  const test::Scratch scratch;
  for (const char* suffix : {"/m", "/v", "/gradient", "/moment0"}) {
    Names names;
    names.value = names.parameter + suffix;
    EXPECT_EQ(taken(names, scratch), std::string_view(suffix) == "/moment0") << suffix;
    names = {};
    names.input = names.parameter + suffix;
    EXPECT_EQ(taken(names, scratch), std::string_view(suffix) == "/moment0") << suffix;
  }
  // In either order, and among parameters.
  graph::Graph g;
  g.parameter("w/m", {DType::kF32, {2}}, {});
  EXPECT_EQ(test::failure([&] { g.parameter("w", {DType::kF32, {2}}, {}); }).code, Code::kInvalidArgument);
  g.parameter("v", {DType::kF32, {2}}, {});
  EXPECT_EQ(test::failure([&] { g.parameter("v/v", {DType::kF32, {2}}, {}); }).code, Code::kInvalidArgument);
  EXPECT_EQ(g.values().size(), 2u);
}

// Names that what is made of a graph could have, too.
TEST(NameRule, NamesThatLookMade) {
  const test::Scratch scratch;
  for (const char* name : {"table.bf16", "table/packed.nt", "x.bf16", "gelu_1.grad", "a/b/gelu_1.grad.dx",
                           "__metadata", "manifest.cairn", "../x", "/", "table/squares", "grad scale",
                           "adamw table", "0", "-", "\"}", "\\u0000", "\xe2\x80\xa8"})
    for (std::string Names::*given : {&Names::input, &Names::value, &Names::output}) {
      Names names;
      names.*given = name;
      EXPECT_TRUE(taken(names, scratch)) << name;
    }
}

std::string random_name(std::mt19937& random) {
  static constexpr const char* kParts[] = {
      "w",    "/",    ".",        "_0", "\xc3\xa9", "\xf0\x9f\x97\xbb", " ",
      "\"",   "\\",   "\x7f",     "/m", "/v",       "/gradient",        "table",
      "\xff", "\x01", "\xed\xa0", "\n", "<",        "__metadata__"};
  std::string name;
  const size_t parts = random() % 5, good = random() % 4;
  for (size_t i = 0; i < parts; ++i) name += kParts[random() % (good ? 14 : std::size(kParts))];
  if (random() % 8 == 0) name += std::string(kMaxNameBytes - random() % 12, 'x');
  return name;
}

TEST(NameRule, WhatIsTakenOpensAgain) {
  const test::Scratch scratch;
  std::mt19937 random(21);
  int64_t tried = 0, accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    Names names;
    for (std::string Names::*given :
         {&Names::input, &Names::parameter, &Names::value, &Names::output, &Names::outer, &Names::inner})
      if (random() % 3 == 0) names.*given = random_name(random);
    if (!support::taken(round, 20 * support::stride(4))) continue;
    ++tried;
    accepted += taken(names, scratch);
  }
  EXPECT_GT(accepted, tried / 10);
  EXPECT_LT(accepted, tried);
  std::cout << "[    NAMES ] " << accepted << " taken of " << tried << std::endl;
}

TEST(NameRule, OtherNamesOfAnExportAreCheckedBeforeItIsWritten) {
  const test::Scratch scratch;
  test::Rig rig;
  for (const char* bad : {"\xff", "__metadata__"}) {
    const auto result = test::failure([&] {
      export_safetensors(*rig.session, {{"wte", bad, false}}, scratch / "weights");
    });
    EXPECT_EQ(result.code, Code::kInvalidArgument) << result.message;
    EXPECT_FALSE(std::filesystem::exists(scratch / "weights"));
  }
}

TEST(NameRule, MetadataHasNamesAndAnyValues) {
  const test::Scratch scratch;
  test::Rig rig;
  const auto with = [&](const std::string& key, const std::string& value) {
    return test::failure([&] { save(*rig.stepper, scratch / "saved", {{{key, value}}, {}}); }).code;
  };
  EXPECT_EQ(with("\xff", "x"), Code::kInvalidArgument);
  EXPECT_EQ(with("", "x"), Code::kInvalidArgument);
  EXPECT_EQ(with(std::string(kMaxNameBytes + 1, 'k'), "x"), Code::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(scratch / "saved"));
  EXPECT_EQ(with(std::string(kMaxNameBytes, 'k'), "\xff\x01 text"), Code::kOk);
  EXPECT_NE(inspect(scratch / "saved").find("\xef\xbf\xbd\\u0001 text"), std::string::npos);
}

}  // namespace
}  // namespace cairn::io
