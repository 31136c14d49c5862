// Calls that return a Result: in the program itself, which may be compiled without exceptions and RTTI.
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/bindings/cpp/check.h"

static_assert(CAIRN_HPP_THROWS == 0, "compiled with CAIRN_HPP_NO_EXCEPTIONS, or without exceptions");
#if defined(__cpp_lib_expected)
static_assert(std::is_base_of_v<std::expected<cairn::Plan, cairn::Error>, cairn::Result<cairn::Plan>>);
#endif
static_assert(std::is_same_v<cairn::Outcome<int>, cairn::Result<int>>);
static_assert(std::is_nothrow_move_constructible_v<cairn::Graph> &&
              std::is_nothrow_move_assignable_v<cairn::Graph>);

// Of throwing.cc, where calls throw if anything does; how many checks failed.
int throwing_calls();
int flat_memory(size_t objects);

namespace {

// A failed step ends the function with its error.
#define TRY(name, call)                                        \
  auto name##_result = (call);                                 \
  if (!name##_result) return std::move(name##_result).error(); \
  auto name = *std::move(name##_result)

cairn::Result<cairn::Graph> perceptron(const cairn::Instance& instance, int64_t width) {
  TRY(graph, cairn::Graph::create(instance));
  TRY(x, graph.input("x", {8, 4}));
  TRY(w, graph.parameter("w", {2, width}, cairn::ParameterOptions::normal(0.3)));
  TRY(y, graph.region("only", CAIRN_REGION_PLANNER_DECIDES, [&] { return graph.op("linear", {x, w}); }));
  TRY(target, graph.input("target", {8, 2}));
  TRY(loss, graph.op("mse", {y, target}));
  if (auto frozen = graph.freeze(loss, {y}); !frozen) return frozen.error();
  return graph;
}

void trains(const cairn::Instance& instance, const cairn::Device& device) {
  const auto graph = perceptron(instance, 4);
  CHECK(graph.has_value());
  const auto refused = cairn::Plan::create(*graph, device, cairn::PlanOptions().budget_bytes(1));
  CHECK(!refused && refused.error().status() == CAIRN_STATUS_OVER_BUDGET &&
        refused.error().fault().has_value());
  const uint64_t smallest = refused.error().fault()->smallest_budget_bytes;
  const auto plan = cairn::Plan::create(*graph, device, cairn::PlanOptions().budget_bytes(smallest));
  CHECK(plan && plan->summary()->peak_bytes[CAIRN_TIER_DEVICE] <= smallest);
  auto session = cairn::Session::create(*plan, device);
  CHECK(session && session->initialise(1));
  auto stepper = cairn::Stepper::create(*session, cairn::StepperOptions().rate(1e-2));
  CHECK(stepper.has_value());
  CHECK(session->write("x", std::vector<float>(32, 0.5f)) &&
        session->write("target", std::vector<float>(16, 1.0f)));
  double first = 0, last = 0;
  for (int i = 0; i < 100; ++i) {
    last = stepper->micro().value().loss;
    if (i == 0) first = last;
  }
  CHECK(last < 0.1 * first);
  const auto run = session->run();
  CHECK(!run && run.error().status() == CAIRN_STATUS_WRONG_STATE &&
        std::strstr(run.error().what(), "stepper") != nullptr);
  CHECK(session->read<float>("w", 8)->size() == 8);
  CHECK(session->read<float>("w", 7).error().status() == CAIRN_STATUS_INVALID_ARGUMENT);
  CHECK(session->read<int32_t>("w", 8).error().status() == CAIRN_STATUS_INVALID_ARGUMENT);
  const auto rates = cairn::schedule_rates(cairn::StepperOptions(), 0, SIZE_MAX);
  CHECK(!rates && std::strstr(rates.error().what(), "at most 134217728") != nullptr);
  const auto whole = session->write("x", std::vector<int32_t>(32));
  CHECK(!whole && std::strstr(whole.error().what(), "'x' is f32, and numbers of int32_t") != nullptr);
}

void fails(const cairn::Instance& instance) {
  const auto device = cairn::Device::open(instance, "abacus");
  CHECK(!device && device.error().status() == CAIRN_STATUS_NOT_FOUND && !device.error().fault());
  CHECK(std::string(device.error().status_name()) == "NOT_FOUND");
  CHECK(perceptron(instance, 5).error().status() == CAIRN_STATUS_INVALID_ARGUMENT);
  // A region ends where what is in it fails, and its siblings go on.
  auto graph = cairn::Graph::create(instance).value();
  const cairn::Value x = graph.input("x", {8, 4}).value();
  CHECK(!graph.region("a", CAIRN_REGION_KEEP, [&] { return graph.op("nothing", {x}); }));
  CHECK(graph.region("b", CAIRN_REGION_KEEP, [&] { return graph.op("gelu", {x}); }));
  CHECK(graph.region("c", CAIRN_REGION_KEEP, [] {}));
  CHECK(std::string(graph.info(3).error().status_name()) == "NOT_FOUND");
  CHECK(graph.input(std::string("a\0b", 3), {1}).error().status() == CAIRN_STATUS_INVALID_ARGUMENT);
  CHECK(cairn::Result<int>(cairn::Error(3, "no")).value_or(4) == 4 && cairn::Result<int>(5).value_or(4) == 5);
  CHECK(cairn::Graph().value_count() == 0 &&
        cairn::Graph().input("x", {1}).error().status() != CAIRN_STATUS_OK);
}

// What an op of the program's own returns is what the run fails with.
template <class Fail>
cairn::Result<void> run_of(const cairn::Instance& instance, const cairn::Device& device, Fail fail) {
  TRY(graph, cairn::Graph::create(instance));
  if (auto added = graph.add(cairn::CustomOp("refuse", 1, 1, fail)); !added) return added;
  TRY(x, graph.input("x", {4}));
  TRY(y, graph.op("refuse", {x}));
  if (auto frozen = graph.freeze(0, {y}); !frozen) return frozen;
  TRY(plan, cairn::Plan::create(graph, device));
  TRY(session, cairn::Session::create(plan, device));
  if (auto written = session.write("x", {1.0f, 2.0f, 3.0f, 4.0f}); !written) return written;
  return session.run();
}

void every_status(const cairn::Instance& instance, const cairn::Device& device) {
  for (cairn_status_t status = 1; status <= CAIRN_STATUS_INTERNAL; ++status) {
    const auto words = run_of(instance, device, [status](const cairn::Forward&) -> cairn::Result<void> {
      return cairn::Error(status, "it was told to");
    });
    CHECK(!words && words.error().status() == status);
    CHECK(std::strstr(words.error().what(), "'refuse'") &&
          std::strstr(words.error().what(), "it was told to"));
    const auto number = run_of(instance, device, [status](const cairn::Forward&) { return status; });
    CHECK(!number && number.error().status() == status && !std::strstr(number.error().what(), "told"));
  }
  std::string long_words;
  for (int i = 0; i < 700; ++i) long_words += "\xc3\xa4";  // two bytes each
  const auto cut = run_of(instance, device, [&](const cairn::Forward&) -> cairn::Result<void> {
    return cairn::Error(CAIRN_STATUS_IO, long_words);
  });
  const char* kept = std::strchr(cut.error().what(), '\xc3');
  CHECK(kept && std::strlen(kept) > 800 && std::strlen(kept) % 2 == 0);
  CHECK(run_of(instance, device,
               [](const cairn::Forward& run) -> cairn::Result<void> {
                 const auto x = run.input(0).data<double>();
                 return x ? cairn::Result<void>() : x.error();
               })
            .error()
            .status() == CAIRN_STATUS_INVALID_ARGUMENT);
  CHECK(run_of(instance, device, [](const cairn::Forward& run) {
    const auto x = run.input(0).data<float>(), y = run.output(0).data<float>();
    for (size_t i = 0; i < x->size(); ++i) (*y)[i] = (*x)[i];
  }));
}

// Closures that answer questions about types fail by what they return, too.
void every_question(const cairn::Instance& instance, const cairn::Device& device) {
  using Types = std::vector<cairn::TensorType>;
  const auto nothing = [](const cairn::Forward&) {};
  const cairn::Error lost(CAIRN_STATUS_IO, "the table of sizes is gone");
  auto graph = cairn::Graph::create(instance).value();
  const cairn::Value x = graph.input("x", {4}).value();
  CHECK(graph.add(
      cairn::CustomOp("a", 1, 1, nothing).shape([&](const Types&) -> cairn::Result<Types> { return lost; })));
  const auto refused = graph.op("a", {x});
  CHECK(!refused && refused.error().status() == CAIRN_STATUS_IO &&
        std::strstr(refused.error().what(), "sizes is gone"));
  CHECK(graph.add(cairn::CustomOp("b", 1, 1, nothing)
                      .shape([](const Types& in) -> cairn::Result<Types> { return in; })
                      .workspace([&](const Types&) -> cairn::Result<int64_t> { return lost; })));
  const auto y = graph.op("b", {x});
  CHECK(y && graph.freeze(0, {*y}));
  const auto plan = cairn::Plan::create(graph, device);
  CHECK(!plan && std::strstr(plan.error().what(), "sizes is gone"));
  auto counted = cairn::Graph::create(instance).value();
  unsigned asked = 0;  // one that is not const, of another number
  CHECK(counted.add(
      cairn::CustomOp("c", 1, 1, nothing).workspace([asked](const Types&) mutable { return 8u + ++asked; })));
  const auto z = counted.op("c", {counted.input("x", {4}).value()});
  CHECK(z && counted.freeze(0, {*z}) && cairn::Plan::create(counted, device));
}

}  // namespace

//   results [OBJECTS]: so many are made and dropped, too
int main(int argc, char** argv) {
  const auto instance = cairn::Instance::create();
  CHECK(instance.has_value());
  const auto device = cairn::Device::open(*instance, "cpu", cairn::DeviceOptions().threads(1));
  CHECK(device && !instance->devices()->empty());
  trains(*instance, *device);
  fails(*instance);
  every_status(*instance, *device);
  every_question(*instance, *device);
  CHECK(throwing_calls() == 0);
  if (argc > 1) CHECK(flat_memory(std::strtoull(argv[1], nullptr, 10)) == 0);
  return check::failed == 0 ? 0 : 1;
}
