// What an op with an adapter is made of.
#include <cmath>

#include "runtime/graph/adapters.h"
#include "runtime/graph/adapters/builder.h"
#include "runtime/ops/functions.h"

namespace cairn::graph {

std::string_view module_of(std::string_view parameter) {
  constexpr std::string_view kWeight = ".weight";
  if (parameter.ends_with(kWeight)) parameter.remove_suffix(kWeight.size());
  return parameter;
}

bool of_adapter(std::string_view parameter) {
  for (const std::string_view suffix : {kLoraA, kLoraB, kMagnitude, kTableA, kTableB})
    if (parameter.ends_with(suffix)) return true;
  return false;
}

// An op that gets an adapter.
struct AdapterBuilder::Site {
  std::string_view op;
  std::vector<ValueId> in;
  Attrs attrs;
  const AdapterRule& rule;
  std::string module;
  TensorDesc weight;
  int64_t rank;
  double scale;
  ValueId a = kNone, b = kNone;  // the adapter's matrices

  ValueId input(size_t i) const { return i < in.size() ? in[i] : kNone; }
};

const AdapterBuilder::Row* AdapterBuilder::find(std::string_view op) {
  static constexpr Row kRows[] = {
      {"linear", 1, true, true, &AdapterBuilder::linear},
      {"grouped_linear", 1, true, false, &AdapterBuilder::experts},
      {"embedding", 0, false, false, &AdapterBuilder::table},
      {"linear_cross_entropy", 1, false, false, nullptr},
  };
  for (const Row& row : kRows)
    if (row.op == op) return &row;
  return nullptr;
}

std::vector<ValueId> AdapterBuilder::op(std::string_view name, std::vector<ValueId> in, Attrs attrs) {
  refuse_reuse(name, in);
  const Row* const row = find(name);
  const auto count = static_cast<ValueId>(g_.values_.size());
  if (row == nullptr || row->weight >= in.size() || in[row->weight] < 0 || in[row->weight] >= count ||
      g_.values_[in[row->weight]].kind != ValueKind::kParameter)
    return g_.plain_op(name, std::move(in), std::move(attrs));
  const ValueId weight = in[row->weight];
  const Value& value = g_.values_[weight];
  const std::string module(module_of(value.name));
  known_.modules.push_back(module);
  const AdapterRule* const rule = rule_for(*row, name, module);
  if (rule == nullptr) return g_.plain_op(name, std::move(in), std::move(attrs));

  for (const Op& other : g_.ops_)
    for (const ValueId v : other.in)
      require(v != weight, Code::kInvalidArgument, "'", module, "' has been used by ", other.name,
              " before it is by ", name, ", and an adapter is for one use: leave it out of the targets");
  int64_t rank = rule->rank;
  double alpha = rule->alpha > 0 ? rule->alpha : static_cast<double>(rule->rank);
  for (const auto& [pattern, own] : rule->ranks)
    if (any("ranks", {pattern}, module)) rank = own;
  for (const auto& [pattern, own] : rule->alphas)
    if (any("alphas", {pattern}, module)) alpha = own;
  const double divisor = rule->kind == AdapterKind::kRslora ? std::sqrt(rank) : static_cast<double>(rank);
  Site site{name, std::move(in), std::move(attrs), *rule, module, value.desc, rank, alpha / divisor};
  const size_t values = g_.values_.size(), ops = g_.ops_.size();
  try {
    // As it stands in the table it must be an op that can be added.
    std::vector<ValueId> made = (this->*row->make)(site);
    std::vector<ValueId> learnt;
    for (size_t v = values; v < g_.values_.size(); ++v)
      if (g_.values_[v].kind == ValueKind::kParameter) learnt.push_back(static_cast<ValueId>(v));
    known_.of.emplace(weight, name);
    known_.parameters.insert(learnt.begin(), learnt.end());
    return made;
  } catch (...) {
    known_.of.erase(weight);
    g_.take_back(values, ops);
    throw;
  }
}

ValueId AdapterBuilder::parameter(const Site& site, std::string_view suffix, std::vector<int64_t> dims,
                                  Init init, double scale) {
  return g_.parameter(cat(site.module, suffix), {site.weight.dtype, Shape(std::span<const int64_t>(dims))},
                      {.init = init, .init_scale = scale});
}

ValueId AdapterBuilder::one(const Site& site, std::string_view what, std::string_view op,
                            std::vector<ValueId> in, Attrs attrs) {
  const ValueId made = g_.plain_op(op, std::move(in), std::move(attrs))[0];
  g_.name_value(made, cat(site.module, "/", what));
  return made;
}

ValueId AdapterBuilder::scaled(const Site& site, std::string_view what, ValueId x, double factor) {
  return factor == 1 ? x : one(site, what, "scale", {x}, {{"factor", factor}});
}

// The activation is that of the sum: it becomes an op of its own.
std::vector<ValueId> AdapterBuilder::linear(const Site& given) {
  Site site = given;
  const int64_t rows = site.weight.shape[0], columns = site.weight.shape.last();
  const ValueId x = site.in[0], w = site.in[1], bias = site.input(2);
  const std::string activation = site.attrs.word("activation");
  const bool principal = site.rule.kind == AdapterKind::kPissa;
  require(!principal || site.rank <= std::min(rows, columns), Code::kInvalidArgument, "'", site.module,
          "' is ", to_string(site.weight.shape), " and has no ", site.rank,
          " singular values for an adapter of that rank");
  site.a = parameter(site, kLoraA, {site.rank, columns}, principal ? Init::kPrincipal : Init::kUniform,
                     principal ? site.scale : 1 / std::sqrt(static_cast<double>(columns)));
  site.b = parameter(site, kLoraB, {rows, site.rank}, principal ? Init::kPrincipal : Init::kConstant,
                     principal ? site.scale : 0);
  const ValueId dropped =
      site.rule.dropout > 0 ? one(site, "dropout", "dropout", {x}, {{"rate", site.rule.dropout}}) : x;
  const ValueId down = one(site, "down", "linear", {dropped, site.a});
  const ValueId up = one(site, "up", "linear", {scaled(site, "scaled", down, site.scale), site.b});
  ValueId y = kNone;
  if (site.rule.kind == AdapterKind::kDora) {
    y = with_norms(site, dropped, up);
  } else {
    y = one(site, "base", "linear", {x, w, bias});
    y = one(site, "adapted", "add", {y, up});
  }
  if (activation.empty()) return {y, kNone};
  const ops::Function* const function = ops::find_function(activation);
  require(function != nullptr, Code::kInvalidArgument, "linear: attribute 'activation' is '", activation,
          "'; it must be one of ", ops::activation_words());
  Attrs attrs;
  if (!function->choice.empty()) attrs.set("approximate", std::string(function->choice));
  return {one(site, "activated", ops::name(function->op), {y}, std::move(attrs)),
          function->reads_argument() ? y : kNone};
}

// y = g (x W^T + up) + bias with g = magnitude / norm, by row of W. With dropout the part of W that is not scaled by 1 reads
// the dropped x as well, as in PEFT: y = x W^T + bias + g (x' W^T + up) - x' W^T.
ValueId AdapterBuilder::with_norms(const Site& site, ValueId dropped, ValueId up) {
  const ValueId x = site.in[0], w = site.in[1], bias = site.input(2);
  const ValueId scales = row_scales(site);
  if (dropped == x) {
    const ValueId base = one(site, "base", "linear", {x, w});
    const ValueId sum = one(site, "sum", "add", {base, up});
    const ValueId y = one(site, bias == kNone ? "adapted" : "normed", "mul", {sum, scales});
    return bias == kNone ? y : one(site, "adapted", "add", {y, bias});
  }
  const ValueId narrow = one(site, "dropped_base", "linear", {dropped, w});
  const ValueId sum = one(site, "sum", "add", {narrow, up});
  const ValueId change = one(site, "change", "sub", {one(site, "normed", "mul", {sum, scales}), narrow});
  const ValueId base = one(site, "base", "linear", {x, w, bias});
  return one(site, "adapted", "add", {base, change});
}

// The norms of the rows of W + s B A, of those of W, which is frozen, and products with few rows: row i has the square
// |W_i|^2 + B_i (2 s A W_i^T + s^2 A A^T B_i^T). It costs a product of `rank` rows with W a micro-batch and rank * out values, and
// reads W as other products do, whatever it is stored as.
ValueId AdapterBuilder::row_scales(const Site& site) {
  const int64_t rows = site.weight.shape[0];
  const double s = site.scale;
  const ValueId magnitude = parameter(site, kMagnitude, {rows}, Init::kRowNorms, 0);
  const ValueId own =
      g_.resident(cat(site.module, kWeightNorms), ValueKind::kStatistic, {site.weight.dtype, Shape{rows}}, 0);
  const ValueId product = one(site, "norm_product", "linear", {site.a, site.in[1]});
  const ValueId turned =
      one(site, "norm_cross", "transpose", {product}, {{"perm", std::vector<int64_t>{1, 0}}});
  const ValueId gram = one(site, "norm_gram", "matmul", {site.a, site.a}, {{"transpose_b", int64_t{1}}});
  const ValueId factor = one(site, "norm_factor", "matmul", {site.b, gram});
  const ValueId sum = one(
      site, "norm_sum", "add",
      {scaled(site, "norm_cross_scaled", turned, 2 * s), scaled(site, "norm_factor_scaled", factor, s * s)});
  const ValueId added = one(site, "norm_added", "reduce_sum", {one(site, "norm_terms", "mul", {sum, site.b})},
                            {{"axes", std::vector<int64_t>{1}}});
  const ValueId square = one(site, "norm_square", "add", {one(site, "norm_own", "mul", {own, own}), added});
  // A row of zeros has the norm of a number that is hardly one.
  const ValueId safe = one(site, "norm_clamped", "clamp", {square}, {{"min", 1e-30}});
  const ValueId norm = one(site, "norm", "detach", {one(site, "norm_root", "sqrt", {safe})});
  return one(site, "row_scales", "div", {magnitude, norm});
}

std::vector<ValueId> AdapterBuilder::table(const Site& site) {
  const int64_t rows = site.weight.shape[0], columns = site.weight.shape.last();
  const ValueId ids = site.input(1);
  const ValueId a = parameter(site, kTableA, {rows, site.rank}, Init::kConstant, 0);
  const ValueId b = parameter(site, kTableB, {columns, site.rank}, Init::kNormal, 1);
  const ValueId down = one(site, "down", "embedding", {a, ids}, site.attrs);
  const ValueId up = one(site, "up", "linear", {scaled(site, "scaled", down, site.scale), b});
  return {one(site, "adapted", "add", {one(site, "base", site.op, site.in, site.attrs), up})};
}

// A pair of matrices for each expert.
std::vector<ValueId> AdapterBuilder::experts(const Site& site) {
  const Shape& shape = site.weight.shape;
  require(shape.rank == 3, Code::kInvalidArgument, site.op, ": w is ", to_string(shape),
          "; it must be [E, N, K]");
  const bool transposed = site.attrs.integer("transposed") != 0;
  const int64_t in = transposed ? shape[1] : shape[2], out = transposed ? shape[2] : shape[1];
  const ValueId a = parameter(site, kLoraA, {shape[0], site.rank, in}, Init::kUniform,
                              1 / std::sqrt(static_cast<double>(in)));
  const ValueId b = parameter(site, kLoraB, {shape[0], out, site.rank}, Init::kConstant, 0);
  const ValueId x = site.in[0], starts = site.input(2);
  const ValueId dropped =
      site.rule.dropout > 0 ? one(site, "dropout", "dropout", {x}, {{"rate", site.rule.dropout}}) : x;
  const ValueId down = one(site, "down", site.op, {dropped, a, starts});
  const ValueId up = one(site, "up", site.op, {scaled(site, "scaled", down, site.scale), b, starts});
  return {one(site, "adapted", "add", {one(site, "base", site.op, site.in, site.attrs), up})};
}

}  // namespace cairn::graph
