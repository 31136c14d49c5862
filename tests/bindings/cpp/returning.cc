// Compiled twice into one program in which all calls return Results: without exceptions, and with those of the closures alone, which
// are stopped there.
#include <cstring>
#include <stdexcept>

#include "two_files.h"

namespace {

cairn::Result<void> refuse(const cairn::Forward&) {
#if defined(__cpp_exceptions)
  throw std::runtime_error("in its own way");
#else
  return cairn::Error(CAIRN_STATUS_INVALID_ARGUMENT, "in its own way");
#endif
}

}  // namespace

int THIS_FILE() {
  const auto instance = cairn::Instance::create().value();
  const auto device = cairn::Device::open(instance, "cpu", cairn::DeviceOptions().threads(1)).value();
  auto graph = cairn::Graph::create(instance).value();
  CHECK(graph.add(cairn::CustomOp("refuse", 1, 1, refuse)));
  const cairn::Value y = graph.op("refuse", {graph.input("x", {4}).value()}).value();
  CHECK(graph.freeze(0, {y}));
  auto session = cairn::Session::create(cairn::Plan::create(graph, device).value(), device).value();
  CHECK(session.write("x", {1.0f, 2.0f, 3.0f, 4.0f}));
  const auto done = session.run();
  CHECK(!done && done.error().status() == CAIRN_STATUS_INVALID_ARGUMENT);
  CHECK(std::strstr(done.error().what(), "forward callback failed") &&
        std::strstr(done.error().what(), "its own way"));
  return second_file();
}
