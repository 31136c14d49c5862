// cairn.hpp where calls throw: exceptions carry what the error object knows; objects are references; options, tables, texts.
#include <memory_resource>
#include <span>

#include "tests/capi/rig.h"

namespace cairn_test {
namespace {

TEST(Cpp, ErrorsCarryStatusMessageAndFault) {
  const Devices devices;
  const auto graph = perceptron(devices.instance);
  cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
  options.budget_bytes = 1;
  try {
    cairn::Plan::create(graph, devices.device, options);
    FAIL() << "one byte is too little";
  } catch (const cairn::Error& e) {
    EXPECT_EQ(e.status(), CAIRN_STATUS_OVER_BUDGET);
    EXPECT_STREQ(e.status_name(), "OVER_BUDGET");
    EXPECT_NE(std::string(e.what()).find("budget"), std::string::npos);
    ASSERT_TRUE(e.fault().has_value());
    EXPECT_GT(e.fault()->smallest_budget_bytes, 1u);
  }
  try {
    cairn::Device::open(devices.instance, "abacus");
    FAIL() << "there is no abacus";
  } catch (const cairn::Error& e) {
    EXPECT_EQ(e.status(), CAIRN_STATUS_NOT_FOUND);
    EXPECT_FALSE(e.fault().has_value());
  }
}

TEST(Cpp, CopiesAreReferencesMovesLeaveNothing) {
  auto graph = cairn::Graph::create(cairn::Instance::create());
  cairn::Graph same = graph;
  same.input("x", {2, 2});
  EXPECT_EQ(graph.value_count(), 1u);
  cairn::Graph moved = std::move(same);
  EXPECT_FALSE(same);
  EXPECT_EQ(moved.get(), graph.get());
  graph = {};
  EXPECT_EQ(moved.value_count(), 1u);
}

TEST(Cpp, AttributesOfEveryKind) {
  auto graph = cairn::Graph::create(cairn::Instance::create());
  const auto x = graph.input("x", {4, 6});
  EXPECT_EQ(graph.info(graph.op("reshape", {x}, {{"shape", std::vector<int64_t>{3, 8}}})).dims[1], 8);
  EXPECT_EQ(graph.info(graph.op("slice", {x}, {{"axis", 1}, {"begin", 2}, {"end", 5}})).dims[1], 3);
  EXPECT_EQ(graph.info(graph.op("scale", {x}, {{"factor", 0.5}})).dims[1], 6);
  EXPECT_EQ(graph.info(graph.op("cast", {x}, {{"dtype", "bf16"}})).dtype, static_cast<uint32_t>(CAIRN_BF16));
  EXPECT_THROW(graph.op("scale", {x}, {{"factor", "half"}}), cairn::Error);
}

TEST(Cpp, VersionIsTheLibrarys) {
  EXPECT_EQ(cairn::version(), cairn_version());
  EXPECT_EQ(cairn::version_number(), cairn_version_number());
}

TEST(Cpp, HandlesOfCComeAndGo) {
  const auto instance = cairn::Instance::create();
  cairn_graph_t* raw = nullptr;
  ASSERT_EQ(cairn_graph_create(instance.get(), &raw, nullptr), CAIRN_STATUS_OK);
  {
    cairn::View<cairn::Graph> view(raw), copy(view);
    copy->input("x", {2, 2});
    view = copy;
    EXPECT_EQ(view->value_count(), 1u);
    auto shared = cairn::share<cairn::Graph>(raw);
    EXPECT_TRUE(shared == static_cast<const cairn::Graph&>(view));
  }
  EXPECT_EQ(cairn_graph_value_count(raw), 1u);
  auto owner = cairn::adopt<cairn::Graph>(raw);
  cairn_graph_release(owner.detach());
  EXPECT_FALSE(owner);
}

TEST(Cpp, TextsWithNulAreRefused) {
  auto graph = cairn::Graph::create(cairn::Instance::create());
  const std::string bad("a\0b", 3);
  const auto refuses = [&](const auto& call) {
    const auto result = cairn::attempt(call);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().status(), CAIRN_STATUS_INVALID_ARGUMENT);
    EXPECT_NE(std::string(result.error().what()).find("NUL at byte 1"), std::string::npos)
        << result.error().what();
  };
  refuses([&] { return graph.input(bad, {1}); });
  refuses([&] { return graph.op(bad, {1}); });
  refuses([&] { return graph.op("cast", {1}, {{"dtype", bad}}); });
  refuses([&] { graph.save(std::filesystem::path(bad)); });
  refuses([&] { graph.add(cairn::CustomOp(bad, 1, 1, [](const cairn::Forward&) {})); });
  refuses([&] {
    return cairn::Device::open(cairn::Instance::create(), "cpu", cairn::DeviceOptions().disk_directory(bad));
  });
  EXPECT_EQ(graph.find(bad), 0u);
  EXPECT_EQ(graph.value_count(), 0u);
}

TEST(Cpp, TablesAreWalkedOver) {
  const Devices devices;
  const auto graph = perceptron(devices.instance);
  const auto plan = cairn::Plan::create(graph, devices.device);
  size_t count = 0;
  for (const cairn_plan_value_t& row : plan.values()) count += row.name != nullptr ? 1 : 0;
  EXPECT_EQ(count, plan.summary().value_count);
  EXPECT_EQ(plan.values().size(), count);
  EXPECT_STREQ(cairn::Plan(plan).values()[0].name, plan.values()[0].name);  // of a plan that is gone by then
  EXPECT_EQ(graph.values().size(), graph.value_count());
  EXPECT_STREQ(graph.values()[0].name, "x");
  EXPECT_EQ(std::vector<cairn_op_info_t>(cairn::ops()).size(), cairn::ops().size());
  EXPECT_TRUE(cairn::Plan().values().empty());
}

TEST(Cpp, RegionsEndWhereWhatIsInThemThrows) {
  auto graph = cairn::Graph::create(cairn::Instance::create());
  const auto x = graph.input("x", {2, 2});
  EXPECT_THROW(graph.region("a", CAIRN_REGION_KEEP, [&] { return graph.op("nothing", {x}); }), cairn::Error);
  EXPECT_THROW(graph.region("b", CAIRN_REGION_KEEP, [] { throw 1; }), int);
  const auto y = graph.region("c", CAIRN_REGION_KEEP, [&] { return graph.op("gelu", {x}); });
  graph.freeze(0, {y});
}

TEST(Cpp, SpansOfManyThings) {
  const Devices devices;
  const auto graph = perceptron(devices.instance, CAIRN_REGION_KEEP, false);
  auto session = cairn::Session::create(cairn::Plan::create(graph, devices.device), devices.device);
  session.initialise(1);
  std::vector<float> x(kBatch * kWidth, 0.5f), y(x.size()), again(x.size());
  session.write("x", std::span<const float>(x));
  session.run();
  session.read("y", y);
  session.read("y", std::span<float>(again));
  EXPECT_EQ(y, again);
  EXPECT_EQ(y, session.read<float>("y", y.size()));
  const std::span<const float> seen = cairn::Span<const float>(y);
  EXPECT_EQ(seen.data(), y.data());
  EXPECT_THROW(session.write("x", {1.0f, 2.0f}), cairn::Error);
}

// Bits of other types are as many bytes, and other numbers.
TEST(Cpp, NumbersAreOfTheValuesType) {
  const Devices devices;
  auto graph = cairn::Graph::create(devices.instance);
  const auto table = graph.parameter("table", {4, 2}, cairn::ParameterOptions::normal(1.0));
  const auto ids = graph.input("ids", {2}, CAIRN_I32), x = graph.input("x", {2, 2});
  const auto half = graph.op("cast", {x}, {{"dtype", "bf16"}});
  const auto y = graph.op("add", {graph.op("embedding", {table, ids}), x});
  graph.name(y, "y");
  graph.name(half, "half");
  graph.freeze(cairn::Value{0}, {y, half});
  auto session = cairn::Session::create(cairn::Plan::create(graph, devices.device), devices.device);
  const auto refused = [&](const auto& call, const std::vector<std::string>& words) {
    try {
      call();
      ADD_FAILURE() << "numbers of another type were taken for " << words[0];
    } catch (const cairn::Error& error) {
      EXPECT_EQ(error.status(), CAIRN_STATUS_INVALID_ARGUMENT);
      for (const std::string& word : words)
        EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  };
  refused([&] { session.write("x", {0, 1, 2, 3}); }, {"'x' is f32", "int32_t"});
  refused([&] { session.write("x", std::vector<double>{0, 1}); }, {"'x' is f32", "double"});
  refused([&] { session.write("ids", {0.0f, 1.0f}); }, {"'ids' is i32", "float"});
  refused([&] { session.write("table", std::vector<int64_t>(4)); }, {"'table' is f32", "int64_t"});
  session.write("ids", {0, 1});
  session.write("ids", {2u, 3u});
  session.write("x", {0.0f, 1.0f, 2.0f, 3.0f});
  session.initialise(1);
  session.run();
  std::vector<int32_t> whole(4);
  refused([&] { session.read("y", whole); }, {"'y' is f32", "int32_t"});
  refused([&] { (void)session.read<int>("y", 4); }, {"'y' is f32"});
  refused([&] { (void)session.read<float>("half", 2); }, {"'half' is bf16", "float"});
  EXPECT_EQ(session.read<uint16_t>("half", 4)[1], 0x3f80);
  EXPECT_EQ(session.read<std::byte>("y", 16).size(), 16u);  // bytes of any
  struct Point {
    float x, y;
  };
  EXPECT_EQ(session.read<Point>("x", 2)[1].y, 3.0f);
  EXPECT_EQ(session.info("ids").dtype, uint32_t{CAIRN_I32});
  EXPECT_THROW((void)session.info("nothing"), cairn::Error);
  // Refused before memory is taken for them, and where the count of bytes wraps around to the right one.
  for (const size_t count : {size_t{0}, size_t{1}, size_t{5}, size_t{1} << 45, (SIZE_MAX >> 2) + 5, SIZE_MAX})
    refused([&] { (void)session.read<float>("x", count); }, {"'x' is f32", "16 bytes"});
  EXPECT_THROW((void)session.read<float>("nothing", SIZE_MAX), cairn::Error);
}

TEST(Cpp, OptionsHoldWhatTheyAreGiven) {
  const Devices devices;
  auto costs = cairn::Costs::create(devices.device);
  cairn::PlanOptions made;
  {
    const cairn::PlanOptions options = cairn::PlanOptions()
                                           .optimizer(std::string("sg") + "d")
                                           .hyper("momentum", 0.9)
                                           .hyper("momentum", 0.5, "*3.weight")
                                           .group("*3.weight")
                                           .amp(CAIRN_AMP_BF16)
                                           .amp_rule("full", "linear", "layer0")
                                           .tiers({CAIRN_TIER_HOST, CAIRN_TIER_DISK})
                                           .policy(CAIRN_REGION_RECOMPUTE)
                                           .region("layer[0-1]", CAIRN_REGION_KEEP)
                                           .micro_steps(2)
                                           .costs(costs, true)
                                           .budget_share(0.9);
    made = options;
  }
  made.with_raw([&](const cairn_plan_options_t& raw) {
    EXPECT_STREQ(raw.optimizer, "sgd");
    if (raw.hyper_count != 2) throw std::runtime_error("two hypers");
    EXPECT_EQ(raw.hypers[0].group, nullptr);
    EXPECT_STREQ(raw.hypers[1].group, "*3.weight");
    EXPECT_STREQ(raw.groups[0].pattern, "*3.weight");
    EXPECT_EQ(raw.groups[0].optimizer, nullptr);
    EXPECT_STREQ(raw.amp_rules[0].region, "layer0");
    EXPECT_EQ(raw.tier_count, 2u);
    EXPECT_EQ(raw.costs, costs.get());
    EXPECT_EQ(raw.force_costs, 1u);
    if (raw.region_policy_count != 1) throw std::runtime_error("one policy for regions");
    EXPECT_STREQ(raw.region_policies[0].pattern, "layer[0-1]");
    EXPECT_EQ(raw.region_policies[0].policy, static_cast<uint32_t>(CAIRN_REGION_KEEP));
    return 0;
  });
  const auto graph = perceptron(devices.instance);
  const auto plan = cairn::Plan::create(graph, devices.device, made);
  EXPECT_STREQ(plan.ops()[0].amp_class, "full");
  EXPECT_STREQ(plan.ops()[1].amp_class, "half");
  const auto session = cairn::Session::create(plan, devices.device);
  const auto options = cairn::StepperOptions()
                           .micro_steps(2)
                           .hyper("momentum", 0.25, "*3.weight")
                           .rate(0.1, 0.01)
                           .total_steps(20)
                           .schedule(cairn::Schedules().add("linear", 10).add("cosine"));
  const auto stepper = cairn::Stepper::create(session, options);
  EXPECT_EQ(stepper.hyper("momentum", ""), 0.9);
  EXPECT_EQ(stepper.hyper("momentum", "*3.weight"), 0.25);
  EXPECT_EQ(cairn::schedule_rates(options, 0, 20).size(), 20u);
  EXPECT_THROW(cairn::schedule_rates(cairn::StepperOptions().rate(-1), 0, 1), cairn::Error);
  EXPECT_THROW(cairn::schedule_rates(options, 0, SIZE_MAX / 4), cairn::Error);
}

TEST(Cpp, ProblemsAreSolved) {
  const Devices devices;
  const auto plan = cairn::Plan::create(perceptron(devices.instance), devices.device);
  const std::string solved = devices.instance.solve(plan.render(CAIRN_RENDER_PROBLEM_JSON));
  EXPECT_NE(solved.find("cairn.plan/1"), std::string::npos);
  EXPECT_THROW(devices.instance.solve("no JSON"), cairn::Error);
}

// Memory that counts, and fails from a limit on as C++ does.
class Limited : public std::pmr::memory_resource {
 public:
  explicit Limited(size_t limit) : limit_(limit) {}
  size_t in_use = 0;

 private:
  void* do_allocate(size_t bytes, size_t alignment) override {
    if (in_use + bytes > limit_) throw std::bad_alloc();
    in_use += bytes;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* block, size_t bytes, size_t alignment) override {
    in_use -= bytes;
    std::pmr::new_delete_resource()->deallocate(block, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
  size_t limit_;
};

TEST(Cpp, HooksOfTheProgram) {
  Limited little(100), enough(size_t{1} << 30);
  std::vector<std::string> told;
  const auto log = [&](int32_t, const char* message) {
    told.push_back(message);
    throw std::runtime_error("goes no further");
  };
  for (Limited* memory : {&little, &enough}) {
    const auto instance = cairn::Instance::create(cairn::InstanceOptions().log(log).memory(*memory));
    auto graph = cairn::Graph::create(instance);
    const auto x = graph.input("x", {4, 4});
    graph.parameter("unused", {4, 4});
    graph.freeze(graph.op("mse", {graph.op("mul", {x, graph.parameter("w", {4, 4})}), x}));
    EXPECT_FALSE(told.empty());
    const auto device = cairn::Device::open(instance, "cpu", cairn::DeviceOptions().threads(1));
    const auto plan = cairn::Plan::create(graph, device);
    const auto session = cairn::attempt([&] { return cairn::Session::create(plan, device); });
    EXPECT_EQ(session.has_value(), memory == &enough);
    if (!session) {
      EXPECT_EQ(session.error().status(), CAIRN_STATUS_OUT_OF_MEMORY);
      EXPECT_TRUE(session.error().fault().has_value());
    } else {
      EXPECT_GE(enough.in_use, plan.summary().peak_bytes[0]);
    }
  }
  EXPECT_EQ(little.in_use + enough.in_use, 0u);
}

// Calls with an op of the program's own, y = x^2 by hand, that may be made to fail.
cairn::Result<double> squared(const Devices& devices, const std::function<void()>& spoil,
                              const std::shared_ptr<int>& kept = nullptr) {
  return cairn::attempt([&]() -> double {
    auto graph = cairn::Graph::create(devices.instance);
    graph.add(cairn::CustomOp("square", 1, 1,
                              [spoil, kept](const cairn::Forward& run) {
                                spoil();
                                const auto x = run.input(0).data<const float>();
                                const auto y = run.output(0).data<float>();
                                auto* squares = static_cast<float*>(run.workspace());
                                for (size_t i = 0; i < x.size(); ++i) squares[i] = x[i] * x[i];
                                for (size_t i = 0; i < x.size(); ++i) y[i] = squares[i];
                              })
                  .workspace([](const std::vector<cairn::TensorType>& in) {
                    return static_cast<int64_t>(sizeof(float)) * in[0].dims[0];
                  })
                  .recomputable()
                  .backward([](const cairn::Backward& run) {
                    const auto x = run.input(0).data<const float>();
                    const auto dy = run.output_gradient(0).data<const float>();
                    const auto dx = run.input_gradient(0).data<float>();
                    for (size_t i = 0; i < dx.size(); ++i) dx[i] = 2 * x[i] * (dy.empty() ? 0 : dy[i]);
                  }));
    const auto w = graph.parameter("w", {4}, cairn::init_constant(3));
    graph.freeze(graph.op("mse", {graph.op("square", {w}), graph.input("target", {4})}));
    auto session = cairn::Session::create(
        cairn::Plan::create(graph, devices.device, cairn::PlanOptions().no_optimizer()), devices.device);
    session.initialise(1);
    session.write("target", {5.0f, 5.0f, 5.0f, 5.0f});
    graph = {};
    session.run();
    EXPECT_TRUE(kept == nullptr || kept.use_count() > 1) << "the session may call it";
    return session.read<float>("w/gradient", 4)[0];
  });
}

TEST(Cpp, OpsOfTheProgramsOwn) {
  const Devices devices;
  const auto kept = std::make_shared<int>(0);
  EXPECT_EQ(squared(
                devices, [] {}, kept)
                .value(),
            2 * (9.0 - 5.0) * 2 * 3);  // d/dw (w^2 - 5)^2
  EXPECT_EQ(kept.use_count(), 1) << "closures are gone with what calls them";
}

TEST(Cpp, NothingThrownCrossesTheAbi) {
  const Devices devices;
  for (cairn_status_t status = 1; status <= CAIRN_STATUS_INTERNAL; ++status) {
    const auto result = squared(devices, [status] { throw cairn::Error(status, "it was told to"); });
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().status(), status);
    EXPECT_NE(std::string(result.error().what()).find("custom op 'square': its forward"), std::string::npos);
    EXPECT_NE(std::string(result.error().what()).find("it was told to"), std::string::npos);
  }
  const auto fails = [&](cairn_status_t status, const std::string& words,
                         const std::function<void()>& spoil) {
    const auto result = squared(devices, spoil);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().status(), status) << result.error().what();
    EXPECT_NE(std::string(result.error().what()).find(words), std::string::npos) << result.error().what();
  };
  fails(CAIRN_STATUS_OUT_OF_MEMORY, "no memory", [] { throw std::bad_alloc(); });
  fails(CAIRN_STATUS_INVALID_ARGUMENT, "my own words", [] { throw std::runtime_error("my own words"); });
  fails(CAIRN_STATUS_INVALID_ARGUMENT, "no std::exception", [] { throw 7; });
}

TEST(Cpp, ShapesOfTheProgramsOwn) {
  auto graph = cairn::Graph::create(cairn::Instance::create());
  const auto x = graph.input("x", {4, 6});
  const auto nothing = [](const cairn::Forward&) {};
  using Types = std::vector<cairn::TensorType>;
  graph.add(cairn::CustomOp("flip", 1, 2, nothing).shape([](const Types& in) {
    return Types{{{in[0].dims[1], in[0].dims[0]}, CAIRN_I32}, in[0]};
  }));
  const auto both = graph.ops<2>("flip", {x});
  EXPECT_EQ(graph.info(both[0]).dims[0], 6);
  EXPECT_EQ(graph.info(both[0]).dtype, static_cast<uint32_t>(CAIRN_I32));
  EXPECT_EQ(graph.info(both[1]).dims[0], 4);
  graph.add(cairn::CustomOp("few", 1, 2, nothing).shape([](const Types&) { return Types(1); }));
  graph.add(cairn::CustomOp("throws", 1, 1, nothing).shape([](const Types&) -> Types {
    throw std::runtime_error("no shape");
  }));
  const auto fails = [&](const char* name, const std::string& words) {
    const auto result = cairn::attempt([&] { return graph.op(name, {x}); });
    ASSERT_FALSE(result.has_value());
    EXPECT_NE(std::string(result.error().what()).find(words), std::string::npos) << result.error().what();
  };
  fails("few", "1 types for 2 outputs");
  fails("throws", "no shape");
  const auto kept = std::make_shared<int>(0);
  const cairn::CustomOp again("flip", 1, 1, [kept](const cairn::Forward&) {});
  EXPECT_THROW(graph.add(again), cairn::Error);  // there is one of that name
  EXPECT_EQ(kept.use_count(), 2);                // this test's and that op's
}

}  // namespace
}  // namespace cairn_test
