#include "runtime/compile/regions/region_policies.h"

#include <cmath>

#include "runtime/report/baselines.h"
#include "tests/runtime/compile/support.h"
#include "tests/support/seeds.h"

namespace cairn::engine {
namespace {

std::shared_ptr<device::Device> reference() { return device::open("reference", {.threads = 1}); }

// Regions by path; an op in each, so that the graph is one.
struct Tree {
  struct Node {
    const char* name;
    Policy policy = Policy::kPlannerDecides;
    std::string tier = {};
    std::vector<Node> inside = {};
  };
  explicit Tree(const std::vector<Node>& nodes) {
    x = graph.input("x", {DType::kF32, {4, 4}});
    add(nodes);
  }
  void add(const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      const graph::RegionId region = graph.region_begin(node.name, node.policy, node.tier);
      x = graph.op("gelu", {x})[0];
      add(node.inside);
      graph.region_end(region);
    }
  }
  std::map<std::string, Policy> policies(const PlanOptions& options) const {
    std::map<std::string, Policy> found;
    const std::vector<RegionRule> rules = region_rules(graph, options);
    for (size_t i = 0; i < rules.size(); ++i) found[graph.regions()[i].name] = rules[i].policy;
    return found;
  }
  graph::Graph graph;
  ValueId x = 0;
};

Tree blocks() {
  return Tree({{"h0", Policy::kKeep, {}, {{"attn"}, {"mlp", Policy::kOffload, "disk", {{"up"}}}}},
               {"h1", Policy::kPlannerDecides, {}, {{"attn"}, {"mlp"}}}});
}

TEST(RegionPolicies, ThePlansPolicyIsForWhatNoExplicitPolicyIsAround) {
  PlanOptions options;
  options.policy = Policy::kRecompute;
  const auto found = blocks().policies(options);
  EXPECT_EQ(found.at("h0"), Policy::kKeep);
  EXPECT_EQ(found.at("h0/attn"), Policy::kPlannerDecides) << "the region around it keeps";
  EXPECT_EQ(found.at("h0/mlp"), Policy::kOffload);
  EXPECT_EQ(found.at("h0/mlp/up"), Policy::kPlannerDecides);
  for (const char* name : {"h1", "h1/attn", "h1/mlp"}) EXPECT_EQ(found.at(name), Policy::kRecompute) << name;
}

TEST(RegionPolicies, ARowBeatsTheGraphsOwnPolicyAndTheLastRowCounts) {
  PlanOptions options;
  options.policy = Policy::kOffload;
  options.region_policies = {
      {"h*", Policy::kRecompute}, {"h*/attn", Policy::kKeep}, {"h0/*", Policy::kRecompute}};
  const auto found = blocks().policies(options);
  EXPECT_EQ(found.at("h0"), Policy::kRecompute);
  EXPECT_EQ(found.at("h0/attn"), Policy::kRecompute) << "the last row that matches";
  EXPECT_EQ(found.at("h0/mlp"), Policy::kRecompute);
  EXPECT_EQ(found.at("h0/mlp/up"), Policy::kPlannerDecides);
  EXPECT_EQ(found.at("h1"), Policy::kRecompute);
  EXPECT_EQ(found.at("h1/attn"), Policy::kKeep);
  EXPECT_EQ(found.at("h1/mlp"), Policy::kPlannerDecides);
}

TEST(RegionPolicies, TiersOfRowsAndOfTheGraph) {
  PlanOptions options;
  options.region_policies = {{"h1", Policy::kOffload, Tier::kDisk}, {"h1/*", Policy::kOffload}};
  const std::vector<RegionRule> rules = region_rules(blocks().graph, options);
  ASSERT_EQ(rules.size(), 7u);
  EXPECT_EQ(rules[0].tier, std::nullopt);
  EXPECT_EQ(rules[2].tier, Tier::kDisk) << "h0/mlp: the graph's";
  EXPECT_EQ(rules[4].tier, Tier::kDisk) << "h1";
  EXPECT_EQ(rules[5].tier, std::nullopt) << "h1/attn: the plan's first";
  EXPECT_EQ(rules[5].by, RegionRule::By::kRow);
  Tree tree({{"a", Policy::kOffload, "tape"}});
  EXPECT_THROW(region_rules(tree.graph, {}), Error);
}

std::pair<Code, std::string> refusal(const PlanOptions& options) {
  const Tree tree = blocks();
  const graph::Graph* graph = &tree.graph;
  try {
    resolved_region_policies({&graph, 1}, options);
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {Code::kOk, ""};
}

TEST(RegionPolicies, RefusalsSayWhatIsWanted) {
  const struct {
    RegionPolicy row;
    std::vector<Tier> tiers;
    Code code;
    std::vector<std::string> says;
  } rows[] = {
      {{"h*/attn", Policy::kKeep}, {}, Code::kOk, {}},
      {{"h0", Policy::kOffload, Tier::kDisk}, {}, Code::kOk, {}},
      {{"h0", Policy::kOffload, Tier::kDisk}, {Tier::kHost, Tier::kDisk}, Code::kOk, {}},
      {{"h*/atn", Policy::kKeep}, {}, Code::kNotFound, {"'h*/atn'", "'h0/attn', 'h1/attn'", "nearest of 7"}},
      {{"h?attn", Policy::kKeep}, {}, Code::kNotFound, {"'h?attn'", "'h0/attn'", "'*' ends at a '/'"}},
      {{"", Policy::kKeep}, {}, Code::kInvalidArgument, {"empty pattern"}},
      {{"h\xff", Policy::kKeep}, {}, Code::kInvalidArgument, {"UTF-8"}},
      {{std::string(5000, 'h'), Policy::kKeep}, {}, Code::kInvalidArgument, {"5000 bytes", "4096"}},
      {{"h0", Policy::kPlannerDecides}, {}, Code::kInvalidArgument, {"'h0'", "policy 0", "RECOMPUTE"}},
      {{"h0", static_cast<Policy>(9)}, {}, Code::kInvalidArgument, {"'h0'", "policy 9"}},
      {{"h0", Policy::kKeep, Tier::kHost}, {}, Code::kInvalidArgument, {"'h0'", "host", "OFFLOAD only"}},
      {{"h0", Policy::kOffload, Tier::kDevice},
       {},
       Code::kInvalidArgument,
       {"'h0'", "'device'", "host or disk"}},
      {{"h0", Policy::kOffload, Tier::kDisk},
       {Tier::kHost},
       Code::kInvalidArgument,
       {"'h0'", "disk tier, which is not open", "the tiers are host", "add disk"}},
  };
  for (const auto& row : rows) {
    PlanOptions options;
    options.tiers = row.tiers;
    options.region_policies = {row.row};
    const auto [code, message] = refusal(options);
    EXPECT_EQ(code, row.code) << message;
    for (const std::string& text : row.says) EXPECT_NE(message.find(text), std::string::npos) << message;
  }
}

// Blocks in segments have a name more before theirs.
TEST(RegionPolicies, APatternOfNoWholePathIsOfTheEndsOfPaths) {
  const Tree plain({{"h0", Policy::kPlannerDecides, {}, {{"attn"}}}, {"attn"}});
  const Tree segments({{"s0", Policy::kRecompute, {}, {{"h0", Policy::kPlannerDecides, {}, {{"attn"}}}}}});
  const graph::Graph* both[] = {&plain.graph, &segments.graph};
  PlanOptions options;
  options.region_policies = {{"h*/attn", Policy::kKeep}, {"attn", Policy::kOffload}};
  const auto patterns = [&](std::span<const graph::Graph* const> graphs) {
    std::vector<std::string> list;
    for (const RegionPolicy& row : resolved_region_policies(graphs, options)) list.push_back(row.pattern);
    return list;
  };
  EXPECT_EQ(patterns({both, 1}), (std::vector<std::string>{"h*/attn", "attn"}));
  EXPECT_EQ(patterns({both + 1, 1}), (std::vector<std::string>{"**/h*/attn", "**/attn"}));
  EXPECT_EQ(patterns(both), (std::vector<std::string>{"h*/attn", "attn"}))
      << "the same for all programs of a set";
  options.region_policies = resolved_region_policies({both + 1, 1}, options);
  EXPECT_EQ(segments.policies(options).at("s0/h0/attn"), Policy::kOffload);
  EXPECT_EQ(segments.policies(options).at("s0"), Policy::kRecompute);
}

TEST(RegionPolicies, WithoutRegionsNoPatternMatches) {
  const auto device = reference();
  PlanOptions options;
  options.region_policies = {{"**", Policy::kKeep}};
  try {
    compile(mlp(2, false), *device, options);
    FAIL() << "a pattern without regions";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kNotFound);
    EXPECT_NE(std::string(error.what()).find("no regions"), std::string::npos) << error.what();
  }
}

// What is recomputed of each region, by path, in bytes.
std::map<std::string, int64_t> recomputed(const CompiledPlan& c) {
  std::map<std::string, int64_t> bytes;
  for (const plan::Op& op : c.problem.ops)
    for (const int32_t v : op.outputs)
      if (c.plan.values[static_cast<size_t>(v)].decision == plan::Decision::kRecompute && op.region >= 0)
        bytes[c.problem.regions[static_cast<size_t>(op.region)].name] +=
            c.problem.values[static_cast<size_t>(v)].bytes;
  return bytes;
}

TEST(RegionPolicies, PlansObeyRows) {
  const auto device = reference();
  PlanOptions options;
  options.region_policies = {{"h*", Policy::kRecompute}, {"h1/**", Policy::kKeep}};
  const auto some = recomputed(*compile(transformer(3), *device, options));
  EXPECT_TRUE(some.contains("h0/attn") && some.contains("h0/mlp") && some.contains("h2/attn"));
  EXPECT_FALSE(some.contains("h1/attn") || some.contains("h1/mlp"));
  options.region_policies = {{"h1/**", Policy::kKeep}};
  options.policy = Policy::kRecompute;
  const auto rest = recomputed(*compile(transformer(3), *device, options));
  EXPECT_TRUE(rest.contains("h0/attn"));
  EXPECT_FALSE(rest.contains("h1/attn") || rest.contains("h1/mlp"));
  options = {};
  options.region_policies = {{"h1/attn", Policy::kOffload, Tier::kDisk},
                             {"h0", Policy::kOffload, Tier::kHost}};
  const auto away = compile(transformer(3), *device, options);
  ASSERT_EQ(away->link_tier, (std::vector<Tier>{Tier::kHost, Tier::kDisk}));
  EXPECT_GT(away->plan.totals.offload_bytes[0], 0);
  EXPECT_GT(away->plan.totals.offload_bytes[1], 0);
  for (const plan::Op& op : away->problem.ops)
    for (const int32_t v : op.outputs) {
      const plan::ValuePlan& value = away->plan.values[static_cast<size_t>(v)];
      if (value.decision != plan::Decision::kOffload) continue;
      const std::string& region = away->problem.regions[static_cast<size_t>(op.region)].name;
      EXPECT_EQ(region.starts_with("h0"), value.tier == 0) << region;
      EXPECT_EQ(region == "h1/attn", value.tier == 1) << region;
    }
}

// Segments of a model are regions, and those of the report's baselines are, too: the same bytes and seconds.
TEST(RegionPolicies, SegmentsByHandAreWhatTheReportPrices) {
  const auto device = reference();
  const auto same = [](const CompiledPlan& c, const plan::Baseline& by_hand) {
    EXPECT_EQ(c.plan.arena_bytes, by_hand.arena_bytes) << by_hand.words;
    EXPECT_EQ(c.plan.device_peak_bytes, by_hand.peak_bytes) << by_hand.words;
    EXPECT_EQ(c.plan.predicted_seconds, by_hand.seconds) << by_hand.words;
  };
  for (const graph::AmpMode amp : {graph::AmpMode::kOff, graph::AmpMode::kBf16})
    for (const int layers : support::cases({1, 2, 4, 9, 10, 13}, 3)) {
      PlanOptions options;
      options.amp = amp;
      const auto whole = compile(transformer(layers), *device, options);
      const auto rows = plan::baselines(whole->problem, whole->other_form.get());
      const int size = std::max(1, static_cast<int>(std::lround(std::sqrt(layers))));
      same(*compile(transformer(layers), *device, options), rows[0]);
      if (layers == 1) continue;  // one region around everything: its parts are the layers
      same(*compile(transformer(layers, 1), *device, options), rows[1]);
      same(*compile(transformer(layers, size), *device, options), rows[2]);
      options.region_policies = {{"h*", Policy::kRecompute}};
      same(*compile(transformer(layers), *device, options), rows[1]);
    }
}

}  // namespace
}  // namespace cairn::engine
