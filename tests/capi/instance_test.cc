// Chapter 2: instance, hooks, devices; and memory that is not there, at every place where it is asked for.
#include <atomic>
#include <cstdlib>

#include "tests/capi/rig.h"

namespace cairn_test {
namespace {

// Counts blocks and bytes; the allocation number `fail_at` (from 1) gets nothing.
struct Memory {
  std::atomic<int64_t> held{0}, blocks{0}, calls{0};
  int64_t fail_at = 0;

  cairn_allocator_t hook() {
    cairn_allocator_t a = CAIRN_ALLOCATOR_INIT;
    a.user = this;
    a.allocate = [](void* user, size_t bytes, size_t alignment) -> void* {
      auto& memory = *static_cast<Memory*>(user);
      if (++memory.calls == memory.fail_at) return nullptr;
      void* block = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
      memory.held += static_cast<int64_t>(bytes);
      ++memory.blocks;
      return block;
    };
    a.release = [](void* user, void* block, size_t bytes, size_t) {
      auto& memory = *static_cast<Memory*>(user);
      memory.held -= static_cast<int64_t>(bytes);
      --memory.blocks;
      std::free(block);
    };
    return a;
  }
};

TEST(Instance, VersionIsOne) {
  EXPECT_EQ(cairn_version_number(),
            CAIRN_VERSION_MAJOR * 10000u + CAIRN_VERSION_MINOR * 100u + CAIRN_VERSION_PATCH);
  EXPECT_EQ(std::string(cairn_version()), std::to_string(CAIRN_VERSION_MAJOR) + "." +
                                              std::to_string(CAIRN_VERSION_MINOR) + "." +
                                              std::to_string(CAIRN_VERSION_PATCH));
}

TEST(Instance, HalfAnAllocatorIsNone) {
  Memory memory;
  cairn_allocator_t hook = memory.hook();
  hook.release = nullptr;
  cairn_instance_options_t options = CAIRN_INSTANCE_OPTIONS_INIT;
  options.allocator = &hook;
  cairn_instance_t* instance = nullptr;
  Failure failure;
  expect_failure(cairn_instance_create(&options, &instance, failure), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"allocator", "release"});
}

TEST(Instance, ListsDevicesAndRefusesOthers) {
  const auto instance = cairn::Instance::create();
  const auto devices = instance.devices();
  ASSERT_FALSE(devices.empty());
  EXPECT_STREQ(devices[0].name, "cpu");
  EXPECT_GT(devices[0].threads, 0u);
  EXPECT_GT(devices[0].memory_bytes, 0u);
  Failure failure;
  cairn_device_info_t info = CAIRN_DEVICE_INFO_INIT;
  expect_failure(cairn_instance_device(instance.get(), devices.size(), &info, failure),
                 CAIRN_STATUS_NOT_FOUND, failure, {std::to_string(devices.size())});
  cairn_device_t* device = nullptr;
  expect_failure(cairn_device_open(instance.get(), "tpu", nullptr, &device, failure), CAIRN_STATUS_NOT_FOUND,
                 failure, {"tpu", "cpu", "reference", "cuda"});
  expect_failure(cairn_device_open(instance.get(), nullptr, nullptr, &device, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"'name'"});
  cairn_device_options_t options = CAIRN_DEVICE_OPTIONS_INIT;
  options.link_bytes_per_second = -1;
  expect_failure(cairn_device_open(instance.get(), "cpu", &options, &device, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"link_bytes_per_second", "-1"});
  options = CAIRN_DEVICE_OPTIONS_INIT;
  options.verify = 2;
  expect_failure(cairn_device_open(instance.get(), "cpu", &options, &device, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"verify"});
  EXPECT_EQ(device, nullptr);
}

TEST(Instance, AGpuThatIsNotThereIsAStatus) {
  const auto instance = cairn::Instance::create();
  for (const auto& info : instance.devices())
    if (std::string(info.name).rfind("cuda", 0) == 0) GTEST_SKIP() << "there is one";
  Failure failure;
  cairn_device_t* device = nullptr;
  expect_failure(cairn_device_open(instance.get(), "cuda:0", nullptr, &device, failure),
                 CAIRN_STATUS_UNSUPPORTED, failure, {"cuda:0"});
}

TEST(Instance, AllMemoryOfTensorsComesFromTheHost) {
  Memory memory;
  const cairn_allocator_t hook = memory.hook();
  cairn_instance_options_t options = CAIRN_INSTANCE_OPTIONS_INIT;
  options.allocator = &hook;
  {
    const Devices devices(options);
    cairn_plan_options_t plan_options = CAIRN_PLAN_OPTIONS_INIT;
    plan_options.policy = CAIRN_REGION_OFFLOAD;
    Trainer trainer(devices, perceptron(devices.instance), plan_options);
    const cairn_plan_summary_t summary = trainer.plan.summary();
    ASSERT_GT(summary.peak_bytes[CAIRN_TIER_HOST], 0u);
    const uint64_t planned = summary.peak_bytes[CAIRN_TIER_DEVICE] + summary.peak_bytes[CAIRN_TIER_HOST];
    EXPECT_GE(memory.held.load(), static_cast<int64_t>(planned));
    const int64_t calls = memory.calls;
    for (int i = 0; i < 3; ++i) {
      trainer.write(0.5f);
      trainer.stepper.micro();
    }
    EXPECT_EQ(memory.calls.load(), calls) << "memory was taken after the session was made";
    EXPECT_EQ(trainer.session.usage(CAIRN_TIER_DEVICE).peak_bytes, summary.peak_bytes[CAIRN_TIER_DEVICE]);
    EXPECT_EQ(trainer.session.usage(CAIRN_TIER_HOST).peak_bytes, summary.peak_bytes[CAIRN_TIER_HOST]);
  }
  EXPECT_EQ(memory.held.load(), 0);
  EXPECT_EQ(memory.blocks.load(), 0);
}

// A block that starts anywhere else than asked for is given back, and not used.
TEST(Instance, MisalignedBlocksAreRefused) {
  struct Crooked {
    std::atomic<int64_t> calls{0}, held{0};
    int64_t crooked_at = 0;
    size_t by = 0;
  };
  for (const size_t by : {size_t{1}, size_t{64}, size_t{2048}})
    for (int64_t at = 1;; ++at) {
      Crooked memory;
      memory.crooked_at = at;
      memory.by = by;
      cairn_allocator_t hook = CAIRN_ALLOCATOR_INIT;
      hook.user = &memory;
      hook.allocate = [](void* user, size_t bytes, size_t alignment) -> void* {
        auto& m = *static_cast<Crooked*>(user);
        ++m.held;
        auto* const block =
            static_cast<char*>(std::aligned_alloc(alignment, bytes / alignment * alignment + 2 * alignment));
        return ++m.calls == m.crooked_at ? block + m.by : block;
      };
      hook.release = [](void* user, void* block, size_t, size_t alignment) {
        --static_cast<Crooked*>(user)->held;
        const auto address = reinterpret_cast<uintptr_t>(block);
        std::free(reinterpret_cast<void*>(address / alignment * alignment));
      };
      cairn_instance_options_t options = CAIRN_INSTANCE_OPTIONS_INIT;
      options.allocator = &hook;
      bool refused = false;
      {
        const Devices devices(options);
        cairn_plan_options_t plan_options = CAIRN_PLAN_OPTIONS_INIT;
        plan_options.policy = CAIRN_REGION_OFFLOAD;
        const auto plan = cairn::Plan::create(perceptron(devices.instance), devices.device, plan_options);
        cairn_session_t* session = nullptr;
        const Failure failure;
        const cairn_status_t status =
            cairn_session_create(plan.get(), devices.device.get(), &session, failure);
        refused = status != CAIRN_STATUS_OK;
        if (refused)
          expect_failure(status, CAIRN_STATUS_INVALID_ARGUMENT, failure, {"allocator", "aligned", "4096"});
        cairn_session_release(session);
      }
      EXPECT_EQ(memory.held, 0) << "block " << at;
      if (memory.calls < at) {
        EXPECT_FALSE(refused);
        EXPECT_GE(at, 3) << "the arena and the host tier";
        break;
      }
      EXPECT_TRUE(refused) << "block " << at << ", " << by << " bytes off";
    }
}

// The hook is the host's; what it throws must not undo what was done.
TEST(Instance, ALogHookThatThrowsLosesNothing) {
  struct Told {
    int calls = 0;
  } told;
  cairn_instance_options_t options = CAIRN_INSTANCE_OPTIONS_INIT;
  options.log_user = &told;
  options.log = [](void* user, int32_t, const char*) {
    ++static_cast<Told*>(user)->calls;
    throw 42;
  };
  const Devices devices(options);
  auto graph = cairn::Graph::create(devices.instance);
  const cairn::Value x = graph.input("x", {4, 4});
  graph.parameter("unused", {4, 4}, cairn::init_normal(1));
  graph.parameter("unused too", {4, 4}, cairn::init_normal(1));
  const cairn::Value w = graph.parameter("w", {4, 4}, cairn::init_normal(1));
  graph.freeze(graph.op("mse", {graph.op("linear", {x, w}), x}));
  EXPECT_EQ(told.calls, 2) << "every note is told, whatever became of the one before";
  Trainer trainer(devices, graph);
  trainer.session.write("x", std::vector<float>(16, 0.5f));
  EXPECT_EQ(trainer.stepper.micro().outcome, static_cast<uint32_t>(CAIRN_STEP_APPLIED));
}

TEST(Instance, ADiskDirectoryThatIsNotThereIsNamedWithTheCause) {
  struct Case {
    const char* directory;
    const char* cause;
  };
  for (const Case& c :
       {Case{"/nonexistent", "No such file or directory"}, {"/dev/null", "Not a directory"}}) {
    const auto instance = cairn::Instance::create();
    cairn_device_options_t options = CAIRN_DEVICE_OPTIONS_INIT;
    options.threads = 1;
    options.disk_directory = c.directory;
    const auto device = cairn::Device::open(instance, "cpu", options);
    cairn_plan_options_t plan_options = CAIRN_PLAN_OPTIONS_INIT;
    plan_options.policy = CAIRN_REGION_OFFLOAD;
    plan_options.tier_count = 1;
    plan_options.tiers[0] = CAIRN_TIER_DISK;
    const auto graph = perceptron(instance);
    const Failure failure;
    cairn_plan_t* plan = nullptr;
    cairn_session_t* session = nullptr;
    errno = 0;  // what an earlier call may leave behind
    cairn_status_t status = cairn_plan_create(graph.get(), device.get(), &plan_options, &plan, failure);
    if (status == CAIRN_STATUS_OK) status = cairn_session_create(plan, device.get(), &session, failure);
    expect_failure(status, CAIRN_STATUS_IO, failure, {c.directory, c.cause});
    EXPECT_EQ(failure.message().find("Success"), std::string::npos) << failure.message();
    cairn_plan_release(plan);
  }
}

// A whole training run in which the n-th allocation fails, for n = 1, 2, ... until none is left to fail.
TEST(Instance, EveryAllocationMayFail) {
  std::string reference;
  int64_t failures = 0;
  for (int64_t fail_at = 0;; ++fail_at) {
    ASSERT_LT(fail_at, 200) << "allocations without end";
    Memory memory;
    memory.fail_at = fail_at;
    const cairn_allocator_t hook = memory.hook();
    cairn_instance_options_t options = CAIRN_INSTANCE_OPTIONS_INIT;
    options.allocator = &hook;
    bool failed = false;
    {
      const Devices devices(options);
      const auto graph = perceptron(devices.instance);
      cairn_plan_options_t plan_options = CAIRN_PLAN_OPTIONS_INIT;
      plan_options.policy = CAIRN_REGION_OFFLOAD;
      const auto plan = cairn::Plan::create(graph, devices.device, plan_options);
      const auto attempt = [&] {
        auto session = cairn::Session::create(plan, devices.device);
        session.initialise(3);
        auto stepper = cairn::Stepper::create(session);
        session.write("x", std::vector<float>(kBatch * kWidth, 0.5f));
        session.write("target", std::vector<float>(kBatch * kWidth, 0.25f));
        stepper.micro();
        return session.digest();
      };
      std::string digest;
      try {
        digest = attempt();
      } catch (const cairn::Error& e) {
        failed = true;
        ++failures;
        EXPECT_EQ(e.status(), CAIRN_STATUS_OUT_OF_MEMORY) << e.what();
        ASSERT_TRUE(e.fault().has_value());
        EXPECT_GT(e.fault()->requested_bytes, 0u);
        EXPECT_EQ(memory.blocks.load(), 0) << "left behind after allocation " << fail_at;
        digest = attempt();  // the same plan and device, once there is memory
      }
      if (fail_at == 0) reference = digest;
      EXPECT_EQ(digest, reference);
    }
    EXPECT_EQ(memory.blocks.load(), 0) << "leaked after allocation " << fail_at;
    if (fail_at > 0 && !failed) break;
  }
  EXPECT_GE(failures, 2) << "arena and host tier at least";
}

TEST(Instance, LogTellsWhatAGraphDoesNotTrain) {
  std::vector<std::string> told;
  cairn_instance_options_t options = CAIRN_INSTANCE_OPTIONS_INIT;
  options.log_user = &told;
  options.log = [](void* user, int32_t level, const char* message) {
    EXPECT_EQ(level, CAIRN_LOG_WARNING);
    static_cast<std::vector<std::string>*>(user)->push_back(message);
  };
  const auto instance = cairn::Instance::create(options);
  auto graph = cairn::Graph::create(instance);
  const auto x = graph.input("x", {4, 4});
  const auto w = graph.parameter("w", {4, 4});
  graph.parameter("forgotten", {4, 4});
  cairn::Value dead = 0;
  graph.region("aside", CAIRN_REGION_RECOMPUTE, [&] { dead = graph.op("relu", {x}); });
  graph.freeze(graph.op("mse", {graph.op("linear", {x, w}), x}), {dead});
  ASSERT_EQ(told.size(), 2u);
  EXPECT_NE((told[0] + told[1]).find("'forgotten'"), std::string::npos);
  EXPECT_NE((told[0] + told[1]).find("'aside'"), std::string::npos);
}

// Threads that build graphs of one instance, and of instances of their own with the same hook: each line comes whole, on
// the thread whose call it is about.
TEST(Instance, ALogHookIsCalledByManyThreadsAtOnce) {
  constexpr int kThreads = 4, kGraphs = 25;
  struct Told {
    std::atomic<int> lines{0}, wrong{0};
  } told;
  static thread_local const std::string* mine = nullptr;
  cairn_instance_options_t options = CAIRN_INSTANCE_OPTIONS_INIT;
  options.log_user = &told;
  options.log = [](void* user, int32_t level, const char* message) {
    auto& all = *static_cast<Told*>(user);
    ++all.lines;
    if (level != CAIRN_LOG_WARNING || std::string(message).find("'" + *mine + "'") == std::string::npos)
      ++all.wrong;
  };
  auto shared = std::make_unique<cairn::Instance>(cairn::Instance::create(options));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&options, t, instance = *shared] {
      for (int i = 0; i < kGraphs; ++i) {
        const std::string name = "of " + std::to_string(t) + " number " + std::to_string(i);
        mine = &name;
        auto graph = cairn::Graph::create(i % 2 == 0 ? instance : cairn::Instance::create(options));
        const auto x = graph.input("x", {4, 4});
        graph.parameter(name, {4, 4});
        graph.freeze(graph.op("mse", {graph.op("linear", {x, graph.parameter("w", {4, 4})}), x}));
      }
    });
  shared.reset();  // the threads' references are left
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(told.lines.load(), kThreads * kGraphs);
  EXPECT_EQ(told.wrong.load(), 0);
}

// Any order of releases, from children to parents and back: sanitizers watch.
TEST(Instance, HandlesKeepWhatTheyNeed) {
  for (int order = 0; order < 6; ++order) {
    Devices devices;
    auto graph = perceptron(devices.instance);
    Trainer trainer(devices, graph);
    cairn::Session session = trainer.session;
    const auto drop = [&](int what) {
      switch (what) {
        case 0:
          devices.instance = {};
          break;
        case 1:
          devices.device = {};
          break;
        case 2:
          graph = {};
          break;
        case 3:
          trainer.plan = {};
          break;
        case 4:
          trainer.session = session = {};
          break;
        default:
          trainer.stepper = {};
      }
    };
    for (int i = 0; i < 6; ++i) {
      drop((i * (order % 2 ? 5 : 1) + order) % 6);
      if (trainer.stepper && trainer.session) {  // still works without the others
        trainer.write(0.5f);
        EXPECT_EQ(trainer.stepper.micro().outcome, static_cast<uint32_t>(CAIRN_STEP_APPLIED));
      }
    }
  }
}

}  // namespace
}  // namespace cairn_test
