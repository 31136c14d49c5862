// What a child process may do with handles that its parent made: nothing but let go of them.
#include <sys/wait.h>

#include <csignal>
#include <functional>

#include "tests/capi/rig.h"

namespace cairn_test {
namespace {

// Runs `work` in a child process and returns what it returned; -1: it crashed or hung.
int in_child(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a child that hangs ends by SIGALRM
    _exit(work());
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool refused(cairn_status_t status, const Failure& failure, const char* name) {
  const std::string message = failure.message();
  const bool told = message.find("fork") != std::string::npos && message.find(name) != std::string::npos &&
                    message.find("exec") != std::string::npos;
  if (status != CAIRN_STATUS_WRONG_STATE || !told) fprintf(stderr, "%d: %s\n", status, message.c_str());
  return status == CAIRN_STATUS_WRONG_STATE && told;
}

TEST(Fork, HandlesOfTheParentAreRefusedInTheChild) {
  const Devices devices;
  const auto graph = perceptron(devices.instance);
  Trainer trainer(devices, graph);
  trainer.write(0.5f);
  trainer.stepper.micro();
  const Failure failure;
  EXPECT_EQ(
      in_child([&] {
        float number = 0;
        cairn_device_t* device = nullptr;
        cairn_plan_t* plan = nullptr;
        cairn_graph_t* other = nullptr;
        cairn_text_t* text = nullptr;
        return refused(cairn_stepper_micro(trainer.stepper.get(), nullptr, failure), failure, "stepper") &&
                       refused(cairn_session_read(trainer.session.get(), "loss", &number, 4, failure),
                               failure, "session") &&
                       refused(
                           cairn_plan_render(trainer.plan.get(), CAIRN_RENDER_PLAN_JSON, "", &text, failure),
                           failure, "plan") &&
                       refused(cairn_plan_create(graph.get(), devices.device.get(), nullptr, &plan, failure),
                               failure, "graph") &&
                       refused(cairn_device_open(devices.instance.get(), "cpu", nullptr, &device, failure),
                               failure, "instance") &&
                       refused(cairn_graph_create(devices.instance.get(), &other, failure), failure,
                               "instance")
                   ? 0
                   : 1;
      }),
      0);
  EXPECT_EQ(trainer.stepper.micro().outcome, static_cast<uint32_t>(CAIRN_STEP_APPLIED))
      << "the parent goes on";
}

// At any moment: lanes asleep or at work, their locks free or taken.
TEST(Fork, ReleasingInTheChildNeitherHangsNorCrashes) {
  for (int round = 0; round < 10; ++round) {
    cairn_instance_options_t hooks = CAIRN_INSTANCE_OPTIONS_INIT;
    const Devices devices(hooks);
    cairn_device_options_t two = CAIRN_DEVICE_OPTIONS_INIT;
    two.threads = 2;
    Devices threaded;
    threaded.device = cairn::Device::open(threaded.instance, "cpu", two);
    const auto graph = perceptron(threaded.instance);
    Trainer trainer(threaded, graph);
    trainer.write(0.5f);
    for (int step = 0; step <= round; ++step) trainer.stepper.micro();
    EXPECT_EQ(in_child([&] {
                cairn_stepper_release(trainer.stepper.get());
                cairn_session_release(trainer.session.get());
                cairn_plan_release(trainer.plan.get());
                cairn_graph_release(graph.get());
                cairn_device_release(threaded.device.get());
                cairn_instance_release(threaded.instance.get());
                return 0;
              }),
              0);
    trainer.stepper.micro();
  }
}

TEST(Fork, AChildMakesItsOwn) {
  const Devices devices;
  const auto train = [] {
    const Devices own;
    Trainer trainer(own, perceptron(own.instance));
    trainer.write(0.5f);
    return trainer.stepper.micro().outcome == CAIRN_STEP_APPLIED ? 0 : 1;
  };
  EXPECT_EQ(train(), 0);
  EXPECT_EQ(in_child(train), 0);
}

TEST(Fork, ErrorsAndTextsAreData) {
  const Devices devices;
  const Failure failure;
  cairn_device_t* device = nullptr;
  expect_failure(cairn_device_open(devices.instance.get(), "tpu", nullptr, &device, failure),
                 CAIRN_STATUS_NOT_FOUND, failure);
  EXPECT_EQ(in_child([&] {
              const bool told = failure.message().find("tpu") != std::string::npos;
              cairn_error_release(failure.error);
              return told ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace cairn_test
