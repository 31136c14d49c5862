#include "tests/fuzz/targets.h"

#include "runtime/costs/table.h"
#include "runtime/io/graph_file.h"
#include "runtime/io/manifest.h"
#include "runtime/io/plan_file.h"
#include "runtime/io/safetensors/model_files.h"
#include "tests/fuzz/families.h"
#include "tests/fuzz/plan_solve.h"
#include "tests/fuzz/tools.h"
#include "tests/runtime/costs/samples.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::fuzz {
namespace {

void graph(std::span<const std::byte> input) {
  expect_declared([&] { io::decode_graph(test::bytes_of(sealed(input))); }, {Code::kCorruptFile});
}
void plan(std::span<const std::byte> input) {
  expect_declared([&] { io::decode_plan(test::bytes_of(sealed(input))); }, {Code::kCorruptFile});
}
void manifest(std::span<const std::byte> input) {
  expect_declared([&] { io::decode_manifest(test::bytes_of(sealed(input))); }, {Code::kCorruptFile});
}
void safetensors(std::span<const std::byte> input) {
  const MemoryFile file(input);
  expect_declared(
      [&] {
        const io::SafeTensors tensors(file.path());
        uint64_t sum = 0;  // every byte that is promised can be read
        for (const io::SafeTensor& tensor : tensors.tensors()) {
          std::vector<std::byte> bytes(static_cast<size_t>(tensor.desc.bytes()));
          tensors.read(tensor, 0, bytes.data(), bytes.size());
          for (const std::byte byte : bytes) sum += static_cast<uint8_t>(byte);
        }
        if (sum == ~uint64_t{0}) throw std::logic_error("unreachable");
      },
      {Code::kCorruptFile, Code::kUnsupported});
}
// The input is the index of two files; those that it names otherwise are not there.
void model_index(std::span<const std::byte> input) {
  static const test::Scratch scratch;
  static const bool made = [] {
    for (const std::string name : {"a", "b"})
      scratch.put(
          name + ".safetensors",
          test::safetensors("{\"" + name + R"(":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4));
    return true;
  }();
  scratch.put(io::kIndexName, text(input));
  expect_declared([&] { const io::ModelFiles model(scratch.path()); },
                  {Code::kCorruptFile, made ? Code::kNotFound : Code::kOk});
}
void plan_json(std::span<const std::byte> input) {
  expect_declared(
      [&] {
        const plan::Problem problem = plan::problem_from_json(text(input));
        const std::string once = plan::to_json(problem);
        if (plan::to_json(plan::problem_from_json(once)) != once)
          throw std::logic_error("not the same problem");
      },
      {Code::kCorruptFile, Code::kInvalidArgument});
}

void plan_solve(std::span<const std::byte> input) {
  expect_declared([&] { solve_problem(text(input)); }, {Code::kCorruptFile, Code::kInvalidArgument});
}

void costs_json(std::span<const std::byte> input) {
  expect_declared(
      [&] {
        const costs::Table table = costs::from_json(text(input));
        if (!table.profile) return;
        const std::string once = costs::to_json(*table.profile);
        if (costs::to_json(*costs::from_json(once).profile) != once)
          throw std::logic_error("not the same profile");
      },
      {Code::kCorruptFile, Code::kInvalidArgument});
}

std::vector<std::string> graph_seeds() { return {unsealed(io::encode_graph(*test::sample_graph()))}; }
std::vector<std::string> plan_seeds() {
  const test::SamplePlan s = test::sample_plan();
  return {unsealed(io::encode_plan(s.problem, s.plan))};
}
std::vector<std::string> manifest_seeds() {
  io::Manifest m;
  m.graph = {std::byte{1}, std::byte{2}};
  m.tensors = {{"a", {DType::kF32, {4, 3}}, 0, 1, 2}, {"a/m", {DType::kF32, {}}, 0, 3, 4}};
  m.tensors_bytes = io::place(m.tensors);
  m.metadata = {{"recipe", "gpt2.lua"}, {"seed", "1"}};
  return {unsealed(io::encode_manifest(m))};
}
std::vector<std::string> safetensors_seeds() {
  return {test::safetensors("{}", 0),
          test::safetensors(
              R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
              R"("b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]}} )",
              32)};
}
std::vector<std::string> model_index_seeds() {
  return {R"({"metadata": {"total_size": 8}, "weight_map": {"a": "a.safetensors", "b": "b.safetensors"}})",
          R"({"weight_map": {"a": "c.safetensors", "a": 1}})"};
}
std::vector<std::string> costs_json_seeds() {
  return {costs::to_json(costs::sample_profile()), costs::kModel};
}
std::vector<std::string> plan_json_seeds() { return {plan::to_json(test::sample_plan().problem)}; }

constexpr Target kTargets[] = {
    {"graph", graph, graph_seeds},
    {"plan", plan, plan_seeds},
    {"manifest", manifest, manifest_seeds},
    {"checkpoint", checkpoint, checkpoint_seeds, 200},
    {"safetensors", safetensors, safetensors_seeds},
    {"model_index", model_index, model_index_seeds},
    {"tokens", tokens, token_seeds},
    {"tokenizer", tokenizer, tokenizer_seeds, 1000},
    {"tokenizer_train", tokenizer_train, tokenizer_train_seeds, 1000},
    {"pretrained", pretrained, pretrained_seeds, 1000},
    {"plan_json", plan_json, plan_json_seeds},
    {"plan_solve", plan_solve, problem_seeds, 300},
    {"costs_json", costs_json, costs_json_seeds},
    {"lua_json", lua_json, lua_json_seeds},
    {"recipe_options", recipe_options, recipe_options_seeds},
    {"run_config", run_config, run_config_seeds},
};

}  // namespace

std::span<const Target> targets() { return kTargets; }

}  // namespace cairn::fuzz
