#include <set>

#include "runtime/graph/joint.h"

namespace cairn::graph {
namespace {

using ops::OpCode;

TensorDesc f32(std::initializer_list<int64_t> dims) { return {DType::kF32, Shape(dims)}; }

// tokens -> tied embedding -> linear -> gelu -> + -> fused loss with the same table.
std::shared_ptr<Graph> tied_model(bool frozen_table = false) {
  auto g = std::make_shared<Graph>();
  const ValueId tokens = g->input("tokens", {DType::kI32, {2, 3}}),
                targets = g->input("targets", {DType::kI32, {2, 3}});
  ParameterOptions table_options;
  table_options.frozen = frozen_table;
  const ValueId table = g->parameter("table", f32({16, 8}), table_options);
  const ValueId w = g->parameter("w", f32({8, 8}), {}), b = g->parameter("b", f32({8}), {});
  const ValueId x = g->op("embedding", {table, tokens})[0];
  const ValueId h = g->op("gelu", {g->op("linear", {x, w, b})[0]})[0];
  const ValueId y = g->op("add", {x, h})[0];
  const auto loss = g->op("linear_cross_entropy", {y, table, targets});
  g->freeze(loss[0], kNone, {});
  return g;
}

// Structure every joint graph must have: values made before they are read, accumulators overwritten exactly
// once.
void check_order(const JointGraph& joint) {
  std::set<int32_t> ready, first;
  for (size_t v = 0; v < joint.values.size(); ++v)
    if (kind(joint.values[v].role).is(PERSISTS) && joint.values[v].role != Role::kOutput)
      ready.insert(static_cast<int32_t>(v));
  auto is_ready = [&](int32_t v) { return ready.contains(v) || ready.contains(joint.storage(v)); };
  for (size_t i = 0; i < joint.ops().size(); ++i) {
    const JointOp& op = joint.ops()[i];
    EXPECT_EQ(op.backward, static_cast<int32_t>(i) >= joint.backward_begin);
    for (int32_t v : op.in)
      if (v >= 0) EXPECT_TRUE(is_ready(v)) << op.name << " reads " << joint.values[v].name;
    for (size_t k = 0; k < op.out.size(); ++k) {
      if (op.out[k] < 0) continue;
      const bool accumulator = joint.values[op.out[k]].role == Role::kGradient;
      EXPECT_EQ(accumulator, static_cast<bool>(op.accumulates >> k & 1u)) << op.name;
      if (op.first_writer >> k & 1u) EXPECT_TRUE(first.insert(op.out[k]).second) << op.name;
      if (accumulator) EXPECT_TRUE(first.contains(op.out[k])) << op.name << " adds before the first write";
      ready.insert(op.out[k]);
    }
  }
  for (const ParameterSlot& slot : joint.parameters)
    if (slot.gradient >= 0) EXPECT_TRUE(first.contains(slot.gradient));
}

const JointOp* find(const JointGraph& joint, OpCode code) {
  for (const JointOp& op : joint.ops())
    if (op.code == code) return &op;
  return nullptr;
}

TEST(Derive, FusedLossReplacesItsForwardOp) {
  const auto joint = derive(tied_model(), {});
  check_order(*joint);
  EXPECT_EQ(find(*joint, OpCode::k_linear_cross_entropy), nullptr);
  ASSERT_NE(find(*joint, OpCode::k_linear_cross_entropy_grad), nullptr);
  EXPECT_EQ(joint->ops()[joint->backward_begin].code, OpCode::k_linear_cross_entropy_grad);
  EXPECT_EQ(joint->values[joint->loss].desc.dtype, DType::kF64);
  EXPECT_EQ(joint->values[joint->loss].role, Role::kOutput);
  EXPECT_GE(joint->weight, 0);
}

TEST(Derive, TiedParameterHasOneAccumulatorWithTwoWriters) {
  const auto joint = derive(tied_model(), {});
  const int32_t g = joint->find("table/gradient");
  ASSERT_GE(g, 0);
  int writers = 0, first = 0;
  for (const JointOp& op : joint->ops())
    for (size_t k = 0; k < op.out.size(); ++k)
      if (op.out[k] == g) {
        ++writers;
        first += op.first_writer >> k & 1u;
      }
  EXPECT_EQ(writers, 2);
  EXPECT_EQ(first, 1);
  EXPECT_EQ(joint->find("table/gradient.2"), -1);
}

TEST(Derive, FrozenParameterHasNoGradientAndNoMoments) {
  const auto joint = derive(tied_model(true), {});
  check_order(*joint);
  EXPECT_EQ(joint->find("table/gradient"), -1);
  EXPECT_EQ(joint->find("table/m"), -1);
  EXPECT_GE(joint->find("w/gradient"), 0);
  EXPECT_GE(joint->find("w/m"), 0);
  EXPECT_EQ(find(*joint, OpCode::k_embedding_grad), nullptr);
}

TEST(Derive, NoOptimizerNoMoments) {
  JointOptions options;
  options.optimizer.name = "";
  const auto joint = derive(tied_model(), options);
  EXPECT_EQ(joint->find("w/m"), -1);
  EXPECT_FALSE(joint->has_optimizer());
  EXPECT_TRUE(joint->ops(kUpdate).empty());
}

TEST(Derive, Bf16ActivationsFloat32Parameters) {
  JointOptions options;
  options.amp = AmpMode::kBf16;
  const auto joint = derive(tied_model(), options);
  check_order(*joint);
  for (const JointValue& v : joint->values) {
    if (v.role == Role::kParameter || v.role == Role::kGradient || v.role == Role::kOptimizer)
      EXPECT_EQ(v.desc.dtype, DType::kF32) << v.name;
    if (v.role == Role::kActivation && v.desc.shape.rank == 3)
      EXPECT_EQ(v.desc.dtype, DType::kBF16) << v.name;
  }
}

TEST(Derive, Fp16HasALossScaleThatTheLossReads) {
  JointOptions options;
  options.amp = AmpMode::kFp16;
  options.optimizer.name = "adamw";
  const auto joint = derive(tied_model(), options);
  check_order(*joint);
  ASSERT_GE(joint->loss_scale, 0);
  EXPECT_EQ(joint->values[static_cast<size_t>(joint->loss_scale)].role, Role::kScratch);
  const JointOp& first = joint->ops()[static_cast<size_t>(joint->backward_begin)];
  EXPECT_EQ(first.in.back(), joint->loss_scale) << first.name;
  for (const JointValue& v : joint->values) {
    EXPECT_NE(v.desc.dtype, DType::kBF16) << v.name;
    if (v.role == Role::kActivation && v.desc.shape.rank == 3) EXPECT_EQ(v.desc.dtype, DType::kF16) << v.name;
  }
  options.amp = AmpMode::kBf16;
  EXPECT_EQ(derive(tied_model(), options)->loss_scale, -1);
}

TEST(Derive, Fp16GoesWithAStepperOnly) {
  const auto refused = [](const JointOptions& options) {
    try {
      derive(tied_model(), options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kUnsupported);
      return std::string(error.what());
    }
    return std::string();
  };
  JointOptions options;
  options.amp = AmpMode::kFp16;
  options.optimizer.name = "";
  EXPECT_NE(refused(options).find("fp16"), std::string::npos);
  options.optimizer.name = "adamw";
  options.fuse_update = true;
  EXPECT_NE(refused(options).find("fused"), std::string::npos);
}

// Hits are made beside the loss, by the op that takes its place; no gradient flows through them.
TEST(Derive, AccuracyIsAnOutputBesideTheLoss) {
  auto g = std::make_shared<Graph>();
  const ValueId x = g->input("x", f32({6, 8})), targets = g->input("targets", {DType::kI32, {6}});
  const ValueId w = g->parameter("w", f32({8, 8}), {}), head = g->parameter("head", f32({5, 8}), {});
  const ValueId h = g->op("linear", {x, w})[0];
  const auto fused = g->op("linear_cross_entropy", {h, head, targets}, {{"accuracy", int64_t{1}}});
  const auto plain = g->op("accuracy", {g->op("linear", {h, head})[0], targets});
  ASSERT_EQ(fused.size(), 4u);
  g->freeze(fused[0], kNone, {fused[2], fused[3], plain[0], plain[1]});
  const auto joint = derive(g, {});
  check_order(*joint);
  const JointOp* loss = find(*joint, OpCode::k_linear_cross_entropy_grad);
  ASSERT_NE(loss, nullptr);
  EXPECT_EQ(find(*joint, OpCode::k_linear_cross_entropy), nullptr);
  for (const int i : {4, 5}) {
    EXPECT_GE(loss->out[static_cast<size_t>(i)], 0);
    EXPECT_EQ(joint->values[static_cast<size_t>(loss->out[static_cast<size_t>(i)])].role, Role::kOutput);
  }
  EXPECT_FALSE(find(*joint, OpCode::k_accuracy)->backward);
}

TEST(Derive, ALossThatReadsHitsIsRefused) {
  const auto message = [](bool fused) {
    auto g = std::make_shared<Graph>();
    const ValueId x = g->input("x", f32({6, 8})), targets = g->input("targets", {DType::kI32, {6}});
    const ValueId w = g->parameter("w", f32({5, 8}), {});
    const ValueId hits = fused ? g->op("linear_cross_entropy", {x, w, targets}, {{"accuracy", int64_t{1}}})[2]
                               : g->op("accuracy", {g->op("linear", {x, w})[0], targets})[0];
    g->freeze(g->op("scale", {hits}, {{"factor", -1.0}})[0], kNone, {});
    try {
      derive(g, {});
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kUnsupported);
      return std::string(e.what());
    }
    return std::string("none");
  };
  EXPECT_NE(message(false).find("op 'accuracy' (accuracy_1) has no gradient"), std::string::npos)
      << message(false);
  EXPECT_NE(message(true).find("linear_cross_entropy"), std::string::npos) << message(true);
}

TEST(Derive, ASumOfLossesIsRefusedWithARemedy) {
  auto g = std::make_shared<Graph>();
  const ValueId x = g->input("x", f32({6, 8})), targets = g->input("targets", {DType::kI32, {6}});
  const ValueId logits = g->op("linear", {x, g->parameter("w", f32({5, 8}), {})})[0];
  const ValueId one = g->op("cross_entropy", {logits, targets})[0];
  g->freeze(g->op("add", {one, g->op("cross_entropy", {logits, targets})[0]})[0], kNone, {});
  try {
    derive(g, {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("join the operands with concat"), std::string::npos) << e.what();
  }
}

TEST(Derive, PacksReplaceWeights) {
  JointOptions options;
  options.amp = AmpMode::kBf16;
  options.packed_bytes = [](const TensorDesc& w, std::string_view use, int64_t, DType, int) {
    return use == "any" ? 0 : 2 * w.shape.elements() + 64;
  };
  const auto joint = derive(tied_model(), options);
  check_order(*joint);
  const JointOp* linear = find(*joint, OpCode::k_linear);
  ASSERT_NE(linear, nullptr);
  EXPECT_EQ(joint->values[linear->in[1]].role, Role::kPacked);
  EXPECT_EQ(joint->values[linear->in[1]].desc.bytes(), 2 * 64 + 64);
  const JointOp* loss = find(*joint, OpCode::k_linear_cross_entropy_grad);
  EXPECT_EQ(joint->values[loss->in[1]].role, Role::kPacked);
  EXPECT_EQ(joint->values[loss->in[4]].role, Role::kPacked);
  EXPECT_NE(loss->in[1], loss->in[4]);
  EXPECT_EQ(joint->ops(kRepack).size(), 4u);  // w and table, each for both uses
}

TEST(Derive, OnePackServesAllUsesWhereTheBackendSaysSo) {
  JointOptions options;
  options.amp = AmpMode::kBf16;
  options.one_packed_form = true;
  options.packed_bytes = [](const TensorDesc& w, std::string_view, int64_t, DType, int) {
    return 2 * w.shape.elements();
  };
  const auto joint = derive(tied_model(), options);
  check_order(*joint);
  EXPECT_EQ(joint->ops(kRepack).size(), 2u);  // w and table
  const JointOp* loss = find(*joint, OpCode::k_linear_cross_entropy_grad);
  EXPECT_EQ(joint->values[loss->in[1]].role, Role::kPacked);
  EXPECT_EQ(loss->in[1], loss->in[4]);
  EXPECT_EQ(find(*joint, OpCode::k_linear)->in[1], find(*joint, OpCode::k_linear_grad_input)->in[1]);

  options.not_kept = {{joint->values[joint->ops(kRepack)[0].in[0]].name, "forward"},
                      {joint->values[joint->ops(kRepack)[1].in[0]].name, "forward"}};
  const auto plain = derive(tied_model(), options);
  EXPECT_TRUE(plain->ops(kRepack).empty());
  EXPECT_EQ(plain->not_kept.size(), 2u);
}

TEST(Derive, PacksMayBeLeftOut) {
  JointOptions options;
  options.amp = AmpMode::kBf16;
  options.packed_bytes = [](const TensorDesc& w, std::string_view use, int64_t, DType, int) {
    return use == "any" ? 0 : 2 * w.shape.elements() + 64;
  };
  const auto all = derive(tied_model(), options);
  const JointOp* pack = nullptr;
  for (const JointOp& op : all->ops(kRepack))
    if (op.attrs.word("use") == "forward" &&
        all->values[op.out[0]].name == all->values[find(*all, OpCode::k_linear)->in[1]].name)
      pack = &op;
  ASSERT_NE(pack, nullptr);
  const std::string weight = all->values[pack->in[0]].name;
  options.not_kept = {{weight, "forward"}};
  const auto joint = derive(tied_model(), options);
  check_order(*joint);
  EXPECT_EQ(joint->ops(kRepack).size(), all->ops(kRepack).size() - 1);
  const JointOp* linear = find(*joint, OpCode::k_linear);
  EXPECT_EQ(joint->values[linear->in[1]].role, Role::kParameter);
  ASSERT_EQ(joint->not_kept.size(), 1u);
  EXPECT_EQ(joint->not_kept[0].made.bytes(), 2 * 64 + 64);
  EXPECT_EQ(joint->values[joint->not_kept[0].node.in[0]].name, weight);
  ASSERT_EQ(joint->plain_uses.size(), 1u);
  EXPECT_EQ(&joint->ops()[joint->plain_uses[0].op], linear);
  EXPECT_EQ(joint->plain_uses[0].operand, 1);
  EXPECT_EQ(joint->owned(joint->find(weight), Role::kPacked).size(), 1u);

  // The loss's gradient takes the weight for its first product packed only beside the pack of its second.
  const JointOp* fused = find(*all, OpCode::k_linear_cross_entropy_grad);
  std::string table;
  for (const JointOp& op : all->ops(kRepack))
    if (op.out[0] == fused->in[4]) table = all->values[op.in[0]].name;
  options.not_kept = {{table, "input_grad"}};
  const auto plain = derive(tied_model(), options);
  const JointOp* loss = find(*plain, OpCode::k_linear_cross_entropy_grad);
  EXPECT_EQ(loss->in[4], -1);
  EXPECT_EQ(plain->values[loss->in[1]].role, Role::kParameter);
  EXPECT_EQ(plain->plain_uses.size(), 2u);
}

TEST(Derive, SharedValueSumsGradientsInOrder) {
  auto g = std::make_shared<Graph>();
  const ValueId w = g->parameter("w", f32({4}), {});
  const ValueId a = g->op("scale", {w}, {{"factor", 2.0}})[0];
  const ValueId s1 = g->op("mul", {a, a})[0], s2 = g->op("relu", {a})[0];
  const ValueId loss = g->op("reduce_sum", {g->op("add", {s1, s2})[0]})[0];
  g->freeze(loss, kNone, {});
  const auto joint = derive(g, {});
  check_order(*joint);
  EXPECT_EQ(joint->weight, -1);
  EXPECT_NE(find(*joint, OpCode::k_fill), nullptr);  // the seed of a general loss
  int adds = 0;
  for (const JointOp& op : joint->ops()) adds += op.backward && op.code == OpCode::k_add;
  EXPECT_EQ(adds, 2);  // three readers of a
}

TEST(Derive, NothingMayFollowAFusedLoss) {
  auto g = std::make_shared<Graph>();
  const ValueId w = g->parameter("w", f32({4, 4}), {}), t = g->input("t", f32({4, 4}));
  const ValueId loss = g->op("mse", {w, t})[0];
  const ValueId scaled = g->op("scale", {loss}, {{"factor", 0.5}})[0];
  g->freeze(scaled, kNone, {});
  try {
    derive(g, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnsupported);
    EXPECT_NE(std::string(error.what()).find("mse"), std::string::npos);
  }
}

TEST(Derive, DeadOpsAreLeftOutAndOutputsStay) {
  auto g = std::make_shared<Graph>();
  const ValueId x = g->input("x", f32({2, 4}));
  const ValueId dead = g->op("relu", {x})[0];
  (void)dead;
  const ValueId y = g->op("scale", {x}, {{"factor", 3.0}})[0];
  const ValueId flat = g->op("reshape", {y}, {{"shape", std::vector<int64_t>{8}}})[0];
  g->name_value(flat, "flat");
  g->freeze(kNone, kNone, {flat});
  const auto joint = derive(g, {});
  EXPECT_EQ(find(*joint, OpCode::k_relu), nullptr);
  const int32_t out = joint->find("flat");
  EXPECT_EQ(joint->values[out].role, Role::kOutput);
  EXPECT_EQ(joint->values[joint->storage(out)].role, Role::kOutput);
  EXPECT_NE(joint->storage(out), out);
}

// An output that mixed precision makes in bf16 is kept in float32, under the name that the host knows.
TEST(Derive, OutputsKeepTheirNamesInMixedPrecision) {
  auto g = std::make_shared<Graph>();
  const ValueId x = g->input("x", {DType::kF32, {4, 8}}), w = g->parameter("w", {DType::kF32, {8, 8}}, {});
  const ValueId y = g->op("linear", {x, w})[0];
  g->name_value(y, "y");
  g->freeze(kNone, kNone, {y});
  const auto joint = derive(g, {.amp = AmpMode::kBf16});
  const int32_t found = joint->find("y");
  ASSERT_GE(found, 0);
  EXPECT_EQ(joint->values[found].role, Role::kOutput);
  EXPECT_EQ(joint->values[found].desc.dtype, DType::kF32);
}

// Generation looks rows of the last hidden state up, which mixed precision has made bf16.
TEST(Derive, ATableThatIsAnActivationIsLookedUpInMixedPrecision) {
  auto g = std::make_shared<Graph>();
  const ValueId x = g->input("x", {DType::kF32, {4, 8}}), w = g->parameter("w", {DType::kF32, {8, 8}}, {});
  const ValueId ids = g->input("ids", {DType::kI32, {2}});
  const ValueId rows = g->op("embedding", {g->op("linear", {x, w})[0], ids})[0];
  g->name_value(rows, "rows");
  g->freeze(kNone, kNone, {rows});
  const auto joint = derive(g, {.amp = AmpMode::kBf16});
  const JointOp* lookup = find(*joint, OpCode::k_embedding);
  ASSERT_NE(lookup, nullptr);
  EXPECT_EQ(joint->values[lookup->in[0]].desc.dtype, DType::kF32);
  check_order(*joint);
}

}  // namespace
}  // namespace cairn::graph
