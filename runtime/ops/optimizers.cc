// Parses the rows of optimizers.def once, and has their hyper rules.
#include "runtime/ops/optimizers.h"

#include <charconv>
#include <cmath>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/words.h"

namespace cairn::ops {
namespace {

using Values = std::span<const double>;

// Of adamw, adam and adamw8. Slots: rate, beta1, beta2, eps, weight_decay, 1 - beta1^t, 1 - beta2^t, factor.
void hyper_adamw(Values v, const UpdateStep& s, double* slots) {
  const auto t = static_cast<double>(s.t);
  slots[0] = s.rate;
  slots[1] = v[1];
  slots[2] = v[2];
  slots[3] = v[3];
  slots[4] = v[4];
  slots[5] = 1.0 - std::pow(v[1], t);
  slots[6] = 1.0 - std::pow(v[2], t);
}

// Slots: rate, momentum, the gradient's share of a new momentum, nesterov, weight_decay.
void hyper_sgd(Values v, const UpdateStep& s, double* slots) {
  slots[0] = s.rate;
  slots[1] = v[1];
  slots[2] = s.t == 1 ? 1.0 : 1.0 - v[2];
  slots[3] = v[3];
  slots[4] = v[4];
}

// Slots: rate, beta1, beta2, nothing, weight_decay.
void hyper_lion(Values v, const UpdateStep& s, double* slots) {
  slots[0] = s.rate;
  slots[1] = v[1];
  slots[2] = v[2];
  slots[4] = v[3];
}

std::optional<TensorDesc> like_parameter(const TensorDesc& parameter) { return parameter; }

// 8-bit blocks where they save something worth their error, by bitsandbytes' measure: norms and biases keep
// whole numbers.
std::optional<TensorDesc> in_blocks(const TensorDesc& parameter, DType dtype) {
  constexpr int64_t kLeast = 4096;  // elements
  if (parameter.shape.elements() < kLeast) return like_parameter(parameter);
  return TensorDesc{dtype, parameter.shape};
}
std::optional<TensorDesc> dynamic8(const TensorDesc& parameter) {
  return in_blocks(parameter, DType::kDynamic8);
}
std::optional<TensorDesc> udynamic8(const TensorDesc& parameter) {
  return in_blocks(parameter, DType::kUDynamic8);
}

// The forms of states that rows may name.
struct NamedForm {
  std::string_view name;
  StateForm form;
};
constexpr NamedForm kForms[] = {
    {"", like_parameter},
    {"dynamic8", dynamic8},
    {"udynamic8", udynamic8},
};

// "name", "name:form", "name?hyper", "name:form?hyper".
OptimizerState parse_state(std::string_view word) {
  const size_t mark = std::min(word.find('?'), word.size());
  const std::string_view when = word.substr(std::min(mark + 1, word.size())), shown = word.substr(0, mark);
  const size_t colon = std::min(shown.find(':'), shown.size());
  const std::string_view form = shown.substr(std::min(colon + 1, shown.size()));
  for (const NamedForm& known : kForms)
    if (known.name == form) return {shown.substr(0, colon), known.form, when};
  fail(Code::kInternal, "optimizers.def: no state has the form '", form, "'");
}

struct Source {
  std::string_view name, states, hypers;
  HyperRule rule;
  uint32_t traits;
  std::string_view description;
};

constexpr Source kSources[] = {
#define OPTIMIZER(id, states, hypers, rule, traits, description) \
  {#id, states, hypers, rule, traits, description},
#include "runtime/ops/optimizers.def"
#undef OPTIMIZER
};

// As it is written in the table, whatever the host's locale.
double number(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<OptimizerRow> build() {
  std::vector<OptimizerRow> rows;
  for (const Source& s : kSources) {
    OptimizerRow row{s.name, {}, {{"rate_scale", 'n', 1.0}}, s.rule, s.traits, s.description};
    for_words(s.states, [&](std::string_view word) { row.states.push_back(parse_state(word)); });
    for_words(s.hypers, [&](std::string_view word) {
      const size_t colon = word.find(':');
      row.hypers.push_back({word.substr(0, colon), word[colon + 1], number(word.substr(colon + 3))});
    });
    rows.push_back(std::move(row));
  }
  return rows;
}

const std::vector<OptimizerRow>& table() {
  static const std::vector<OptimizerRow> rows = build();
  return rows;
}

struct Range {
  char letter;
  std::string_view words;
  bool (*holds)(double);
};
constexpr Range kRanges[] = {
    {'u', "at least 0 and below 1", [](double v) { return v >= 0 && v < 1; }},
    {'n', "from 0 to 1e38", [](double v) { return v >= 0 && v <= 1e38; }},
    {'b', "0 or 1", [](double v) { return v == 0 || v == 1; }},
};

// Hyper-parameters that have a meaning only beside others, as torch.optim refuses them.
struct Needs {
  std::string_view optimizer, hyper, other;
  bool zero;  // whether `other` must be 0; else it must not be
  std::string_view remedy;
};
constexpr Needs kNeeds[] = {
    {"sgd", "nesterov", "momentum", false,
     "Nesterov's rule looks ahead along the momentum; give a momentum, as 0.9"},
    {"sgd", "nesterov", "dampening", true, "Nesterov's rule takes gradients undamped; leave dampening at 0"},
};

}  // namespace

int OptimizerRow::hyper(std::string_view hyper_name) const {
  for (size_t i = 0; i < hypers.size(); ++i)
    if (hypers[i].name == hyper_name) return static_cast<int>(i);
  return -1;
}

std::optional<TensorDesc> OptimizerRow::tensor_of(const OptimizerState& state, std::span<const double> values,
                                                  const TensorDesc& parameter) const {
  if (!state.when.empty() && values[static_cast<size_t>(hyper(state.when))] == 0) return std::nullopt;
  return state.form(parameter);
}

std::span<const OptimizerRow> optimizers() { return table(); }

const OptimizerRow& optimizer(std::string_view name) {
  std::string known;
  for (const OptimizerRow& row : table()) {
    if (row.name == name) return row;
    known += cat(known.empty() ? "" : ", ", row.name);
  }
  fail(Code::kInvalidArgument, "unknown optimizer '", name, "'; known: ", known);
}

void check_hyper(const OptimizerRow& row, std::string_view hyper, double value) {
  std::string known;
  for (const Hyper& h : row.hypers) {
    known += cat(known.empty() ? "" : ", ", h.name);
    if (h.name != hyper) continue;
    for (const Range& range : kRanges)
      require(range.letter != h.range || range.holds(value), Code::kInvalidArgument, row.name, ": ", hyper,
              " is ", value, "; it must be ", range.words);
    return;
  }
  fail(Code::kInvalidArgument, "'", row.name, "' has no hyper-parameter '", hyper, "'; it has: ", known);
}

void check_hypers_together(const OptimizerRow& row, std::span<const double> values) {
  const auto value = [&](std::string_view name) { return values[static_cast<size_t>(row.hyper(name))]; };
  for (const Needs& needs : kNeeds) {
    if (needs.optimizer != row.name || value(needs.hyper) == 0) continue;
    require((value(needs.other) == 0) == needs.zero, Code::kInvalidArgument, row.name, ": ", needs.hyper,
            " with ", needs.other, ' ', value(needs.other), ": ", needs.remedy);
  }
}

}  // namespace cairn::ops
