// Parses the rows of optimizers.def once, and has their hyper rules.
#include "runtime/ops/optimizers.h"

#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/text/words.h"
#include "runtime/ops/ranges.h"

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

// Slots: step's size relative to p, the new squares' share, eps1, eps2, clip_threshold, p's share that decays.
void hyper_adafactor(Values v, const UpdateStep& s, double* slots) {
  const auto t = static_cast<double>(s.t);
  slots[0] = std::min(s.rate, 1.0 / std::sqrt(t));
  slots[1] = std::pow(t, v[1]);
  slots[2] = v[2];
  slots[3] = v[3];
  slots[4] = v[4];
  slots[5] = s.rate * v[5];
}

// Slots: rate, momentum, nesterov, ns_eps, weight_decay, match_rms_adamw.
void hyper_muon(Values v, const UpdateStep& s, double* slots) {
  slots[0] = s.rate;
  slots[1] = v[1];
  slots[2] = v[2];
  slots[3] = v[4];
  slots[4] = v[6];
  slots[5] = v[5];
}

std::optional<TensorDesc> like_parameter(const TensorDesc& parameter) { return parameter; }

// 8-bit blocks where they save something worth their error, by bitsandbytes' measure: norms and biases keep
// whole numbers.
std::optional<TensorDesc> in_blocks(const TensorDesc& parameter, DType dtype) {
  constexpr int64_t kMinElements = 4096;
  if (parameter.shape.elements() < kMinElements) return like_parameter(parameter);
  return TensorDesc{dtype, parameter.shape};
}
std::optional<TensorDesc> dynamic8(const TensorDesc& parameter) {
  return in_blocks(parameter, DType::kDynamic8);
}
std::optional<TensorDesc> udynamic8(const TensorDesc& parameter) {
  return in_blocks(parameter, DType::kUDynamic8);
}

// The shape of a tensor of two dimensions or more without its dimension `axis`, counted from the end.
std::optional<TensorDesc> without(const TensorDesc& parameter, int axis) {
  const Shape& shape = parameter.shape;
  if (shape.rank < 2) return std::nullopt;
  TensorDesc state = parameter;
  state.shape.rank = shape.rank - 1;
  for (int i = shape.rank - axis; i < shape.rank - 1; ++i) state.shape.dims[i] = shape.dims[i + 1];
  state.shape.dims[shape.rank - 1] = 0;
  return state;
}
std::optional<TensorDesc> rows(const TensorDesc& parameter) { return without(parameter, 1); }
std::optional<TensorDesc> columns(const TensorDesc& parameter) { return without(parameter, 2); }
std::optional<TensorDesc> vector(const TensorDesc& parameter) {
  return parameter.shape.rank < 2 ? std::optional(parameter) : std::nullopt;
}

// The forms of states that rows may name.
struct NamedForm {
  std::string_view name;
  StateForm form;
};
constexpr NamedForm kForms[] = {
    {"", like_parameter}, {"dynamic8", dynamic8}, {"udynamic8", udynamic8},
    {"rows", rows},       {"columns", columns},   {"vector", vector},
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

struct OptimizerSource {
  std::string_view name, states, hypers;
  HyperRule rule;
  uint32_t traits;
  std::string_view description;
};

constexpr OptimizerSource kOptimizerSources[] = {
#define OPTIMIZER(id, states, hypers, rule, traits, description) \
  {#id, states, hypers, rule, traits, description},
#include "runtime/ops/optimizers.def"
};

constexpr std::pair<std::string_view, std::string_view> kOtherwise[] = {
#define OTHERWISE(id, other) {#id, #other},
#include "runtime/ops/optimizers.def"
};

// As it is written in the table, whatever the host's locale.
double number(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

constexpr Hyper kHypers[] = {
#define HYPER(id, range, planned, description) {#id, range, 1.0, planned, description},
#include "runtime/ops/optimizers.def"
};

// "name=default".
Hyper parse_hyper(std::string_view word) {
  const size_t equals = word.find('=');
  for (Hyper hyper : kHypers) {
    if (hyper.name != word.substr(0, equals)) continue;
    hyper.value = number(word.substr(equals + 1));
    return hyper;
  }
  fail(Code::kInternal, "optimizers.def: no hyper-parameter has the name '", word.substr(0, equals), "'");
}

std::vector<OptimizerRow> optimizer_rows() {
  std::vector<OptimizerRow> rows;
  for (const OptimizerSource& s : kOptimizerSources) {
    OptimizerRow row{s.name, {}, {parse_hyper("rate_scale=1")}, s.rule, s.traits, s.description};
    for_words(s.states, [&](std::string_view word) { row.states.push_back(parse_state(word)); });
    for_words(s.hypers, [&](std::string_view word) { row.hypers.push_back(parse_hyper(word)); });
    for (const auto& [id, other] : kOtherwise)
      if (id == row.name) row.otherwise = other;
    rows.push_back(std::move(row));
  }
  return rows;
}

const std::vector<OptimizerRow>& optimizer_table() {
  static const std::vector<OptimizerRow> rows = optimizer_rows();
  return rows;
}

// Hyper-parameters that have a meaning only together with others; torch.optim refuses them, too.
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

Attrs OptimizerRow::attrs(std::span<const double> values) const {
  Attrs list{{"optimizer", std::string(name)}};
  for (size_t h = 0; h < hypers.size(); ++h)
    if (hypers[h].planned) list.set(std::string(hypers[h].name), static_cast<int64_t>(values[h]));
  return list;
}

std::span<const OptimizerRow> optimizers() { return optimizer_table(); }

const OptimizerRow& optimizer(std::string_view name) {
  std::string known;
  for (const OptimizerRow& row : optimizer_table()) {
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
    const Range& range = ops::range(h.range);
    return require(range.holds(value), Code::kInvalidArgument, row.name, ": ", hyper, " is ", value,
                   "; it must be ", range.words);
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
