// Does a format do what its row and its codec say? Compiled by format_test.py with the sources that read the rows as they
// are after its edits, which add int4.
#include <cstdio>
#include <cstring>

#include "kernels/cuda/rows.h"
#include "runtime/formats/codecs.h"
#include "runtime/io/checkpoint.h"
#include "runtime/io/inspect.h"

namespace {

using namespace cairn;

bool good = true;
void expect(const char* what, bool holds) {
  std::printf("%s: %s\n", what, holds ? "agrees" : "differs");
  good = good && holds;
}

std::shared_ptr<graph::Graph> model() {
  auto g = std::make_shared<graph::Graph>();
  const auto ids = g->input("ids", {DType::kI32, {8}}), targets = g->input("targets", {DType::kI32, {8}});
  const auto table =
      g->parameter("table", {DType::kF32, {11, 32}}, {.init = graph::Init::kNormal, .init_scale = 1});
  auto x = g->op("embedding", {table, ids})[0];
  x = g->op("linear",
            {x, g->parameter("w", {DType::kF32, {32, 32}},
                             {.frozen = true, .init = graph::Init::kNormal, .init_scale = 0.5})})[0];
  const auto loss = g->op("linear_cross_entropy", {x, table, targets});
  g->freeze(loss[0], loss[1], {});
  return g;
}

struct Run {
  std::shared_ptr<engine::Session> session;
  std::unique_ptr<step::Stepper> stepper;

  Run(const char* on, const std::string& format) {
    const auto device = device::open(on, {.threads = 1});
    engine::PlanOptions options;
    options.formats = {{"w", format}};
    session = std::make_shared<engine::Session>(engine::compile(model(), *device, options), device);
    step::initialise(*session, 7);
    stepper = std::make_unique<step::Stepper>(session, step::Options{});
  }
  int32_t w() const { return session->plan().joint->find("w"); }
  std::vector<float> weights() const {
    std::vector<float> numbers(32 * 32);
    session->read_declared(w(), numbers.data());
    return numbers;
  }
  std::vector<double> train(int steps) {
    std::vector<double> losses;
    const int32_t words[8] = {3, 1, 4, 1, 5, 9, 2, 6};
    for (int i = 0; i < steps; ++i) {
      for (const char* input : {"ids", "targets"})
        session->write(session->plan().joint->find(input), words, 32);
      losses.push_back(stepper->micro().loss);
    }
    return losses;
  }
};

}  // namespace

int main(int, char** argv) {
  for (const char* device : {"reference", "cpu"}) {
    Run stored(device, "int4"), plain(device, "f32");
    const std::vector<float> weights = stored.weights();
    plain.session->write_declared(plain.w(), weights.data());
    plain.session->parameters_changed();
    expect(device, stored.train(3) == plain.train(3) && stored.weights() == weights);
  }
  Run saved("cpu", "int4"), restored("cpu", "int4");
  saved.train(2);
  io::save(*saved.stepper, argv[1], {});
  const io::Checkpoint checkpoint(argv[1]);
  checkpoint.restore(*restored.stepper);
  expect("checkpoint", restored.train(2) == saved.train(2) && restored.weights() == saved.weights());
  expect("inspect", io::inspect(argv[1]).find("\"w\": {\"dtype\": \"int4\"") != std::string::npos);
  expect("bytes",
         saved.session->plan().joint->values[static_cast<size_t>(saved.w())].desc.bytes() == 32 * 20);

  const TensorDesc desc{dtype_from_name("int4"), {32, 32}}, wide{DType::kF32, {32, 32}};
  std::vector<char> bytes(static_cast<size_t>(desc.bytes()));
  saved.session->read(saved.w(), bytes.data(), desc.bytes());
  std::vector<float> numbers(32 * 32);
  const Attrs attrs = {{"dtype", std::string("f32")}};
  const auto kernel = kernels::cuda::make_dequantise({"dequantise", {&desc, 1}, {&wide, 1}, 1, 1, &attrs, 1});
  const Tensor in{desc, bytes.data()}, out{wide, numbers.data()};
  if (kernel != nullptr) kernel->run({{&in, 1}, {&out, 1}});
  expect("cuda", kernel != nullptr && numbers == saved.weights());
  return good ? 0 : 1;
}
