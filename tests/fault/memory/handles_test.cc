// Handles made and released for ever take no memory: not a block of the heap, not a page of the process.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "cairn/cairn.hpp"
#include "tests/fault/memory/heap.h"
#include "tests/support/campaign.h"

namespace fault {
namespace {

int64_t resident_bytes() {
  int64_t whole = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> whole >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

constexpr int64_t kMax = 1'000'000;
// What the C library's heap may move by without any leak: a leak of one byte a handle is more in a long run.
constexpr int64_t kSlack = int64_t{8} << 20;

// Makes and releases `one` as often as the campaign wants: a million times, or a share of it.
void for_ever(int64_t share, const std::function<void()>& one) {
  const int64_t count = cairn::support::long_campaign() ? kMax : kMax / share;
  for (int i = 0; i < 100; ++i) one();  // what is set up once, and the heap's own caches
  const long blocks = heap::live();
  const int64_t resident = resident_bytes();
  for (int64_t i = 0; i < count; ++i) one();
  EXPECT_EQ(heap::live(), blocks) << count << " made and released";
  EXPECT_LT(resident_bytes() - resident, kSlack) << count << " made and released";
}

constexpr int64_t kSide = 4;

cairn::Graph small_graph(const cairn::Instance& instance) {
  auto graph = cairn::Graph::create(instance);
  const cairn::Value x = graph.input("x", {kSide, kSide});
  const cairn::Value w = graph.parameter("w", {kSide, kSide}, cairn::init_normal(0.5));
  cairn::Value y = 0;
  graph.region("only", CAIRN_REGION_KEEP, [&] { y = graph.op("mul", {x, w}); });
  graph.freeze(graph.op("mse", {y, x}));
  return graph;
}

struct Handles : testing::Test {
  Handles() {
    cairn_device_options_t one = CAIRN_DEVICE_OPTIONS_INIT;
    one.threads = 1;
    device = cairn::Device::open(instance, "cpu", one);
  }
  cairn::Instance instance = cairn::Instance::create();
  cairn::Device device;
};

// A share of a million where one takes a microsecond, and where it takes a millisecond.
constexpr int64_t kCheap = 50, kDear = 500;

TEST_F(Handles, ErrorsAndInstances) {
  for_ever(kCheap, [&] {
    cairn_error_release(cairn_error_create());
    cairn::Instance::create();
  });
}

TEST_F(Handles, ErrorsThatAreFilled) {
  cairn_error_t* const error = cairn_error_create();
  for_ever(kCheap, [&] {
    cairn_device_t* none = nullptr;
    ASSERT_EQ(cairn_device_open(instance.get(), "nothing", nullptr, &none, error), CAIRN_STATUS_NOT_FOUND);
  });
  cairn_error_release(error);
}

TEST_F(Handles, Graphs) {
  for_ever(kCheap, [&] { small_graph(instance); });
}

TEST_F(Handles, TextsTokenizersAndDatasets) {
  const cairn::Tokenizer tokenizer = cairn::Tokenizer::bytes(instance);
  for_ever(kCheap, [&] {
    cairn_text_t* text = nullptr;
    ASSERT_EQ(cairn_tokenizer_encode(tokenizer.get(), "words", 5, &text, nullptr), CAIRN_STATUS_OK);
    cairn_text_release(text);
    cairn::Tokenizer::bytes(instance);
    cairn::Dataset::random(instance, 1, 16, 8);
  });
}

TEST_F(Handles, Costs) {
  for_ever(kCheap, [&] { cairn::Costs::create(device); });
}

TEST_F(Handles, Devices) {
  cairn_device_options_t one = CAIRN_DEVICE_OPTIONS_INIT;
  one.threads = 1;
  for_ever(kDear, [&] { cairn::Device::open(instance, "cpu", one); });
}

TEST_F(Handles, Plans) {
  const auto graph = small_graph(instance);
  for_ever(kDear, [&] { cairn::Plan::create(graph, device); });
}

TEST_F(Handles, SessionsAndSteppers) {
  const auto plan = cairn::Plan::create(small_graph(instance), device);
  for_ever(kDear, [&] {
    const auto session = cairn::Session::create(plan, device);
    cairn::Stepper::create(session);
  });
}

TEST_F(Handles, Checkpoints) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("cairn-handles-" + std::to_string(::getpid()));
  const auto session = cairn::Session::create(cairn::Plan::create(small_graph(instance), device), device);
  cairn::Stepper::create(session).save(folder.string());
  for_ever(kDear, [&] { cairn::Checkpoint::open(instance, folder.string()).graph(); });
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fault
