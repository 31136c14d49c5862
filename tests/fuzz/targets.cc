#include "tests/fuzz/targets.h"

#include "runtime/costs/table.h"
#include "runtime/data/data.h"
#include "runtime/io/gguf/tokenizer.h"
#include "runtime/io/graph_file.h"
#include "runtime/io/manifest.h"
#include "runtime/io/plan_file.h"
#include "runtime/io/safetensors/model_files.h"
#include "runtime/io/safetensors/quantised/quantised.h"
#include "tests/fuzz/families.h"
#include "tests/fuzz/plan_solve.h"
#include "tests/fuzz/tools.h"
#include "tests/runtime/costs/samples.h"
#include "tests/runtime/io/gguf/sample.h"
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
        const io::ModelFiles model(file.path());
        for (const auto& [name, matrix] : io::find_quantised(model)) {
          std::vector<float> numbers(static_cast<size_t>(matrix->shape.elements()));
          matrix->read_floats(0, numbers);
          matrix->read_floats(matrix->shape.elements() - 1, std::span(numbers).first(1));
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
void gguf(std::span<const std::byte> input) {
  const MemoryFile file(input);
  expect_declared(
      [&] {
        const io::Gguf model(file.path());
        io::gguf_json(model);
        std::vector<std::byte> bytes;
        for (const io::GgufTensor& tensor : model.tensors()) {  // every byte that is promised can be read
          bytes.resize(tensor.bytes);
          model.file()->read(tensor.offset, bytes.data(), bytes.size());
        }
        const io::ModelFiles files(file.path());
        if (model.find("tokenizer.ggml.model") == nullptr) return;
        data::pretrained_tokenizer(io::gguf_tokenizer_json(model), "input")->encode("a cairn");
      },
      {Code::kCorruptFile, Code::kUnsupported, Code::kNotFound, Code::kInvalidArgument});
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
              32),
          test::safetensors(R"({"a.weight":{"dtype":"I8","shape":[2,3],"data_offsets":[0,6]},)"
                            R"("a.SCB":{"dtype":"F32","shape":[2],"data_offsets":[6,14]}} )",
                            14),
          test::safetensors(R"({"a_blocks":{"dtype":"U8","shape":[1,1,16],"data_offsets":[0,16]},)"
                            R"("a_scales":{"dtype":"U8","shape":[1,1],"data_offsets":[16,17]},)"
                            R"("b.qweight":{"dtype":"I32","shape":[4,8],"data_offsets":[17,145]},)"
                            R"("b.qzeros":{"dtype":"I32","shape":[1,1],"data_offsets":[145,149]},)"
                            R"("b.scales":{"dtype":"F16","shape":[1,8],"data_offsets":[149,165]}} )",
                            165)};
}
std::vector<std::string> model_index_seeds() {
  return {R"({"metadata": {"total_size": 8}, "weight_map": {"a": "a.safetensors", "b": "b.safetensors"}})",
          R"({"weight_map": {"a": "c.safetensors", "a": 1}})"};
}
std::vector<std::string> gguf_seeds() {
  test::GgufSample words, pieces;
  words.word("general.architecture", "llama")
      .word("tokenizer.ggml.model", "gpt2")
      .word("tokenizer.ggml.pre", "llama-bpe");
  words.words("tokenizer.ggml.tokens", {"a", "b", "ab", "<s>"}).words("tokenizer.ggml.merges", {"a b"});
  words.numbers<int32_t>("tokenizer.ggml.token_type", 5, {1, 1, 1, 3});
  words.key("tokenizer.ggml.bos_token_id", 4, test::GgufSample::number(uint32_t{3}));
  pieces.word("tokenizer.ggml.model", "llama")
      .words("tokenizer.ggml.tokens", {"<unk>", "a", "b", "ab", "<0x20>", "  "});
  pieces.numbers<float>("tokenizer.ggml.scores", 6, {0, -3, -2, -1, 0, 0});
  pieces.numbers<int32_t>("tokenizer.ggml.token_type", 5, {2, 1, 1, 1, 6, 4});
  pieces.flag("tokenizer.ggml.add_space_prefix", false);
  return {test::gguf_sample().bytes(), words.bytes(), pieces.bytes()};
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
    {"gguf", gguf, gguf_seeds},
    {"tokens", tokens, token_seeds},
    {"tokenizer", tokenizer, tokenizer_seeds, 1000},
    {"tokenizer_train", tokenizer_train, tokenizer_train_seeds, 1000},
    {"pretrained", pretrained, pretrained_seeds, 1000},
    {"chat_template", chat_template, chat_template_seeds, 1000},
    {"picture", picture, picture_seeds},
    {"mnist", mnist, mnist_seeds, 500},
    {"cifar", cifar, cifar_seeds, 500},
    {"tar", tar, tar_seeds, 1000},
    {"picture_pairs", picture_pairs, picture_pairs_seeds, 500},
    {"plan_json", plan_json, plan_json_seeds},
    {"plan_solve", plan_solve, problem_seeds, 300},
    {"costs_json", costs_json, costs_json_seeds},
    {"lua_json", lua_json, lua_json_seeds},
    {"recipe_options", recipe_options, recipe_options_seeds},
    {"run_config", run_config, run_config_seeds},
    {"instruction_row", instruction_row, instruction_row_seeds},
};

}  // namespace

std::span<const Target> targets() { return kTargets; }

}  // namespace cairn::fuzz
