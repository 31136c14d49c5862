// A small model in training, for tests that refuse memory in the midst of its calls.
#pragma once
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cairn/cairn.h"

namespace fault {

enum class Kind {
  kKept,           // everything on the device
  kTraced,         // the same, each run traced
  kSplitOnDisk,    // bf16 weights whose lower halves and optimizer state live in the disk tier
  kOnHostAndDisk,  // in both tiers, copies to the host at a stated rate
  kDeferred,       // updates wait for the next micro-batch
};

template <class T>
using Handle = std::unique_ptr<T, void (*)(T*)>;

// Two linear layers under mse, two micro-batches a step; of kDeferred one.
class Training {
 public:
  explicit Training(Kind kind = Kind::kKept) : kind_(kind) {
    cairn_instance_t* instance = nullptr;
    EXPECT_EQ(cairn_instance_create(nullptr, &instance, nullptr), 0);
    instance_.reset(instance);
    cairn_device_options_t device_options = CAIRN_DEVICE_OPTIONS_INIT;
    device_options.threads = tiered() ? 2 : 1;
    device_options.rates = "model";
    device_options.link_bytes_per_second = tiered() ? 2e9 : 0;
    cairn_device_t* device = nullptr;
    EXPECT_EQ(cairn_device_open(instance, "cpu", &device_options, &device, nullptr), 0);
    device_.reset(device);
    make_graph();
    cairn_plan_options_t options = plan_options();
    cairn_plan_t* plan = nullptr;
    EXPECT_EQ(cairn_plan_create(graph_.get(), device, &options, &plan, error_.get()), 0) << message();
    plan_.reset(plan);
    cairn_session_t* session = nullptr;
    EXPECT_EQ(cairn_session_create(plan, device, &session, error_.get()), 0) << message();
    session_.reset(session);
    EXPECT_EQ(initialise(), 0);
    EXPECT_EQ(cairn_session_trace(session, kind == Kind::kTraced ? 1 : 0, nullptr), 0);
    std::array<float, kRows * kWidth> numbers;
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = 0.1f * static_cast<float>(i % 7) - 0.3f;
    for (const char* name : {"x", "target"})
      EXPECT_EQ(cairn_session_write(session, name, numbers.data(), sizeof numbers, nullptr), 0);
    cairn_stepper_options_t stepper_options = CAIRN_STEPPER_OPTIONS_INIT;
    stepper_options.micro_steps = micro_steps();
    stepper_options.rate = 1e-2;
    cairn_stepper_t* stepper = nullptr;
    EXPECT_EQ(cairn_stepper_create(session, &stepper_options, &stepper, error_.get()), 0) << message();
    stepper_.reset(stepper);
  }

  uint32_t micro_steps() const { return kind_ == Kind::kDeferred ? 1 : 2; }
  cairn_status_t initialise() { return cairn_session_initialise(session_.get(), 7, error_.get()); }
  cairn_status_t micro() { return cairn_stepper_micro(stepper_.get(), nullptr, error_.get()); }
  cairn_status_t apply() { return cairn_stepper_apply(stepper_.get(), nullptr, error_.get()); }
  cairn_status_t digest(std::array<char, 33>& hex) {
    return cairn_session_digest(session_.get(), hex.data(), error_.get());
  }
  std::string digest() {
    std::array<char, 33> hex{};
    EXPECT_EQ(digest(hex), 0) << message();
    return hex.data();
  }
  cairn_status_t read() {
    return cairn_session_read(session_.get(), "w0", numbers_.data(), sizeof numbers_, error_.get());
  }
  cairn_status_t save(const std::filesystem::path& to) {
    return cairn_stepper_save(stepper_.get(), to.c_str(), nullptr, 0, nullptr, 0, error_.get());
  }
  cairn_status_t export_to(const std::filesystem::path& to) {
    return cairn_session_export(session_.get(), to.c_str(), nullptr, 0, error_.get());
  }
  cairn_status_t import_from(const std::filesystem::path& from) {
    return cairn_session_import(session_.get(), from.c_str(), nullptr, 0, error_.get());
  }
  cairn_status_t restore(const std::filesystem::path& from) {
    cairn_checkpoint_t* opened = nullptr;
    cairn_status_t status = cairn_checkpoint_open(instance_.get(), from.c_str(), &opened, error_.get());
    if (status == 0) status = cairn_stepper_restore(stepper_.get(), opened, error_.get());
    cairn_checkpoint_release(opened);
    return status;
  }
  cairn_status_t remove(const std::filesystem::path& checkpoint) {
    return cairn_checkpoint_remove(instance_.get(), checkpoint.c_str(), error_.get());
  }
  std::string message() const { return cairn_error_message(error_.get()); }
  cairn_step_report_t report() {
    cairn_step_report_t report = CAIRN_STEP_REPORT_INIT;
    EXPECT_EQ(cairn_stepper_report(stepper_.get(), &report, nullptr), 0);
    return report;
  }
  uint64_t reserved_bytes(uint32_t tier) {
    cairn_tier_usage_t usage = CAIRN_TIER_USAGE_INIT;
    EXPECT_EQ(cairn_session_usage(session_.get(), tier, &usage, nullptr), 0);
    return usage.reserved_bytes;
  }

 private:
  static constexpr int64_t kRows = 4, kWidth = 24;

  bool tiered() const { return kind_ != Kind::kKept && kind_ != Kind::kTraced; }

  cairn_plan_options_t plan_options() const {
    cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
    options.micro_steps = micro_steps();
    if (!tiered()) return options;
    options.smallest_budget = 1;
    options.tier_count = 1;
    options.tiers[0] = CAIRN_TIER_HOST;
    if (kind_ == Kind::kSplitOnDisk) {
      options.amp = CAIRN_AMP_BF16;
      options.parameters = CAIRN_SPLIT;
      options.tiers[0] = CAIRN_TIER_DISK;
    } else if (kind_ == Kind::kOnHostAndDisk) {
      options.tier_count = 2;
      options.tiers[1] = CAIRN_TIER_DISK;
    }
    return options;
  }

  void make_graph() {
    cairn_graph_t* graph = nullptr;
    EXPECT_EQ(cairn_graph_create(instance_.get(), &graph, nullptr), 0);
    graph_.reset(graph);
    const int64_t rows[] = {kRows, kWidth}, square[] = {kWidth, kWidth};
    cairn_value_t y = 0, target = 0, ends[2] = {};
    const cairn_tensor_desc_t x_desc = {"x", rows, 2, CAIRN_F32},
                              target_desc = {"target", rows, 2, CAIRN_F32};
    cairn_parameter_options_t init = CAIRN_PARAMETER_OPTIONS_INIT;
    init.init = CAIRN_INIT_NORMAL;
    init.init_scale = 0.1;
    EXPECT_EQ(cairn_graph_input(graph, &x_desc, &y, nullptr), 0);
    EXPECT_EQ(cairn_graph_input(graph, &target_desc, &target, nullptr), 0);
    for (const char* name : {"w0", "w1"}) {
      cairn_value_t w = 0;
      const cairn_tensor_desc_t w_desc = {name, square, 2, CAIRN_F32};
      EXPECT_EQ(cairn_graph_parameter(graph, &w_desc, &init, &w, nullptr), 0);
      const cairn_value_t linear[] = {y, w};
      EXPECT_EQ(cairn_graph_op(graph, "linear", linear, 2, nullptr, 0, &y, 1, nullptr), 0);
    }
    const cairn_value_t mse[] = {y, target};
    EXPECT_EQ(cairn_graph_op(graph, "mse", mse, 2, nullptr, 0, ends, 2, nullptr), 0);
    cairn_freeze_options_t freeze = CAIRN_FREEZE_OPTIONS_INIT;
    freeze.loss = ends[0];
    freeze.weight = ends[1];
    EXPECT_EQ(cairn_graph_freeze(graph, &freeze, nullptr), 0);
  }

  const Kind kind_;
  std::array<float, kWidth * kWidth> numbers_{};
  // Released in the opposite order.
  Handle<cairn_error_t> error_{cairn_error_create(), cairn_error_release};
  Handle<cairn_instance_t> instance_{nullptr, cairn_instance_release};
  Handle<cairn_device_t> device_{nullptr, cairn_device_release};
  Handle<cairn_graph_t> graph_{nullptr, cairn_graph_release};
  Handle<cairn_plan_t> plan_{nullptr, cairn_plan_release};
  Handle<cairn_session_t> session_{nullptr, cairn_session_release};
  Handle<cairn_stepper_t> stepper_{nullptr, cairn_stepper_release};
};

}  // namespace fault
