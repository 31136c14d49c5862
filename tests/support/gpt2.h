// A small GPT-2 as a graph, with Hugging Face's parameter names, for tests of the whole runtime.
#pragma once
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/io/safetensors/names.h"

namespace cairn::test {

struct Gpt2 {
  int layers = 2, heads = 2, width = 32, vocabulary = 64, length = 16, batch = 4;
  double dropout = 0;
  int positions = 0;   // rows of the position table; 0: length
  bool loss = true;    // false: only what the head is given, as output "hidden"
  bool nested = true;  // regions "attn" and "mlp" inside each block
  Policy policy = Policy::kPlannerDecides;
  std::string tier;
};

inline std::vector<io::NameRow> gpt2_names(const Gpt2& o) {
  std::vector<io::NameRow> rows;
  for (int i = 0; i < o.layers; ++i)
    for (const char* name :
         {"attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight"}) {
      const std::string full = "h." + std::to_string(i) + "." + name;
      rows.push_back({full, full, true});
    }
  return rows;
}

inline std::shared_ptr<graph::Graph> gpt2_graph(const Gpt2& o) {
  using graph::ValueId;
  auto g = std::make_shared<graph::Graph>();
  const int64_t c = o.width, b = o.batch, t = o.length;
  auto parameter = [&](const std::string& name, std::initializer_list<int64_t> dims, graph::Init init,
                       double scale, bool decay) {
    graph::ParameterOptions options;
    options.init = init;
    options.init_scale = scale;
    options.decay = decay;
    return g->parameter(name, {DType::kF32, Shape(dims)}, options);
  };
  auto weight = [&](const std::string& name, int64_t out, int64_t in, double scale = 0.02) {
    return parameter(name, {out, in}, graph::Init::kNormal, scale, true);
  };
  auto bias = [&](const std::string& name, int64_t n) {
    return parameter(name, {n}, graph::Init::kConstant, 0, false);
  };
  auto gain = [&](const std::string& name) { return parameter(name, {c}, graph::Init::kConstant, 1, false); };
  auto norm = [&](ValueId x, const std::string& name) {
    const ValueId gamma = gain(name + ".weight"), beta = bias(name + ".bias", c);
    return g->op("layernorm", {x, gamma, beta})[0];
  };
  auto linear = [&](ValueId x, const std::string& name, int64_t out, int64_t in, double scale = 0.02) {
    const ValueId w = weight(name + ".weight", out, in, scale), bias_value = bias(name + ".bias", out);
    return g->op("linear", {x, w, bias_value})[0];
  };
  auto drop = [&](ValueId x) { return o.dropout > 0 ? g->op("dropout", {x}, {{"rate", o.dropout}})[0] : x; };
  auto residual = [&](const std::string& region, ValueId x, auto body) {
    graph::RegionId r = -1;
    if (o.nested) r = g->region_begin(region, Policy::kPlannerDecides);
    const ValueId y = g->op("add", {x, drop(body())})[0];
    if (o.nested) g->region_end(r);
    return y;
  };

  const ValueId tokens = g->input("tokens", {DType::kI32, {b, t}});
  const ValueId targets = o.loss ? g->input("targets", {DType::kI32, {b, t}}) : graph::kNone;
  const int64_t positions = std::max<int64_t>(o.positions, t);
  const ValueId wte = weight("wte.weight", o.vocabulary, c);
  ValueId wpe = weight("wpe.weight", positions, c);
  if (positions > t)
    wpe = g->op("slice", {wpe}, {{"axis", int64_t{0}}, {"begin", int64_t{0}}, {"end", t}})[0];
  ValueId x = drop(g->op("add", {g->op("embedding", {wte, tokens})[0], wpe})[0]);
  const double projection = 0.02 / std::sqrt(2.0 * o.layers);
  for (int i = 0; i < o.layers; ++i) {
    const std::string h = "h." + std::to_string(i);
    const graph::RegionId region = g->region_begin("h" + std::to_string(i), o.policy, o.tier);
    x = residual("attn", x, [&] {
      const ValueId qkv = linear(norm(x, h + ".ln_1"), h + ".attn.c_attn", 3 * c, c);
      const ValueId y = g->op("attention", {qkv}, {{"heads", int64_t{o.heads}}})[0];
      return linear(y, h + ".attn.c_proj", c, c, projection);
    });
    x = residual("mlp", x, [&] {
      const ValueId up = linear(norm(x, h + ".ln_2"), h + ".mlp.c_fc", 4 * c, c);
      return linear(g->op("gelu", {up})[0], h + ".mlp.c_proj", c, 4 * c, projection);
    });
    g->region_end(region);
  }
  if (!o.loss) {
    const ValueId hidden = norm(x, "ln_f");
    g->name_value(hidden, "hidden");
    g->freeze(graph::kNone, graph::kNone, {hidden});
    return g;
  }
  const auto loss = g->op("linear_cross_entropy", {norm(x, "ln_f"), wte, targets});
  g->freeze(loss[0], graph::kNone, {});
  return g;
}

}  // namespace cairn::test
