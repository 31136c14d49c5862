// Adapters: small matrices that learn in place of the weights of a graph, which are frozen. Rules are set on a graph that is
// being built; an op whose weight a rule names then becomes the op with an adapter: y = x W^T + s dropout(x) A^T B^T, with s
// = alpha / rank.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cairn::graph {

enum class AdapterKind : uint8_t {
  kLora = 0,    // Hu et al., 2021
  kRslora = 1,  // s = alpha / sqrt(rank); Kalajdzievski, 2023
  kDora =
      2,  // rows of W + s B A have learnt norms; what they are divided by is a constant to backward; Liu et al., 2024
  kPissa = 3,  // begins with the largest singular values of W, which W then has no more; Meng et al., 2024
};
inline constexpr AdapterKind kLastAdapterKind = AdapterKind::kPissa;

// Patterns of modules: the names of weights without ".weight", in which * stands for any text and ? for one character. What
// a name ends with, from a dot on, will do.
using ModulePattern = std::string;
struct AdapterRule {
  AdapterKind kind = AdapterKind::kLora;
  int64_t rank = 8;
  double alpha = 0;                         // 0: rank
  double dropout = 0;                       // of the adapter's input; not of tables, whose input are numbers
  std::vector<ModulePattern> targets = {};  // none: linear layers and experts, but not inside of losses
  std::vector<ModulePattern> except = {};
  std::vector<ModulePattern> saved =
      {};  // trained as they are, with all of their parameters; names of folders of modules, too
  std::vector<std::pair<ModulePattern, int64_t>> ranks = {};  // the last that matches counts
  std::vector<std::pair<ModulePattern, double>> alphas = {};
};

// What is known of them while a graph is built.
struct Adapters {
  std::vector<AdapterRule> rules;
  std::map<int32_t, std::string> of;  // by weight: the op that it belongs to
  std::set<int32_t> parameters;       // of adapters
  std::set<std::string> used;         // patterns that matched, each with what it is one of before it
  std::vector<std::string> modules;   // that rules could name, for messages
};

// Names: those that PEFT gives them.
inline constexpr std::string_view kLoraA = ".lora_A.weight", kLoraB = ".lora_B.weight",
                                  kMagnitude = ".lora_magnitude_vector", kWeightNorms = ".lora_weight_norms",
                                  kTableA = ".lora_embedding_A", kTableB = ".lora_embedding_B";
std::string_view module_of(std::string_view parameter);  // its name without ".weight"
bool of_adapter(std::string_view parameter);             // by its name

}  // namespace cairn::graph
