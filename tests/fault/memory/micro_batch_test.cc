// Memory refused in the middle of a micro-batch costs the effective batch, and nothing else: the same session goes on.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

#include "cairn/cairn.h"
#include "tests/fault/memory/heap.h"

namespace fault {
namespace {

template <class T>
using Handle = std::unique_ptr<T, void (*)(T*)>;

constexpr int64_t kRows = 4, kWidth = 8;

// A linear layer under mse, two micro-batches a step.
class Training {
 public:
  Training() {
    cairn_instance_t* instance = nullptr;
    EXPECT_EQ(cairn_instance_create(nullptr, &instance, nullptr), 0);
    instance_.reset(instance);
    cairn_device_options_t device_options = CAIRN_DEVICE_OPTIONS_INIT;
    device_options.threads = 1;
    cairn_device_t* device = nullptr;
    EXPECT_EQ(cairn_device_open(instance, "cpu", &device_options, &device, nullptr), 0);
    device_.reset(device);
    make_graph();
    cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
    options.micro_steps = 2;
    cairn_plan_t* plan = nullptr;
    EXPECT_EQ(cairn_plan_create(graph_.get(), device, &options, &plan, nullptr), 0);
    plan_.reset(plan);
    cairn_session_t* session = nullptr;
    EXPECT_EQ(cairn_session_create(plan, device, &session, nullptr), 0);
    session_.reset(session);
    EXPECT_EQ(cairn_session_initialise(session, 7, nullptr), 0);
    std::array<float, kRows * kWidth> numbers;
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = 0.1f * static_cast<float>(i % 7) - 0.3f;
    for (const char* name : {"x", "target"})
      EXPECT_EQ(cairn_session_write(session, name, numbers.data(), sizeof numbers, nullptr), 0);
    cairn_stepper_options_t stepper_options = CAIRN_STEPPER_OPTIONS_INIT;
    stepper_options.micro_steps = 2;
    stepper_options.rate = 1e-2;
    cairn_stepper_t* stepper = nullptr;
    EXPECT_EQ(cairn_stepper_create(session, &stepper_options, &stepper, nullptr), 0);
    stepper_.reset(stepper);
  }

  cairn_status_t micro() { return cairn_stepper_micro(stepper_.get(), nullptr, error_.get()); }
  std::string message() const { return cairn_error_message(error_.get()); }
  cairn_step_report_t report() {
    cairn_step_report_t report = CAIRN_STEP_REPORT_INIT;
    EXPECT_EQ(cairn_stepper_report(stepper_.get(), &report, nullptr), 0);
    return report;
  }
  std::string digest() {
    std::array<char, 33> hex{};
    EXPECT_EQ(cairn_session_digest(session_.get(), hex.data(), nullptr), 0);
    return hex.data();
  }

 private:
  void make_graph() {
    cairn_graph_t* graph = nullptr;
    EXPECT_EQ(cairn_graph_create(instance_.get(), &graph, nullptr), 0);
    graph_.reset(graph);
    const int64_t rows[] = {kRows, kWidth}, square[] = {kWidth, kWidth};
    cairn_value_t x = 0, target = 0, w = 0, y = 0, ends[2] = {};
    const cairn_tensor_desc_t x_desc = {"x", rows, 2, CAIRN_F32},
                              target_desc = {"target", rows, 2, CAIRN_F32},
                              w_desc = {"w", square, 2, CAIRN_F32};
    cairn_parameter_options_t init = CAIRN_PARAMETER_OPTIONS_INIT;
    init.init = CAIRN_INIT_NORMAL;
    init.init_scale = 0.1;
    EXPECT_EQ(cairn_graph_input(graph, &x_desc, &x, nullptr), 0);
    EXPECT_EQ(cairn_graph_input(graph, &target_desc, &target, nullptr), 0);
    EXPECT_EQ(cairn_graph_parameter(graph, &w_desc, &init, &w, nullptr), 0);
    const cairn_value_t linear[] = {x, w};
    EXPECT_EQ(cairn_graph_op(graph, "linear", linear, 2, nullptr, 0, &y, 1, nullptr), 0);
    const cairn_value_t mse[] = {y, target};
    EXPECT_EQ(cairn_graph_op(graph, "mse", mse, 2, nullptr, 0, ends, 2, nullptr), 0);
    cairn_freeze_options_t freeze = CAIRN_FREEZE_OPTIONS_INIT;
    freeze.loss = ends[0];
    freeze.weight = ends[1];
    EXPECT_EQ(cairn_graph_freeze(graph, &freeze, nullptr), 0);
  }

  // Released in the opposite order.
  Handle<cairn_error_t> error_{cairn_error_create(), cairn_error_release};
  Handle<cairn_instance_t> instance_{nullptr, cairn_instance_release};
  Handle<cairn_device_t> device_{nullptr, cairn_device_release};
  Handle<cairn_graph_t> graph_{nullptr, cairn_graph_release};
  Handle<cairn_plan_t> plan_{nullptr, cairn_plan_release};
  Handle<cairn_session_t> session_{nullptr, cairn_session_release};
  Handle<cairn_stepper_t> stepper_{nullptr, cairn_stepper_release};
};

class RefusedMicroBatch : public testing::TestWithParam<heap::Failing> {};

TEST_P(RefusedMicroBatch, CostsTheEffectiveBatchAtMost) {
  Training undisturbed, training;
  int lost = 0;
  bool poisoned = false;  // refused once a parameter had been updated
  for (uint64_t step = 0; step < 4 && !poisoned; ++step) {
    SCOPED_TRACE(step);
    ASSERT_EQ(undisturbed.micro(), 0);
    ASSERT_EQ(undisturbed.micro(), 0);
    const std::string before = training.digest();
    for (long at = 0; training.report().step == step;) {
      const uint32_t micro = training.report().micro;
      heap::arm(at, GetParam());
      const cairn_status_t status = training.micro();
      if (heap::disarm().failed_at >= 0) ++at;
      if (status == CAIRN_STATUS_OK) continue;
      ASSERT_EQ(status, CAIRN_STATUS_OUT_OF_MEMORY) << training.message();
      const bool discarded = training.message().find("repeat the effective batch") != std::string::npos;
      poisoned = training.message().find("make the session anew") != std::string::npos;
      if (poisoned) break;
      EXPECT_EQ(training.report().micro, discarded ? 0 : micro);
      EXPECT_EQ(training.digest(), before);
      lost += discarded;
    }
    if (!poisoned) EXPECT_EQ(training.digest(), undisturbed.digest());
  }
  EXPECT_GT(lost, 0);
}

INSTANTIATE_TEST_SUITE_P(, RefusedMicroBatch, testing::Values(heap::Failing::kOne, heap::Failing::kRest),
                         [](const auto& made) {
                           return made.param == heap::Failing::kOne ? "OneAllocation" : "AllFromOneOn";
                         });

}  // namespace
}  // namespace fault
