// The host's rounding mode, denormals as zero and traps: they reach no number, and are after a call as before.
#include "runtime/base/os/float_environment.h"

#include <cfenv>

#include "tests/capi/rig.h"

namespace cairn_test {
namespace {

using Registers = cairn::FloatRegisters;

void denormals_are_zero() {
  Registers now = Registers::read();
#if defined(__x86_64__)
  now.vectors |= 0x8040;  // FTZ, DAZ
#elif defined(__aarch64__)
  now.control |= uint64_t{1} << 24;  // FZ
#endif
  now.write();
}

struct Mode {
  const char* name;
  void (*set)();
};
const Mode kModes[] = {
    {"as it is", [] {}},
    {"upward", [] { std::fesetround(FE_UPWARD); }},
    {"downward", [] { std::fesetround(FE_DOWNWARD); }},
    {"toward zero", [] { std::fesetround(FE_TOWARDZERO); }},
    {"denormals as zero", denormals_are_zero},
    {"traps", [] { feenableexcept(FE_INEXACT | FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW); }},
    {"all of it",
     [] {
       denormals_are_zero();
       std::fesetround(FE_UPWARD);
       feenableexcept(FE_INEXACT | FE_DIVBYZERO | FE_INVALID);
     }},
};

// What `work` gives in that mode. What is checked and compared stays outside of it.
template <class Work>
auto in_mode(const Mode& mode, const Work& work) {
  const Registers own = Registers::read();
  mode.set();
  const Registers before = Registers::read();
  auto result = work();
  const Registers after = Registers::read();
  own.write();
  EXPECT_TRUE(before == after) << mode.name << ": not as it was before the calls";
  return result;
}

struct Trained {
  std::string digest;
  double loss = 0;
};

TEST(FloatEnvironment, TrainingGivesTheSameBitsInEveryMode) {
  const std::vector<float> x(kBatch * kWidth, 0.3f), target(kBatch * kWidth, 0.25f);
  std::vector<Trained> trained;
  for (const Mode& mode : kModes)
    trained.push_back(in_mode(mode, [&] {
      cairn_device_options_t two = CAIRN_DEVICE_OPTIONS_INIT;
      two.threads = 2;  // one of them is started in this mode
      const auto instance = cairn::Instance::create();
      const auto device = cairn::Device::open(instance, "cpu", two);
      const auto graph = perceptron(instance);
      const auto plan = cairn::Plan::create(graph, device);
      auto session = cairn::Session::create(plan, device);
      session.initialise(1);
      cairn_stepper_options_t options = CAIRN_STEPPER_OPTIONS_INIT;
      options.rate = 1e-2;
      auto stepper = cairn::Stepper::create(session, options);
      Trained result;
      for (int step = 0; step < 3; ++step) {
        session.write("x", x);
        session.write("target", target);
        result.loss = stepper.micro().loss;
      }
      result.digest = session.digest();
      return result;
    }));
  for (size_t i = 1; i < trained.size(); ++i) {
    EXPECT_EQ(trained[i].digest, trained[0].digest) << kModes[i].name;
    EXPECT_EQ(trained[i].loss, trained[0].loss) << kModes[i].name;
  }
}

TEST(FloatEnvironment, DenormalsAreKept) {
  const std::vector<float> tiny(kWidth, 1e-39f);
  for (const Mode& mode : kModes) {
    const auto y = in_mode(mode, [&] {
      const Devices devices;
      auto graph = cairn::Graph::create(devices.instance);
      const auto x = graph.input("x", {kWidth});
      const auto half = graph.op("scale", {x}, {{"factor", 0.5}});
      graph.name(half, "y");
      graph.freeze(0, {half});
      const auto plan = cairn::Plan::create(graph, devices.device);
      auto session = cairn::Session::create(plan, devices.device);
      session.write("x", tiny);
      session.run();
      std::vector<float> read(kWidth);
      session.read("y", read);
      return read;
    });
    EXPECT_EQ(y, std::vector<float>(kWidth, 1e-39f * 0.5f)) << mode.name;
  }
}

// Errors and calls that fail early put it back, too.
TEST(FloatEnvironment, AFailedCallPutsItBack) {
  for (const Mode& mode : kModes)
    EXPECT_EQ(in_mode(mode, [] { return cairn_graph_create(nullptr, nullptr, nullptr); }),
              CAIRN_STATUS_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace cairn_test
