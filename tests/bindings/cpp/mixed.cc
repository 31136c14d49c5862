// Compiled twice into one program, in two versions of C++, whose Results are of different types: ops of either file's own run, and
// fail, by what that file compiled.
#include <cstring>
#include <stdexcept>
#include <vector>

#include "two_files.h"

namespace {

void one_op(const cairn::Instance& instance, const cairn::Device& device, cairn_status_t status) {
  auto graph = cairn::Graph::create(instance);
  graph.add(
      cairn::CustomOp("twice", 1, 1, [status](const cairn::Forward& run) -> cairn::Result<void> {
        const auto x = run.input(0).data<const float>();
        const auto y = run.output(0).data<float>();
        for (size_t i = 0; i < x.size(); ++i) y[i] = 2 * x[i];
        if (status == CAIRN_STATUS_OK) return {};
        return cairn::Error(status, "it was told to");
      }).shape([](const std::vector<cairn::TensorType>& in) {
          return in;
        }).workspace([](const std::vector<cairn::TensorType>&) -> cairn::Result<int64_t> { return 64; }));
  const cairn::Value y = graph.op("twice", {graph.input("x", {2})});
  graph.name(y, "y");
  graph.freeze(0, {y});
  auto session = cairn::Session::create(cairn::Plan::create(graph, device), device);
  session.write("x", {1.0f, 4.0f});
  const auto done = cairn::attempt([&] { session.run(); });
  if (status == CAIRN_STATUS_OK)
    CHECK(done && session.read<float>("y", 2)[1] == 8);
  else
    CHECK(!done && done.error().status() == status && std::strstr(done.error().what(), "it was told to"));
}

}  // namespace

int THIS_FILE() {
  const auto instance = cairn::Instance::create();
  const auto device = cairn::Device::open(instance, "cpu", cairn::DeviceOptions().threads(1));
  for (const cairn_status_t status : {CAIRN_STATUS_OK, CAIRN_STATUS_IO, CAIRN_STATUS_OK})
    one_op(instance, device, status);
  return second_file();
}
