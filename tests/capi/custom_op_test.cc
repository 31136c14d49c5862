// Ops of the host: called with what the contract says, trained through, failing without harm to others.
#include <atomic>
#include <cfenv>

#include "tests/capi/rig.h"

namespace cairn_test {
namespace {

struct Square {  // y = x^2, dx = 2 x dy
  std::atomic<int> forwards{0}, backwards{0}, fail_forward_at{0};
  int32_t shape_result = 0;
  bool bad_shape = false;
  int32_t failure = 1;

  cairn_custom_op_t op() {
    cairn_custom_op_t op = CAIRN_CUSTOM_OP_INIT;
    op.name = "square";
    op.inputs = op.outputs = 1;
    op.recomputable = 1;
    op.user = this;
    op.shape = [](void* user, const cairn_tensor_t* in, cairn_tensor_t* out) -> int32_t {
      const auto& self = *static_cast<Square*>(user);
      EXPECT_EQ(in[0].data, nullptr);
      out[0] = in[0];
      if (self.bad_shape) out[0].dims[0] = -5;
      return self.shape_result;
    };
    op.workspace_bytes = [](void*, const cairn_tensor_t*) -> int64_t { return 64; };
    op.forward = [](void* user, const cairn_tensor_t* in, const cairn_tensor_t* out,
                    void* workspace) -> int32_t {
      auto& self = *static_cast<Square*>(user);
      EXPECT_NE(workspace, nullptr);
      const auto* x = static_cast<const float*>(in[0].data);
      for (int64_t i = 0; i < in[0].dims[0] * in[0].dims[1]; ++i)
        static_cast<float*>(out[0].data)[i] = x[i] * x[i];
      return ++self.forwards == self.fail_forward_at ? self.failure : 0;
    };
    op.backward = [](void* user, const cairn_tensor_t* in, const cairn_tensor_t* out, void*) -> int32_t {
      ++static_cast<Square*>(user)->backwards;
      const auto *x = static_cast<const float*>(in[0].data), *dy = static_cast<const float*>(in[2].data);
      for (int64_t i = 0; i < in[0].dims[0] * in[0].dims[1]; ++i)
        static_cast<float*>(out[0].data)[i] = 2 * x[i] * dy[i];
      return 0;
    };
    return op;
  }
};

constexpr int64_t kN = 4;

cairn::Graph squares(const cairn::Instance& instance, Square& square, bool backward = true) {
  auto graph = cairn::Graph::create(instance);
  cairn_custom_op_t op = square.op();
  if (!backward) op.backward = nullptr;
  graph.custom_op(op);
  const auto w = graph.parameter("w", {kN, kN}, cairn::init_constant(0.5));
  const auto x = graph.input("x", {kN, kN});
  graph.freeze(graph.op("mse", {graph.op("square", {w}), x}));
  return graph;
}

TEST(CustomOp, TrainsThroughTheHostsGradient) {
  const Devices devices;
  Square square;
  cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
  options.no_optimizer = 1;
  const auto plan = cairn::Plan::create(squares(devices.instance, square), devices.device, options);
  auto session = cairn::Session::create(plan, devices.device);
  session.initialise(1);
  session.write("x", std::vector<float>(kN * kN, 1.0f));
  session.run();
  EXPECT_GE(square.forwards.load(), 1);
  EXPECT_EQ(square.backwards.load(), 1);
  std::vector<float> gradient(kN * kN);
  session.read("w/gradient", gradient);
  // d/dw (w^2 - x)^2 = 2 (w^2 - x) 2 w, at w = 0.5, x = 1
  for (float g : gradient) EXPECT_FLOAT_EQ(g, 2 * (0.25f - 1) * 2 * 0.5f);
}

// A callback is called with the default environment, whatever the host's; what it leaves changed is put back.
TEST(CustomOp, TheRoundingModeStaysOnItsSide) {
  static std::atomic<int> other_mode;
  other_mode = 0;
  const auto digest = [](bool changes) {
    const Devices devices;
    Square square;
    const auto graph = [&] {
      auto made = cairn::Graph::create(devices.instance);
      cairn_custom_op_t op = square.op();
      if (changes)
        op.workspace_bytes = [](void*, const cairn_tensor_t*) -> int64_t {
          std::fesetround(FE_UPWARD);
          return 64;
        };
      if (changes)
        op.forward = [](void*, const cairn_tensor_t* in, const cairn_tensor_t* out, void*) -> int32_t {
          other_mode += std::fegetround() != FE_TONEAREST;
          for (int64_t i = 0; i < kN * kN; ++i) {
            const float x = static_cast<const float*>(in[0].data)[i];
            static_cast<float*>(out[0].data)[i] = x * x;
          }
          std::fesetround(FE_UPWARD);
          return 0;
        };
      made.custom_op(op);
      const auto w = made.parameter("w", {kN, kN}, cairn::init_constant(0.3));
      const auto x = made.input("x", {kN, kN});
      made.freeze(made.op("mse", {made.op("square", {w}), x}));
      return made;
    }();
    Trainer trainer(devices, graph);
    for (int step = 0; step < 3; ++step) {
      trainer.session.write("x", std::vector<float>(kN * kN, 1.0f));
      EXPECT_EQ(trainer.stepper.micro().outcome, static_cast<uint32_t>(CAIRN_STEP_APPLIED));
    }
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    return trainer.session.digest();
  };
  EXPECT_EQ(digest(true), digest(false));
  EXPECT_EQ(other_mode.load(), 0);
}

TEST(CustomOp, AFailingCallbackPoisonsItsSessionOnly) {
  const Devices devices;
  Square square;
  Trainer trainer(devices, squares(devices.instance, square));
  trainer.session.write("x", std::vector<float>(kN * kN, 1.0f));
  EXPECT_EQ(trainer.stepper.micro().outcome, static_cast<uint32_t>(CAIRN_STEP_APPLIED));
  square.fail_forward_at = square.forwards + 1;
  Failure first, second;
  const cairn_status_t status = cairn_stepper_micro(trainer.stepper.get(), nullptr, first);
  EXPECT_NE(status, CAIRN_STATUS_OK);
  EXPECT_NE(first.message().find("square"), std::string::npos) << first.message();
  EXPECT_EQ(cairn_stepper_micro(trainer.stepper.get(), nullptr, second), status) << "it says so again";
  EXPECT_EQ(first.message(), second.message()) << "the original error";
  trainer.stepper = {};
  trainer.session = {};
  const Devices others;
  Trainer fresh(others, squares(others.instance, square));
  fresh.session.write("x", std::vector<float>(kN * kN, 1.0f));
  EXPECT_EQ(fresh.stepper.micro().outcome, static_cast<uint32_t>(CAIRN_STEP_APPLIED));
}

// What the host says went wrong is what its caller is told.
TEST(CustomOp, AFailingCallbackFailsTheRunWithItsStatus) {
  struct Case {
    int32_t given;
    cairn_status_t told;
    const char* words;
  };
  for (const Case& c : {Case{CAIRN_STATUS_IO, CAIRN_STATUS_IO, "8 (IO)"},
                        {CAIRN_STATUS_OUT_OF_MEMORY, CAIRN_STATUS_OUT_OF_MEMORY, "3 (OUT_OF_MEMORY)"},
                        {CAIRN_STATUS_INTERNAL, CAIRN_STATUS_INTERNAL, "12 (INTERNAL)"},
                        {-1, CAIRN_STATUS_INVALID_ARGUMENT, "-1, which is no status"},
                        {4711, CAIRN_STATUS_INVALID_ARGUMENT, "4711, which is no status"}}) {
    const Devices devices;
    Square square;
    Trainer trainer(devices, squares(devices.instance, square));
    trainer.session.write("x", std::vector<float>(kN * kN, 1.0f));
    square.failure = c.given;
    square.fail_forward_at = square.forwards + 1;
    const Failure failure;
    expect_failure(cairn_stepper_micro(trainer.stepper.get(), nullptr, failure), c.told, failure,
                   {"'square'", "forward", c.words});
  }
}

TEST(CustomOp, ARefusalOfMemoryCostsTheEffectiveBatchAlone) {
  const Devices devices;
  Square square, undisturbed;
  Trainer trainer(devices, squares(devices.instance, square)),
      other(devices, squares(devices.instance, undisturbed));
  for (Trainer* each : {&trainer, &other}) {
    each->session.write("x", std::vector<float>(kN * kN, 1.0f));
    cairn_stepper_options_t options = CAIRN_STEPPER_OPTIONS_INIT;
    options.micro_steps = 2;
    each->stepper.configure(options);
    EXPECT_EQ(each->stepper.micro().outcome, static_cast<uint32_t>(CAIRN_STEP_ACCUMULATED));
  }
  square.failure = CAIRN_STATUS_OUT_OF_MEMORY;
  square.fail_forward_at = square.forwards + 1;
  const Failure failure;
  expect_failure(cairn_stepper_micro(trainer.stepper.get(), nullptr, failure), CAIRN_STATUS_OUT_OF_MEMORY,
                 failure, {"'square'", "repeat the effective batch"});
  EXPECT_EQ(trainer.stepper.report().micro, 0u);
  EXPECT_EQ(trainer.stepper.micro().outcome, static_cast<uint32_t>(CAIRN_STEP_ACCUMULATED));
  EXPECT_EQ(trainer.stepper.micro().outcome, static_cast<uint32_t>(CAIRN_STEP_APPLIED));
  EXPECT_EQ(other.stepper.micro().outcome, static_cast<uint32_t>(CAIRN_STEP_APPLIED));
  EXPECT_EQ(trainer.session.digest(), other.session.digest());
}

TEST(CustomOp, WithoutBackwardThereIsNoPlanToTrain) {
  const Devices devices;
  Square square;
  const auto graph = squares(devices.instance, square, false);
  cairn_plan_t* plan = nullptr;
  Failure failure;
  expect_failure(cairn_plan_create(graph.get(), devices.device.get(), nullptr, &plan, failure),
                 CAIRN_STATUS_UNSUPPORTED, failure, {"square"});
}

TEST(CustomOp, WrongDescriptions) {
  const auto instance = cairn::Instance::create();
  auto graph = cairn::Graph::create(instance);
  Square square;
  Failure failure;
  const auto with = [&](auto change) {
    cairn_custom_op_t op = square.op();
    change(op);
    return cairn_graph_custom_op(graph.get(), &op, failure);
  };
  expect_failure(with([](auto& o) { o.name = nullptr; }), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"name"});
  expect_failure(with([](auto& o) { o.name = "gelu"; }), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"gelu"});
  expect_failure(with([](auto& o) { o.inputs = 5; }), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"square", "5"});
  expect_failure(with([](auto& o) { o.outputs = 0; }), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"square", "0"});
  expect_failure(with([](auto& o) { o.shape = nullptr; }), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"shape"});
  expect_failure(with([](auto& o) { o.forward = nullptr; }), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"forward"});
  expect_failure(with([](auto& o) { o.recomputable = 3; }), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"recomputable"});
  ASSERT_EQ(with([](auto&) {}), CAIRN_STATUS_OK) << failure.message();
  expect_failure(with([](auto&) {}), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"square"});

  const auto x = graph.input("x", {kN, kN});
  cairn::Value out = 0;
  square.bad_shape = true;
  expect_failure(cairn_graph_op(graph.get(), "square", &x, 1, nullptr, 0, &out, 1, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"square", "-5"});
  square.bad_shape = false;
  square.shape_result = 1;
  expect_failure(cairn_graph_op(graph.get(), "square", &x, 1, nullptr, 0, &out, 1, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"square"});
  square.shape_result = CAIRN_STATUS_IO;
  expect_failure(cairn_graph_op(graph.get(), "square", &x, 1, nullptr, 0, &out, 1, failure), CAIRN_STATUS_IO,
                 failure, {"custom op 'square': its shape callback failed with 8 (IO)"});
  square.shape_result = 99;
  expect_failure(cairn_graph_op(graph.get(), "square", &x, 1, nullptr, 0, &out, 1, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"99, which is no status of cairn's"});
  EXPECT_EQ(graph.value_count(), 1u);
}

cairn::Session session_of(const cairn::Graph& graph, const Devices& devices) {
  cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
  options.no_optimizer = 1;
  return cairn::Session::create(cairn::Plan::create(graph, devices.device, options), devices.device);
}

// A file has the name of the op; the callbacks are the host's to give again.
TEST(CustomOp, AModelWithOneIsSavedAndLoaded) {
  const Devices devices;
  const Folder folder;
  Square square, again;
  const std::string path = folder / "graph.cairn";
  squares(devices.instance, square).save(path);
  auto loaded = cairn::Graph::load(devices.instance, path);
  cairn_plan_t* plan = nullptr;
  Failure failure;
  expect_failure(cairn_plan_create(loaded.get(), devices.device.get(), nullptr, &plan, failure),
                 CAIRN_STATUS_NOT_FOUND, failure,
                 {"custom op 'square' is not known here", "cairn_graph_custom_op"});
  cairn_custom_op_t op = again.op();
  op.name = "cube";
  expect_failure(cairn_graph_custom_op(loaded.get(), &op, failure), CAIRN_STATUS_NOT_FOUND, failure,
                 {"'cube'"});
  op = again.op();
  op.outputs = 2;
  expect_failure(cairn_graph_custom_op(loaded.get(), &op, failure), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"'square' has 1 inputs and 2 outputs, in the file 1 and 1"});
  op = again.op();
  op.shape = [](void*, const cairn_tensor_t* in, cairn_tensor_t* out) -> int32_t {
    out[0] = in[0];
    out[0].dims[0] = 9;
    return 0;
  };
  expect_failure(cairn_graph_custom_op(loaded.get(), &op, failure), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"makes f32[9, 4]", "f32[4, 4] in the file"});
  loaded.custom_op(again.op());
  op = again.op();
  expect_failure(cairn_graph_custom_op(loaded.get(), &op, failure), CAIRN_STATUS_WRONG_STATE, failure,
                 {"frozen"});
  auto session = session_of(loaded, devices);
  session.initialise(1);
  session.write("x", std::vector<float>(kN * kN, 1.0f));
  session.run();
  EXPECT_GE(again.forwards.load(), 1);
  EXPECT_EQ(square.forwards.load(), 0);
}

TEST(CustomOp, ACheckpointOfOneGoesOn) {
  const Devices devices;
  const Folder folder;
  Square square, again, other;
  const std::string path = folder / "checkpoint";
  const std::vector<float> x(kN * kN, 1.0f);
  Trainer trainer(devices, squares(devices.instance, square));
  trainer.session.write("x", x);
  trainer.stepper.micro();
  trainer.stepper.save(path);
  trainer.session.write("x", x);
  trainer.stepper.micro();

  const auto checkpoint = cairn::Checkpoint::open(devices.instance, path);
  auto graph = checkpoint.graph();
  graph.custom_op(again.op());
  Trainer from_file(devices, graph), from_code(devices, squares(devices.instance, again));
  for (Trainer* each : {&from_file, &from_code}) {
    each->stepper.restore(checkpoint);
    each->session.write("x", x);
    each->stepper.micro();
    EXPECT_EQ(each->session.digest(), trainer.session.digest());
  }
  // The same graph but for the op's name.
  auto cubes = cairn::Graph::create(devices.instance);
  cairn_custom_op_t op = other.op();
  op.name = "cube";
  cubes.custom_op(op);
  const auto w = cubes.parameter("w", {kN, kN}, cairn::init_constant(0.5));
  const auto in = cubes.input("x", {kN, kN});
  const auto y = cubes.op("cube", {w});
  cubes.name(y, "square_0");
  cubes.freeze(cubes.op("mse", {y, in}));
  Trainer of_cubes(devices, cubes);
  Failure failure;
  expect_failure(cairn_stepper_restore(of_cubes.stepper.get(), checkpoint.get(), failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"'cube_0' is cube, in the checkpoint square"});
}

}  // namespace
}  // namespace cairn_test
