// Small copies that start together are one instruction of the program.
#include <algorithm>

#include "tests/runtime/compile/support.h"

namespace cairn::engine {
namespace {

// `ways` values that one op makes, and that leave behind it.
std::shared_ptr<Graph> fan(int ways, int64_t width) {
  auto g = std::make_shared<Graph>();
  graph::CustomOp op;
  op.name = "fan";
  op.inputs = 1;
  op.outputs = ways;
  op.shape = [](std::span<const TensorDesc> in, std::span<TensorDesc> out) {
    std::fill(out.begin(), out.end(), in[0]);
    return true;
  };
  op.forward = [](std::span<const Tensor> in, std::span<const Tensor> out, void*) {
    for (size_t o = 0; o < out.size(); ++o)
      for (int64_t i = 0; i < in[0].desc.shape.elements(); ++i)
        out[o].as<float>()[i] = in[0].as<float>()[i] * static_cast<float>(o + 1);
    return true;
  };
  op.backward = [ways](std::span<const Tensor> in, std::span<const Tensor> out, void*) {
    const auto n = static_cast<size_t>(ways);  // x, ys, dys -> dx
    for (int64_t i = 0; i < out[0].desc.shape.elements(); ++i) {
      float sum = 0;
      for (size_t o = 0; o < n; ++o) sum += static_cast<float>(o + 1) * in[1 + n + o].as<float>()[i];
      out[0].as<float>()[i] = sum;
    }
    return true;
  };
  g->custom(op);
  const ValueId w = parameter(*g, "w", {width});
  ValueId x = g->op("mul", {g->input("x", {DType::kF32, {32, width}}), w})[0];
  const auto region = g->region_begin("fan", Policy::kOffload, "host");
  const auto ys = g->op("fan", {x});
  g->region_end(region);
  x = ys[0];
  for (size_t i = 1; i < ys.size(); ++i) x = g->op("add", {x, g->op("gelu", {ys[i]})[0]})[0];
  const auto loss = g->op("mse", {x, g->input("t", {DType::kF32, {32, width}})});
  g->freeze(loss[0], loss[1], {});
  return g;
}

struct Copies {
  int steps = 0, instructions = 0, jobs = 0;
  int64_t bytes = 0, most = 0;
};

Copies copies_of(const CompiledPlan& plan) {
  Copies found;
  for (const plan::Step& step : plan.plan.steps)
    found.steps += step.kind == plan::StepKind::kOut || step.kind == plan::StepKind::kIn;
  for (const Instruction& i : plan.program().code) {
    if (i.opcode != Opcode::kCopy) continue;
    const CopyJob* first = &plan.program().copies[static_cast<size_t>(i.a)];
    ++found.instructions;
    int64_t bytes = 0;
    for (int32_t k = 0; k < first->count; ++k) {
      EXPECT_EQ(first[k].to, first->to);
      EXPECT_EQ(first[k].from, first->from);
      bytes += first[k].bytes;
    }
    found.jobs += first->count;
    found.bytes += bytes;
    found.most = std::max(found.most, bytes);
  }
  EXPECT_EQ(static_cast<size_t>(found.jobs), plan.program().copies.size());
  return found;
}

// Two micro-batches, with the account of bytes checked.
Result run_checked(const std::shared_ptr<const CompiledPlan>& plan,
                   const std::shared_ptr<device::Device>& device, RunReport* report = nullptr) {
  Session session(plan, device);
  fill(session);
  session.run({1, 0, 0});
  const RunReport last = session.run({1, 0, 1});
  if (report != nullptr) *report = last;
  expect_exact_memory(session);
  return result(session);
}

TEST(Batch, SmallCopiesThatStartTogetherAreOne) {
  const auto device = device::checked(device::open("reference", {.threads = 1}));
  PlanOptions keep;
  keep.policy = Policy::kKeep;
  const auto graph = mlp(3);
  PlanOptions offload;
  offload.policy = Policy::kOffload;
  const auto plan = compile(graph, *device, offload);
  const Copies copies = copies_of(*plan);
  ASSERT_GT(copies.steps, 0);
  EXPECT_LT(copies.instructions, copies.steps) << "nothing was batched";
  RunReport report;
  EXPECT_EQ(run_checked(plan, device, &report), run_checked(compile(graph, *device, keep), device));
  const auto host = static_cast<size_t>(Tier::kHost);
  EXPECT_EQ(report.out[host].bytes + report.in[host].bytes, copies.bytes);
  EXPECT_GT(report.out[host].busy_seconds, 0);
  EXPECT_EQ(report.out[static_cast<size_t>(Tier::kDisk)].bytes, 0);
}

TEST(Batch, LargeCopiesStayAlone) {
  const auto device = device::checked(device::open("reference", {.threads = 1}));
  const auto plan = compile(fan(4, 4096), *device, {});  // 512 KiB each
  const Copies copies = copies_of(*plan);
  ASSERT_GT(copies.steps, 0);
  EXPECT_EQ(copies.instructions, copies.steps);
  EXPECT_EQ(copies.jobs, copies.steps);
  run_checked(plan, device);
}

TEST(Batch, ManySmallOnesAreBatchesOfBoundedSize) {
  const auto device = device::checked(device::open("reference", {.threads = 1}));
  const auto plan = compile(fan(4, 2048), *device, {});  // 256 KiB each
  const Copies copies = copies_of(*plan);
  ASSERT_GE(copies.steps, 4);
  EXPECT_LT(copies.instructions, copies.steps);
  EXPECT_LE(copies.most, 1 << 20);
  run_checked(plan, device);
}

}  // namespace
}  // namespace cairn::engine
