// Small cases of every op with a gradient.
#pragma once
#include "runtime/base/glu.h"
#include "runtime/ops/functions.h"
#include "tests/conformance/attention_cases.h"
#include "tests/conformance/experts_cases.h"
#include "tests/conformance/picture_cases.h"

namespace cairn::conformance {

using List = std::vector<int64_t>;

inline Attrs with(std::string name, AttrValue value) { return {{std::move(name), std::move(value)}}; }
inline Attrs word(std::string name, std::string value) {
  return with(std::move(name), AttrValue(std::move(value)));
}

// The attributes with which an op applies this function.
inline Attrs choice_of(const ops::Function& f) {
  return f.choice.empty() ? Attrs{} : word("approximate", std::string(f.choice));
}

inline void add_products(std::vector<Case>& to) {
  to.push_back({"embedding", {P({5, 3}), I({7}, 5)}, {}});
  to.push_back({"embedding", {P({6, 2}), I({2, 3}, 6)}, {}});
  to.push_back({"embedding", {P({4, 3}), {'I', {2, 5}, -1, 5}}, {}});  // ids outside: zero rows
  std::vector<std::string> activations{""};
  for (const ops::Function& f : ops::functions()) activations.emplace_back(f.name);
  for (const std::string& act : activations)
    for (const List& lead : {List{}, List{3}, List{2, 3}}) {
      List x = lead;
      x.push_back(4);
      const Operand w = P({5, 4}), b = P({5});
      to.push_back({"linear", {T(x), w, b}, word("activation", act)});
      to.push_back({"linear", {T(x), w}, word("activation", act)});
    }
}

inline void add_matmuls(std::vector<Case>& to) {
  for (int64_t ta : {0, 1})
    for (int64_t tb : {0, 1})
      for (const auto& [a, b] :
           {std::pair<List, List>{{}, {}}, {{2}, {2}}, {{2}, {}}, {{}, {2}}, {{2, 1}, {3}}}) {
        List left = a, right = b;
        for (const int64_t size : ta ? List{4, 3} : List{3, 4}) left.push_back(size);
        for (const int64_t size : tb ? List{5, 4} : List{4, 5}) right.push_back(size);
        to.push_back({"matmul", {T(left), T(right)}, {{"transpose_a", ta}, {"transpose_b", tb}}});
      }
}

inline void add_norms(std::vector<Case>& to) {
  for (const List& shape : {List{7}, List{3, 5}, List{2, 3, 4}}) {
    const Operand x = T(shape), gamma = P({shape.back()}, 0.5, 1.5), beta = P({shape.back()});
    for (double eps : {1e-5, 0.1}) {
      to.push_back({"layernorm", {x, gamma, beta}, with("eps", eps)});
      to.push_back({"layernorm", {x, gamma}, with("eps", eps)});
      to.push_back({"layernorm", {x, kNoOperand, beta}, with("eps", eps)});
      to.push_back({"layernorm", {x}, with("eps", eps)});
      to.push_back({"rmsnorm", {x, gamma}, with("eps", eps)});
      to.push_back({"rmsnorm", {x}, with("eps", eps)});
      to.push_back({"rmsnorm", {x, P({shape.back()})}, {{"eps", eps}, {"offset", 1.0}}});
    }
  }
}

inline void add_attention(std::vector<Case>& to) {
  struct Size {
    int64_t batch, time, heads, kv, dim;
  };
  for (const Size& s : {Size{1, 4, 1, 1, 3}, Size{2, 3, 2, 2, 2}, Size{1, 5, 4, 2, 2}, Size{2, 3, 3, 1, 2},
                        Size{1, 1, 2, 2, 3}})
    for (int64_t causal : {1, 0}) {
      Attrs attrs{{"heads", s.heads}, {"kv_heads", s.kv}, {"causal", causal}};
      const List q{s.batch, s.time, s.heads * s.dim}, kv{s.batch, s.time, s.kv * s.dim};
      to.push_back({"attention", {T(q), T(kv), T(kv)}, attrs});
      attrs.set("scale", 0.7);
      to.push_back({"attention", {T({s.batch, s.time, (s.heads + 2 * s.kv) * s.dim})}, attrs});
    }
  to.push_back({"attention", {T({2, 3, 12})}, with("heads", int64_t{2})});
  to.push_back({"rope", {T({2, 3, 8})}, with("heads", int64_t{2})});
  to.push_back({"rope", {T({1, 5, 4})}, {{"heads", int64_t{1}}, {"base", 100.0}}});
  to.push_back({"rope", {T({2, 4, 6})}, {{"heads", int64_t{3}}, {"inverse", int64_t{1}}}});
}

inline void add_relative_bias(std::vector<Case>& to) {
  for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{5, 5}, {1, 40}, {40, 1}, {13, 70}})
    for (int64_t bidirectional : {0, 1}) {
      Attrs attrs{{"queries", queries}, {"keys", keys}, {"bidirectional", bidirectional}};
      to.push_back({"relative_bias", {P({32, 3})}, attrs});
      attrs.set("farthest", int64_t{20});
      to.push_back({"relative_bias", {P({7, 2})}, attrs});
    }
}

// Of the attributes that models of several families have beside heads and base.
inline void add_rope(std::vector<Case>& to) {
  using Reals = std::vector<double>;
  const Operand positions{'I', {2, 4}, -3, 700};
  for (int64_t interleaved : {0, 1}) {
    to.push_back({"rope", {T({2, 4, 12})}, {{"heads", int64_t{2}}, {"interleaved", interleaved}}});
    to.push_back({"rope",
                  {T({2, 4, 14}), positions},
                  {{"heads", int64_t{2}},
                   {"interleaved", interleaved},
                   {"columns", int64_t{4}},
                   {"frequencies", Reals{0.7, 0.01}},
                   {"factor", 1.3}}});
  }
  to.push_back({"rope", {T({2, 4, 12}), positions}, with("heads", int64_t{3})});
  to.push_back({"rope",
                {T({1, 3, 4})},
                {{"heads", int64_t{1}}, {"frequencies", List{1, 0}}, {"inverse", int64_t{1}}}});
}

inline void add_glu(std::vector<Case>& to, const List& shape, double most) {
  for (const GluRow& glu : kGlus) {
    Attrs attrs = word("activation", std::string(glu.word));
    if (glu.limited) attrs.set("limit", most / 2);
    to.push_back({"glu", {apart(T(shape, -most, most)), T(shape, -most, most)}, attrs});
  }
  to.push_back({"glu", {T(shape), T(shape)}, {}});
}

// Of several operands whose shapes broadcast, and with limits of where they are defined.
inline void add_arithmetic(std::vector<Case>& to) {
  const Operand positive = T({2, 3}, 0.3, 3), any = apart(T({2, 3}, -2, 2));
  for (const char* op : {"log", "sqrt", "exp", "softplus", "abs"})
    to.push_back({op, {op == std::string("log") || op == std::string("sqrt") ? positive : any}, {}});
  for (const double exponent : {2.0, -1.0, 0.5, -1.5, 2.7, 0.0, 1.0})
    to.push_back({"pow", {positive}, with("exponent", exponent)});
  to.push_back({"pow", {any}, with("exponent", 3.0)});
  to.push_back({"clamp", {any}, {{"min", -0.55}, {"max", 0.65}}});
  to.push_back({"softcap", {any}, with("cap", 1.5)});
  to.push_back({"clamp", {any}, with("min", 0.05)});
  to.push_back({"clamp", {any}, with("max", 0.05)});
  for (const char* op : {"add", "sub", "mul", "div", "minimum", "maximum"}) {
    const auto second = [](List shape) { return apart(T(std::move(shape), 0.5, 2)); };
    const auto wide = [&](List shape) { return apart(P(std::move(shape), 0.5, 2)); };
    to.push_back({op, {T({2, 3, 4}), second({2, 3, 4})}, {}});
    to.push_back({op, {T({2, 3, 4}), wide({3, 1})}, {}});
    to.push_back({op, {T({2, 3, 4}), wide({1, 3, 1})}, {}});
    to.push_back({op, {T({3, 1}), second({2, 1, 4})}, {}});
    to.push_back({op, {T({}), second({2, 3})}, {}});
    to.push_back({op, {T({4}), wide({2, 1, 4})}, {}});
    to.push_back({op, {T({2, 1}), wide({1})}, {}});
  }
  const auto cond = [](List shape) { return whole(W(std::move(shape))); };
  to.push_back({"where", {cond({2, 3}), T({2, 3}), T({2, 3})}, {}});
  to.push_back({"where", {cond({3, 1}), T({2, 1, 4}), P({4})}, {}});
  to.push_back({"where", {cond({2, 1, 1, 4}), T({3, 1}), T({1})}, {}});
}

inline void add_elementwise(std::vector<Case>& to) {
  for (const List& shape : {List{6}, List{2, 3}, List{2, 1, 5}}) {
    for (const ops::Function& f : ops::functions())
      to.push_back({std::string(ops::name(f.op)), {apart(T(shape, -4, 4))}, choice_of(f)});
    to.push_back({"gelu", {T(shape, -3, 3)}, {}});
    to.push_back({"swiglu", {T(shape, -3, 3), T(shape)}, {}});
    add_glu(to, shape, 3);
    to.push_back({"add", {T(shape), T(shape)}, {}});
    to.push_back({"mul", {T(shape), T(shape)}, {}});
    to.push_back({"add", {T(shape), P(shape)}, {}});
    to.push_back({"mul", {T(shape), P(shape)}, {}});
    to.push_back({"scale", {T(shape)}, with("factor", -1.7)});
    to.push_back({"dropout", {T(shape)}, with("rate", 0.4)});
    to.push_back({"dropout", {T(shape)}, with("rate", 0.0)});
    to.push_back({"softmax", {T(shape, -2, 2)}, {}});
  }
  add_arithmetic(to);
  for (const char* op : {"add", "mul"}) {
    to.push_back({op, {T({2, 3, 4}), P({4})}, {}});
    to.push_back({op, {T({2, 3, 4}), P({3, 4})}, {}});
    to.push_back({op, {T({2, 3, 4}), T({4})}, {}});
    to.push_back({op, {T({5, 3}), P({})}, {}});
  }
}

// Of a linear_cross_entropy that counts hits.
inline Attrs hits(int64_t ignore, int64_t chunk) {
  return {{"ignore_index", ignore}, {"chunk", chunk}, {"accuracy", int64_t{1}}};
}

// Of a linear_cross_entropy in chunks of 2 rows, with -1 to ignore.
inline Attrs shaped(double scale, double softcap) {
  Attrs attrs = hits(-1, 2);
  attrs.set("scale", scale);
  if (softcap > 0) attrs.set("softcap", softcap);
  return attrs;
}

inline void add_losses(std::vector<Case>& to) {
  for (const List& lead : {List{}, List{6}, List{2, 3}}) {
    List x = lead, logits = lead;
    x.push_back(4);
    logits.push_back(5);
    const Operand targets = I(lead, 5), some{'I', lead, -1, 5};  // -1 is ignored below
    const Attrs ignore = with("ignore_index", int64_t{-1});
    to.push_back({"cross_entropy", {T(logits, -2, 2), targets}, {}});
    to.push_back({"cross_entropy", {T(logits, -2, 2), some, W(lead)}, ignore});
    to.push_back({"linear_cross_entropy", {T(x), P({5, 4}), targets}, {}});
    to.push_back({"linear_cross_entropy",
                  {T(x), P({5, 4}), some, W(lead)},
                  {{"ignore_index", int64_t{-1}}, {"chunk", int64_t{2}}}});
    to.push_back({"linear_cross_entropy", {T(x), P({5, 4}), some, W(lead)}, hits(-1, 2)});
    to.push_back({"linear_cross_entropy", {T(x), P({5, 4}), some}, shaped(0.7, 0)});
    to.push_back({"linear_cross_entropy", {T(x), P({5, 4}), some, W(lead)}, shaped(1, 1.5)});
    to.push_back({"linear_cross_entropy", {T(x), P({5, 4}), some, kNoOperand, W({5})}, shaped(1.3, 2)});
    to.push_back(
        {"cross_entropy", {T(logits, -2, 2), some}, {{"ignore_index", int64_t{-1}}, {"smoothing", 0.3}}});
    to.push_back({"cross_entropy", {T(logits, -2, 2), some, W(lead), W({5})}, ignore});
    to.push_back({"linear_cross_entropy",
                  {T(x), P({5, 4}), some, W(lead)},
                  {{"ignore_index", int64_t{-1}}, {"chunk", int64_t{2}}, {"smoothing", 0.1}}});
    to.push_back({"linear_cross_entropy", {T(x), P({5, 4}), some, kNoOperand, W({5})}, hits(-1, 2)});
    to.push_back({"mse", {T(x), T(x)}, {}});
    to.push_back({"mse", {T(x), T(x), W(lead)}, {}});
  }
}

inline void add_layout(std::vector<Case>& to) {
  to.push_back({"reshape", {T({2, 6})}, with("shape", List{3, 4})});
  to.push_back({"effective", {T({2, 6})}, with("micro_steps", int64_t{1})});
  to.push_back({"reshape", {T({2, 3, 2})}, with("shape", List{-1, 2})});
  to.push_back({"transpose", {T({2, 3})}, with("perm", List{1, 0})});
  to.push_back({"transpose", {T({2, 3, 4})}, with("perm", List{2, 0, 1})});
  to.push_back({"transpose", {T({2, 3, 2, 2})}, with("perm", List{0, 2, 1, 3})});
  for (int64_t axis : {0, 1, -1})
    to.push_back({"slice", {T({3, 4, 3})}, {{"axis", axis}, {"begin", int64_t{1}}, {"end", int64_t{3}}}});
  to.push_back({"slice", {T({5})}, {{"axis", int64_t{0}}, {"begin", int64_t{4}}, {"end", int64_t{5}}}});
  for (int64_t axis : {0, 1, -1}) {
    List a{2, 3, 2}, b = a, c = a;
    b[static_cast<size_t>(axis < 0 ? axis + 3 : axis)] = 1;
    c[static_cast<size_t>(axis < 0 ? axis + 3 : axis)] = 4;
    to.push_back({"concat", {T(a), T(b), T(c)}, with("axis", axis)});
    to.push_back({"concat", {T(a)}, with("axis", axis)});
  }
  to.push_back({"concat", {T({2}), kNoOperand, T({3})}, with("axis", int64_t{0})});
  for (const char* op : {"reduce_sum", "reduce_mean"}) {
    to.push_back({op, {T({2, 3, 4})}, {}});
    to.push_back({op, {T({5})}, {}});
    for (int64_t keep : {0, 1})
      for (const List& axes : {List{0}, List{1}, List{-1}, List{0, 2}, List{2, 1}, List{0, 1, 2}})
        to.push_back({op, {T({2, 3, 4})}, {{"axes", axes}, {"keep", keep}}});
  }
}

inline std::vector<Case> gradient_cases() {
  std::vector<Case> cases;
  add_products(cases);
  add_matmuls(cases);
  add_norms(cases);
  add_attention(cases);
  add_relative_bias(cases);
  add_rope(cases);
  add_masks(cases);
  add_elementwise(cases);
  add_losses(cases);
  add_layout(cases);
  add_experts(cases);
  add_pictures(cases);
  cases.push_back({"cast", {T({2, 3})}, word("dtype", "f64")});
  return cases;
}

}  // namespace cairn::conformance
