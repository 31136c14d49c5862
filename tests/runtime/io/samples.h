// Small models, plans and files that the tests of this folder and the fuzz targets begin with.
#pragma once
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/plan/plan.h"

namespace cairn::test {

// A little transformer block with nested regions, an empty region, tied and frozen parameters, a random op,
// optional operands, attributes of every kind that the op table has, and values renamed in awkward ways.
inline std::shared_ptr<graph::Graph> sample_graph() {
  auto g = std::make_shared<graph::Graph>();
  const auto ids = g->input("ids", {DType::kI32, {2, 4}});
  const auto targets = g->input("targets", {DType::kI32, {2, 4}});
  const auto table =
      g->parameter("wte", {DType::kF32, {11, 8}}, {.init = graph::Init::kNormal, .init_scale = 0.02});
  auto x = g->op("embedding", {table, ids})[0];
  const auto block = g->region_begin("h0", Policy::kRecompute);
  const auto gamma = g->parameter("h0.ln.weight", {DType::kF32, {8}}, {.decay = false, .init_scale = 1});
  const auto attn = g->region_begin("attn", Policy::kOffload, "disk");
  const auto normed = g->op("layernorm", {x, gamma}, {{"eps", 1e-6}})[0];
  const auto qkv =
      g->parameter("h0.qkv", {DType::kF32, {24, 8}}, {.init = graph::Init::kUniform, .init_scale = 0.1});
  const auto packed = g->op("linear", {normed, qkv})[0];
  const auto y = g->op("attention", {packed}, {{"heads", int64_t{2}}})[0];
  g->region_end(attn);
  g->region_end(g->region_begin("empty", Policy::kKeep));
  x = g->op("add", {x, y})[0];
  const auto mlp = g->region_begin("mlp", Policy::kKeep);
  const auto w = g->parameter("h0.mlp", {DType::kF32, {8, 8}},
                              {.frozen = true, .init = graph::Init::kNormal, .init_scale = 0.3});
  auto z = g->op("linear", {x, w}, {{"activation", std::string("gelu_tanh")}})[0];
  z = g->op("dropout", {z}, {{"rate", 0.1}})[0];
  g->region_end(mlp);
  x = g->op("add", {x, z})[0];
  g->region_end(block);
  const auto flat = g->op("reshape", {x}, {{"shape", std::vector<int64_t>{8, 8}}})[0];
  const auto again = g->op("reshape", {flat}, {{"shape", std::vector<int64_t>{2, 4, 8}}})[0];
  g->region_end(g->region_begin("last", Policy::kPlannerDecides));
  const auto loss = g->op("linear_cross_entropy", {again, table, targets});
  // Names that collide with default names of other ops while the graph is built again.
  const std::string taken = g->values()[again].name;
  g->name_value(again, "features");
  g->name_value(flat, taken);
  g->freeze(loss[0], loss[1], {again});
  return g;
}

struct SamplePlan {
  plan::Problem problem;
  plan::Plan plan;
};

inline SamplePlan sample_plan() {
  SamplePlan s;
  plan::Problem& p = s.problem;
  p.values.push_back({"weights", 256, true});
  p.regions.push_back({"first", -1, Policy::kRecompute, -1});
  p.regions.push_back({"first/inner", 0, Policy::kPlannerDecides, -1});
  p.regions.push_back({"second", -1, Policy::kOffload, 0});
  p.links.push_back({"host", 1e-6, 1e9, 1e9, 0.8, 1 << 20});
  for (int i = 0; i < 4; ++i) {
    p.values.push_back({"x" + std::to_string(i), 640 + 64 * i, false});
    p.ops.push_back({"f" + std::to_string(i),
                     1e-3,
                     128,
                     i ? std::vector<int32_t>{0, i} : std::vector<int32_t>{0},
                     {i + 1},
                     true,
                     i < 2    ? 1
                     : i == 2 ? 2
                              : -1});
  }
  p.backward_begin = 4;
  for (int i = 3; i >= 0; --i) {
    p.values.push_back({"dx" + std::to_string(i), 640 + 64 * i, false});
    std::vector<int32_t> in = {0, i + 1};
    if (i < 3) in.push_back(static_cast<int32_t>(p.values.size()) - 2);
    p.ops.push_back(
        {"b" + std::to_string(i), 2e-3, 0, in, {static_cast<int32_t>(p.values.size()) - 1}, false, -1});
  }
  s.plan = plan::solve(p);
  return s;
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A safetensors file from a header and data, as they are.
inline std::string safetensors(const std::string& header, size_t data) {
  const uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  file += header;
  for (size_t i = 0; i < data; ++i) file += static_cast<char>(i);
  return file;
}

// One random change: a byte, a few bytes with an interesting number, a cut, a doubled or removed stretch.
inline std::string mutate(std::string file, std::mt19937& random) {
  if (file.empty()) return file;
  const size_t at = random() % file.size();
  switch (random() % 6) {
    case 0:
      file[at] ^= static_cast<char>(1u << random() % 8);
      break;
    case 1:
      file[at] = static_cast<char>(random());
      break;
    case 2: {
      static constexpr uint32_t kNumbers[] = {0, 1, 0x7f, 0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff};
      const uint32_t number = kNumbers[random() % 8];
      std::memcpy(file.data() + at, &number, std::min<size_t>(4, file.size() - at));
      break;
    }
    case 3:
      file.resize(at);
      break;
    case 4:
      file.insert(at, file.substr(random() % file.size(), random() % 32));
      break;
    default:
      file.erase(at, random() % 32);
      break;
  }
  return file;
}

}  // namespace cairn::test
