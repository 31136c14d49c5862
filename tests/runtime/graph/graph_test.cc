#include "runtime/graph/graph.h"

#include "tests/support/seeds.h"

namespace cairn::graph {
namespace {

TensorDesc f32(std::initializer_list<int64_t> dims) { return {DType::kF32, Shape(dims)}; }

// Runs `body`, which must fail with `code`; returns the message.
template <class Body>
std::string message_of(Code code, const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

void expect_words(const std::string& text, std::vector<std::string> words) {
  for (const std::string& word : words)
    EXPECT_NE(text.find(word), std::string::npos) << "'" << word << "' in: " << text;
}

TEST(Graph, WrongShapeIsAnErrorWhenTheNodeIsAdded) {
  Graph g;
  const ValueId x = g.input("x", f32({4, 8}));
  const ValueId w = g.parameter("w", f32({10, 7}), {});
  const size_t before = g.values().size();
  expect_words(message_of(Code::kInvalidArgument,
                          [&] {
                            g.op("linear", {x, w});
                          }),
               {"linear", "w", "[10, 7]", "[4, 8]"});
  EXPECT_EQ(g.values().size(), before);
  EXPECT_TRUE(g.ops().empty());
}

TEST(Graph, UnknownOpAndAttribute) {
  Graph g;
  const ValueId x = g.input("x", f32({4, 8}));
  expect_words(message_of(Code::kNotFound, [&] { g.op("gelux", {x}); }),
               {"gelux", "did you mean 'gelu'", "known:", "linear_cross_entropy"});
  const std::string far = message_of(Code::kNotFound, [&] { g.op("convolution_3d", {x}); });
  EXPECT_EQ(far.find("did you mean"), far.npos) << far;
  EXPECT_EQ(far.find("gelu_grad"), far.npos) << far;  // internal
  expect_words(message_of(Code::kNotFound, [&] { g.op("gelu_grad", {x, x}); }), {"gelu_grad"});
  expect_words(message_of(Code::kInvalidArgument,
                          [&] {
                            g.op("gelu", {x}, {{"colour", std::string("red")}});
                          }),
               {"gelu", "colour", "approximate"});
  expect_words(message_of(Code::kInvalidArgument, [&] { g.op("dropout", {x}); }), {"dropout", "rate"});
  expect_words(message_of(Code::kInvalidArgument,
                          [&] {
                            g.op("dropout", {x}, {{"rate", 0.1}, {"rng", int64_t{1}}});
                          }),
               {"rng"});
  expect_words(message_of(Code::kInvalidArgument, [&] { g.op("gelu", {}); }), {"gelu", "x", "missing"});
  expect_words(message_of(Code::kInvalidArgument, [&] { g.op("gelu", {99}); }), {"gelu", "x"});
}

TEST(Graph, NoMoreRegionsAndValuesThanFilesHold) {
  Graph g;
  for (size_t i = 0; i < kMaxRegions; ++i)
    g.region_end(g.region_begin(std::to_string(i), Policy::kPlannerDecides));
  expect_words(message_of(Code::kInvalidArgument, [&] { g.region_begin("last", Policy::kPlannerDecides); }),
               {"last", "20000"});
  // With sanitizers so many take half a minute; it is one more check of a size.
  if (support::stride(2) > 1) return;
  for (size_t i = 0; i < kMaxValues; ++i) g.input(std::to_string(i), f32({1}));
  expect_words(message_of(Code::kInvalidArgument, [&] { g.input("last", f32({1})); }),
               {"last", std::to_string(kMaxValues)});
  expect_words(message_of(Code::kInvalidArgument, [&] { g.op("gelu", {0}); }), {"gelu", "values"});
}

TEST(Graph, NamesAreUnique) {
  Graph g;
  g.input("x", f32({1}));
  expect_words(message_of(Code::kInvalidArgument, [&] { g.parameter("x", f32({2}), {}); }), {"x", "exists"});
  message_of(Code::kInvalidArgument, [&] { g.input("", f32({1})); });
  const ValueId y = g.op("relu", {0})[0];
  g.name_value(y, "y");
  EXPECT_EQ(g.find("y"), y);
  EXPECT_EQ(g.find("nothing"), kNone);
  message_of(Code::kInvalidArgument, [&] { g.name_value(y, "x"); });
  EXPECT_EQ(g.values()[y].name, "y");
}

TEST(Graph, RegionsNestToDepthEight) {
  Graph g;
  std::vector<RegionId> open;
  for (int i = 0; i < kMaxRegionDepth; ++i)
    open.push_back(g.region_begin("r" + std::to_string(i), Policy::kPlannerDecides));
  EXPECT_EQ(g.regions()[open[1]].name, "r0/r1");
  expect_words(message_of(Code::kInvalidArgument, [&] { g.region_begin("deep", Policy::kKeep); }),
               {"deep", "8"});
  expect_words(message_of(Code::kWrongState, [&] { g.region_end(open[2]); }), {"r2", "innermost", "r7"});
  for (size_t i = open.size(); i-- > 0;) g.region_end(open[i]);
  message_of(Code::kWrongState, [&] { g.region_end(open[0]); });
  message_of(Code::kInvalidArgument, [&] { g.region_begin("r0", Policy::kKeep); });
}

TEST(Graph, FreezeChecks) {
  Graph g;
  const ValueId x = g.input("x", f32({4, 8})), t = g.input("t", f32({4, 8}));
  const auto loss = g.op("mse", {x, t});
  message_of(Code::kInvalidArgument, [&] { g.freeze(kNone, kNone, {}); });
  expect_words(message_of(Code::kInvalidArgument, [&] { g.freeze(x, kNone, {}); }),
               {"loss", "x", "one real number"});
  expect_words(message_of(Code::kInvalidArgument, [&] { g.freeze(loss[0], kNone, {}); }),
               {"no trainable parameter"});
  const RegionId region = g.region_begin("open", Policy::kKeep);
  expect_words(message_of(Code::kWrongState, [&] { g.freeze(kNone, kNone, {loss[0]}); }),
               {"open", "not ended"});
  g.region_end(region);
  g.freeze(kNone, kNone, {loss[0]});
  EXPECT_TRUE(g.frozen());
  EXPECT_FALSE(g.trains());
  message_of(Code::kWrongState, [&] { g.input("late", f32({1})); });
}

TEST(Graph, RegionWithoutGradientPathIsReported) {
  Graph g;
  const ValueId x = g.input("x", f32({4, 8})), t = g.input("t", f32({4, 8}));
  const ValueId w = g.parameter("w", f32({8, 8}), {}), unused = g.parameter("unused", f32({8}), {});
  (void)unused;
  const RegionId pre = g.region_begin("preprocess", Policy::kRecompute);
  const ValueId scaled = g.op("scale", {x}, {{"factor", 2.0}})[0];
  g.region_end(pre);
  const RegionId body = g.region_begin("body", Policy::kRecompute);
  const ValueId y = g.op("linear", {scaled, w})[0];
  g.region_end(body);
  const auto loss = g.op("mse", {y, t});
  g.freeze(loss[0], kNone, {});
  ASSERT_EQ(g.notes().size(), 2u);
  expect_words(g.notes()[0], {"unused", "no gradient"});
  expect_words(g.notes()[1], {"preprocess", "no gradient path"});
  EXPECT_EQ(g.weight(), loss[1]);
}

TEST(Graph, DigestTellsStructureButNotPolicy) {
  auto build = [](Policy policy, double factor) {
    Graph g;
    const ValueId x = g.input("x", f32({4, 8}));
    const RegionId r = g.region_begin("r", policy);
    const ValueId y = g.op("scale", {x}, {{"factor", factor}})[0];
    g.region_end(r);
    g.freeze(kNone, kNone, {y});
    return g.digest();
  };
  EXPECT_EQ(build(Policy::kKeep, 2), build(Policy::kRecompute, 2));
  EXPECT_NE(build(Policy::kKeep, 2), build(Policy::kKeep, 3));
}

TEST(Graph, CustomOpsAreChecked) {
  Graph g;
  const ValueId x = g.input("x", f32({4, 8}));
  CustomOp op;
  op.name = "twice";
  op.inputs = op.outputs = 1;
  message_of(Code::kInvalidArgument, [&] { g.custom(op); });
  op.forward = [](auto, auto, void*) { return true; };
  op.shape = [](std::span<const TensorDesc> in, std::span<TensorDesc> out) {
    out[0] = in[0];
    return in[0].shape.rank == 2;
  };
  g.custom(op);
  message_of(Code::kInvalidArgument, [&] { g.custom(op); });
  EXPECT_EQ(g.values()[g.op("twice", {x})[0]].desc, f32({4, 8}));
  const ValueId flat = g.op("reshape", {x}, {{"shape", std::vector<int64_t>{32}}})[0];
  expect_words(message_of(Code::kInvalidArgument, [&] { g.op("twice", {flat}); }), {"twice", "refused"});
  message_of(Code::kInvalidArgument, [&] { g.op("twice", {x, x}); });
  op.name = "gelu";
  message_of(Code::kInvalidArgument, [&] { g.custom(op); });
  op.name = "thrice";
  g.custom(op);
  expect_words(
      message_of(Code::kNotFound, [&] { g.op("twise", {x}); }),
      {"unknown op 'twise'; did you mean 'twice'?", " gelu ", "; of this graph's own: twice thrice)"});
  expect_words(message_of(Code::kNotFound, [&] { g.op("custom", {x}); }),
               {"unknown op 'custom'", "twice thrice)"});
  Graph other;
  const ValueId there = other.input("x", f32({4}));
  EXPECT_EQ(message_of(Code::kNotFound, [&] { other.op("twise", {there}); }).find("graph's own"),
            std::string::npos);
}

}  // namespace
}  // namespace cairn::graph
