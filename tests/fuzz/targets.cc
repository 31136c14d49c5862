#include "tests/fuzz/targets.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

#include "runtime/costs/table.h"
#include "runtime/data/data.h"
#include "runtime/data/token_file.h"
#include "runtime/io/checkpoint.h"
#include "runtime/io/manifest.h"
#include "tests/fuzz/plan_solve.h"
#include "tests/runtime/costs/samples.h"
#include "tests/runtime/io/reseal.h"
#include "tests/runtime/io/samples.h"

namespace cairn::fuzz {
namespace {

std::string text(std::span<const std::byte> input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

std::string sealed(std::span<const std::byte> input) {
  std::string file = text(input);
  file.resize((file.size() + 15) / 16 * 16 + 16);
  return test::reseal(file);
}

std::string unsealed(std::span<const std::byte> file) { return text(file.first(file.size() - 16)); }

// A loader that takes a path gets the bytes as a file in memory.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::byte> content) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (fd_ < 0 || ::write(fd_, content.data(), content.size()) != static_cast<ssize_t>(content.size()))
      throw std::logic_error("cannot make a file in memory");
  }
  ~MemoryFile() { ::close(fd_); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

template <class Action>
void expect_declared(const Action& action, std::initializer_list<Code> declared) {
  try {
    action();
  } catch (const Error& error) {
    for (Code code : declared)
      if (error.code() == code) return;
    throw std::logic_error(cat("undeclared error ", static_cast<int>(error.code()), ": ", error.what()));
  }
}

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
void tokens(std::span<const std::byte> input) {
  std::string bytes = text(input);
  data::TokenHeader header;
  if (bytes.size() >= sizeof header) {  // right digests, so that what lies behind them is reached
    std::memcpy(&header, bytes.data(), sizeof header);
    const XXH128_hash_t hash = XXH3_128bits(bytes.data() + sizeof header, bytes.size() - sizeof header);
    header.digest_low = hash.low64;
    header.digest_high = hash.high64;
    header.header_digest = data::header_digest(header);
    std::memcpy(bytes.data(), &header, sizeof header);
  }
  const MemoryFile file(test::bytes_of(bytes));
  expect_declared(
      [&] {
        const auto set = data::Dataset::open(file.path(), 4);
        std::vector<int32_t> in(8), out(8);
        for (uint64_t i = 0; i < 8; ++i) set->batch(1, i, 2, in.data(), out.data(), -100);
      },
      {Code::kCorruptFile, Code::kInvalidArgument});
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
std::vector<std::string> token_seeds() {
  std::vector<std::string> seeds;
  for (const uint32_t width : {2u, 4u}) {
    data::TokenHeader header;
    header.token_bytes = width;
    header.vocabulary = 256;
    header.count = 20;
    std::string file(sizeof header + 20 * width, '\0');
    std::memcpy(file.data(), &header, sizeof header);
    for (size_t i = 0; i < 20; ++i) file[sizeof header + i * width] = static_cast<char>(i * 9);
    seeds.push_back(file);
  }
  return seeds;
}
std::vector<std::string> costs_json_seeds() {
  return {costs::to_json(costs::sample_profile()), costs::kModel};
}
std::vector<std::string> plan_json_seeds() { return {plan::to_json(test::sample_plan().problem)}; }

constexpr Target kTargets[] = {{"graph", graph, graph_seeds},
                               {"plan", plan, plan_seeds},
                               {"manifest", manifest, manifest_seeds},
                               {"safetensors", safetensors, safetensors_seeds},
                               {"tokens", tokens, token_seeds},
                               {"plan_json", plan_json, plan_json_seeds},
                               {"plan_solve", plan_solve, problem_seeds, 300},
                               {"costs_json", costs_json, costs_json_seeds}};

}  // namespace

std::span<const Target> targets() { return kTargets; }

}  // namespace cairn::fuzz
