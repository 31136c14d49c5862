// The other way of the same header, in a file beside results.cc: whatever one of them has inline is its own. Calls throw, where
// the compiler knows exceptions; objects made and dropped for ever take no more memory.
#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <string>

#include "tests/bindings/cpp/check.h"

int throwing_calls();
int flat_memory(size_t objects);

#if CAIRN_HPP_THROWS

int throwing_calls() {
  const int before = check::failed;
  const auto instance = cairn::Instance::create();
  auto graph = cairn::Graph::create(instance);
  const cairn::Value x = graph.input("x", {8, 4});
  CHECK(cairn::attempt([&] { return graph.op("gelu", {x}); }).value() == 2);
  CHECK(cairn::attempt([&] { return graph.op("nothing", {x}); }).error().status() == CAIRN_STATUS_NOT_FOUND);
  try {
    cairn::Device::open(instance, "abacus");
    CHECK(false);
  } catch (const cairn::Error& error) {
    CHECK(error.status() == CAIRN_STATUS_NOT_FOUND);
  }
  bool thrown = false;
  try {
    graph.region("r", CAIRN_REGION_KEEP, [] { throw std::runtime_error("mine"); });
  } catch (const std::runtime_error& error) {
    thrown = std::string(error.what()) == "mine";
  }
  CHECK(thrown);
  graph.freeze(0, {graph.op("gelu", {x})});  // no region is open
  return check::failed - before;
}

namespace {

size_t resident_bytes() {
  size_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// one() makes and drops `made` objects; so often that there are `objects`. The C library's heap may move by some megabytes; a
// leak of 100 bytes each would be 100 MB of a million, and 10 of a hundred thousand.
template <class One>
void for_ever(const char* name, size_t objects, size_t made, const One& one) {
  constexpr size_t kSlack = size_t{4} << 20;
  const size_t count = objects / made;
  for (size_t i = 0; i < count / 10 + 1; ++i) one();
  const size_t before = resident_bytes();
  for (size_t i = 0; i < count; ++i) one();
  const size_t after = resident_bytes();
  const size_t grown = after > before ? after - before : 0;
  std::printf("%s: %zu objects, %zu KiB more\n", name, count * made, grown >> 10);
  CHECK(grown < kSlack);
}

cairn::Graph small_graph(const cairn::Instance& instance) {
  auto graph = cairn::Graph::create(instance);
  graph.add(cairn::CustomOp("mine", 1, 1, [](const cairn::Forward&) {}));
  const cairn::Value x = graph.input("x", {4, 4});
  const cairn::Value w = graph.parameter("w", {4, 4}, cairn::ParameterOptions::normal(0.5));
  graph.freeze(graph.op("mse", {graph.op("mul", {x, w}), x}));
  return graph;
}

}  // namespace

// `objects` of each of the cheap ones, a twentieth of the dear ones.
int flat_memory(size_t objects) {
  const int before = check::failed;
  const size_t cheap = objects, dear = objects / 20;
  const auto instance = cairn::Instance::create();
  const auto one_thread = cairn::DeviceOptions().threads(1);
  const auto device = cairn::Device::open(instance, "cpu", one_thread);
  for_ever("instances", cheap, 1, [] { (void)cairn::Instance::create(); });
  for_ever("references", cheap, 4, [&] {
    const cairn::Instance copy = instance;
    auto shared = cairn::share<cairn::Instance>(copy.get());
    const cairn::View<cairn::Instance> view(shared);
    const cairn::Instance moved = std::move(shared);
  });
  for_ever("graphs, ops of the program's own", cheap, 2, [&] { small_graph(instance); });
  for_ever("errors, tokenizers, texts", cheap, 3, [&] {
    CHECK(!cairn::attempt([&] { return cairn::Device::open(instance, "nothing"); }));
    const auto tokenizer = cairn::Tokenizer::bytes(instance);
    CHECK(tokenizer.decode(tokenizer.encode("words")) == "words");
  });
  for_ever("data sets", cheap, 1, [&] { (void)cairn::Dataset::random(instance, 1, 16, 4); });
  for_ever("devices", dear, 1, [&] { (void)cairn::Device::open(instance, "cpu", one_thread); });
  const auto graph = small_graph(instance);
  for_ever("plans", dear, 1, [&] { (void)cairn::Plan::create(graph, device); });
  const auto plan = cairn::Plan::create(graph, device);
  for_ever("tables", dear, 1, [&] { CHECK(!plan.values().empty()); });
  for_ever("sessions and steppers", dear, 2,
           [&] { (void)cairn::Stepper::create(cairn::Session::create(plan, device)); });
  return check::failed - before;
}

#else

int throwing_calls() { return 0; }
int flat_memory(size_t) { return 0; }

#endif
