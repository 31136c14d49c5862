// Cases for comparing backends: sizes around vector and tile widths, odd ones, one.
#pragma once
#include "tests/conformance/gradient_cases.h"

namespace cairn::conformance {

inline void add_backend_products(std::vector<Case>& to) {
  struct Size {
    int64_t m, k, n;
  };
  const Size sizes[] = {{1, 7, 33}, {7, 33, 64},  {33, 64, 129},   {64, 129, 1}, {129, 1, 7},
                        {1, 1, 1},  {64, 64, 64}, {129, 129, 129}, {32, 256, 96}};
  for (const Size& s : sizes) {
    const Operand x = T({s.m, s.k}), w = P({s.n, s.k}), b = P({s.n});
    to.push_back({"linear", {x, w, b}, {}});
    to.push_back({"linear", {x, w}, {}});
    to.push_back({"matmul", {x, T({s.k, s.n})}, {}});
    to.push_back({"matmul",
                  {T({3, s.k, s.m}), T({s.n, s.k})},
                  {{"transpose_a", int64_t{1}}, {"transpose_b", int64_t{1}}}});
  }
  to.push_back({"matmul", {T({2, 1, 33, 16}), T({3, 65, 16})}, with("transpose_b", int64_t{1})});
  for (const ops::Function& f : ops::functions())
    for (const Size& s : {sizes[1], sizes[2], sizes[6]}) {
      const Attrs act = word("activation", std::string(f.name));
      // Where results end at 1 while arguments grow, and with them what weights of 16 bits are off by: small ones.
      const double most = f.name == "tanh" ? 0.25 : 1;
      const Operand w = P({s.n, s.k}, -most, most);
      to.push_back({"linear", {T({s.m, s.k}), w, P({s.n})}, act});
      to.push_back({"linear", {T({1, s.m, s.k}), w}, act});
    }
  for (int64_t c : {1, 7, 33, 64, 129})
    for (const char* dtype : {"", "bf16", "f16"}) {
      to.push_back({"embedding", {P({11, c}), I({2, 33}, 11)}, word("dtype", dtype)});
      to.push_back({"embedding", {P({129, c}), {'I', {7}, -1, 130}}, word("dtype", dtype)});
    }
}

inline void add_backend_rows(std::vector<Case>& to) {
  for (int64_t rows : {1, 7, 33})
    for (int64_t c : {7, 33, 64, 129, 768}) {
      const List shape{rows, c};
      const Operand x = T(shape), gamma = P({c}, 0.5, 1.5), beta = P({c});
      to.push_back({"layernorm", {x, gamma, beta}, {}});
      to.push_back({"rmsnorm", {x, gamma}, {}});
      to.push_back({"rmsnorm", {x, beta}, with("offset", 1.0)});
      to.push_back({"softmax", {T(shape, -4, 4)}, {}});
      to.push_back({"cross_entropy", {T(shape, -4, 4), I({rows}, c)}, {}});
      to.push_back({"cross_entropy",
                    {T(shape, -4, 4), {'I', {rows}, -1, static_cast<double>(c)}, W({rows})},
                    with("ignore_index", int64_t{-1})});
      to.push_back({"cross_entropy", {T(shape, -4, 4), I({rows}, c)}, with("smoothing", 0.2)});
      to.push_back({"cross_entropy", {T(shape, -4, 4), I({rows}, c), kNoOperand, W({c})}, {}});
      to.push_back({"mse", {x, x}, {}});
      to.push_back({"mse", {x, x, W({rows})}, {}});
      for (const char* op : {"add", "mul"}) {
        to.push_back({op, {x, P({c})}, {}});
        to.push_back({op, {x, T({c})}, {}});
        to.push_back({op, {x, x}, {}});
      }
    }
  to.push_back({"layernorm", {T({33, 64})}, {}});
  to.push_back({"layernorm", {T({33, 64}), kNoOperand, P({64})}, {}});
  to.push_back({"rmsnorm", {T({33, 64})}, {}});
  struct Size {
    int64_t rows, c, classes;
  };
  for (const Size& s :
       {Size{1, 7, 33}, Size{7, 33, 64}, Size{33, 64, 129}, Size{65, 32, 300}, Size{129, 64, 7}})
    for (int64_t chunk : {0, 16}) {
      const Operand x = T({s.rows, s.c}), w = P({s.classes, s.c});
      to.push_back({"linear_cross_entropy", {x, w, I({s.rows}, s.classes)}, with("chunk", chunk)});
      to.push_back({"linear_cross_entropy",
                    {x, w, {'I', {s.rows}, -1, static_cast<double>(s.classes)}, W({s.rows})},
                    {{"ignore_index", int64_t{-1}}, {"chunk", chunk}}});
      to.push_back(
          {"linear_cross_entropy", {x, w, I({s.rows}, s.classes)}, {{"chunk", chunk}, {"smoothing", 0.1}}});
      to.push_back({"linear_cross_entropy",
                    {x, w, I({s.rows}, s.classes), kNoOperand, W({s.classes})},
                    with("chunk", chunk)});
      to.push_back(
          {"linear_cross_entropy", {x, w, I({s.rows}, s.classes)}, {{"chunk", chunk}, {"scale", 0.4}}});
      to.push_back({"linear_cross_entropy",
                    {x, w, {'I', {s.rows}, -1, static_cast<double>(s.classes)}, W({s.rows})},
                    {{"ignore_index", int64_t{-1}}, {"chunk", chunk}, {"scale", 1.2}, {"softcap", 3.0}}});
      // Hits depend on which logit is the largest, be it by little: so on ones that every kernel makes exactly.
      const Operand exact = whole(T({s.rows, s.c}));
      to.push_back({"linear_cross_entropy", {exact, whole(P({5, s.c})), I({s.rows}, 5)}, hits(-1, chunk)});
      to.push_back({"linear_cross_entropy",
                    {exact, whole(P({3, s.c})), {'I', {s.rows}, -1, 3}, W({s.rows})},
                    hits(-1, chunk)});
    }
}

inline void add_backend_attention(std::vector<Case>& to) {
  struct Size {
    int64_t batch, time, heads, kv, dim;
  };
  for (const Size& s :
       {Size{1, 1, 1, 1, 8}, Size{2, 7, 2, 2, 8}, Size{1, 33, 2, 1, 16}, Size{2, 64, 4, 2, 32},
        Size{1, 129, 2, 2, 64}, Size{1, 65, 3, 1, 7}, Size{1, 130, 1, 1, 128}})
    for (int64_t causal : {1, 0}) {
      Attrs attrs{{"heads", s.heads}, {"kv_heads", s.kv}, {"causal", causal}};
      const List q{s.batch, s.time, s.heads * s.dim}, kv{s.batch, s.time, s.kv * s.dim};
      to.push_back({"attention", {T(q), T(kv), T(kv)}, attrs});
      if (s.time > 100 && causal == 0) continue;  // long enough with one mask
      attrs.set("scale", 0.3);
      to.push_back({"attention", {T({s.batch, s.time, (s.heads + 2 * s.kv) * s.dim}, -3, 3)}, attrs});
    }
  for (int64_t dim : {2, 8, 14, 64}) to.push_back({"rope", {T({2, 33, 3 * dim})}, with("heads", int64_t{3})});
  for (int64_t dim : {8, 14, 64, 160})
    for (int64_t interleaved : {0, 1}) {
      const int64_t columns = dim / 4 * 2;
      std::vector<double> frequencies;
      for (int64_t i = 0; i < columns / 2; ++i) frequencies.push_back(1.0 / static_cast<double>(i + 1));
      Attrs attrs{{"heads", int64_t{3}}, {"interleaved", interleaved}};
      to.push_back({"rope", {T({2, 33, 3 * dim})}, attrs});
      attrs.set("factor", 0.8);
      to.push_back({"rope", {T({2, 33, 3 * dim}), I({2, 33}, 5000)}, attrs});
      attrs.set("columns", columns);
      attrs.set("frequencies", frequencies);
      to.push_back({"rope", {T({2, 33, 3 * dim}), I({2, 33}, 5000)}, attrs});
    }
}

inline void add_backend_elements(std::vector<Case>& to) {
  for (const List& shape : {List{1}, List{7}, List{33}, List{64}, List{129}, List{3, 1000}}) {
    for (const ops::Function& f : ops::functions())
      to.push_back({std::string(ops::name(f.op)), {T(shape, -8, 8)}, choice_of(f)});
    to.push_back({"silu", {T(shape, -20, 20)}, {}});
    to.push_back({"swiglu", {T(shape, -8, 8), T(shape)}, {}});
    add_glu(to, shape, 8);
    to.push_back({"scale", {T(shape)}, with("factor", 0.37)});
    to.push_back({"dropout", {T(shape)}, with("rate", 0.1)});
    to.push_back({"dropout", {T(shape)}, with("rate", 0.75)});
    for (const char* dtype : {"f32", "bf16", "f16"}) to.push_back({"cast", {T(shape)}, word("dtype", dtype)});
  }
  for (const List& shape : {List{1}, List{33}, List{129}, List{3, 1000}}) {
    for (const char* op : {"softplus", "abs"}) to.push_back({op, {T(shape, -20, 20)}, {}});
    to.push_back({"exp", {T(shape, -8, 8)}, {}});
    for (const char* op : {"log", "sqrt"}) to.push_back({op, {T(shape, 0.001, 30)}, {}});
    for (const double exponent : {3.0, -2.0, 1.5, 0.3})
      to.push_back({"pow", {T(shape, 0.1, 4)}, with("exponent", exponent)});
    to.push_back({"clamp", {T(shape, -3, 3)}, {{"min", -1.0}, {"max", 2.0}}});
    to.push_back({"softcap", {T(shape, -9, 9)}, with("cap", 5.0)});
  }
  // Rows longer and shorter than what is read in one go, and single numbers, on either side.
  for (const char* op : {"add", "mul", "sub", "div", "minimum", "maximum"})
    for (const auto& [a, b] : {std::pair<List, List>{{3, 1000}, {3, 1}},
                               {{7, 1, 33}, {5, 33}},
                               {{7, 5, 33}, {7, 1, 33}},
                               {{1, 700}, {9, 1}},
                               {{1}, {3, 129}},
                               {{2, 3, 4, 5}, {3, 1, 5}}})
      for (const bool wide : {false, true})
        to.push_back({op, {T(a), wide ? P(b, 0.5, 2) : T(b, 0.5, 2)}, {}});
  to.push_back({"where", {whole(W({3, 1000})), T({1000}), T({3, 1})}, {}});
  to.push_back({"where", {whole(T({5, 1, 33})), T({7, 33}), P({33})}, {}});
  to.push_back({"transpose", {T({33, 129})}, with("perm", List{1, 0})});
  to.push_back({"transpose", {T({2, 7, 33, 8})}, with("perm", List{0, 2, 1, 3})});
  to.push_back({"transpose", {T({3, 33, 64})}, with("perm", List{2, 1, 0})});
  for (const char* op : {"reduce_sum", "reduce_mean"})
    for (const List& axes : {List{}, List{0}, List{1}, List{2}, List{0, 2}})
      to.push_back({op, {T({7, 33, 65})}, with("axes", axes)});
}

inline std::vector<Case> backend_cases() {
  std::vector<Case> cases = gradient_cases();
  std::erase_if(cases, [](const Case& c) { return c.op == "cast"; });
  add_backend_products(cases);
  add_backend_rows(cases);
  add_backend_attention(cases);
  add_backend_masks(cases);
  add_backend_elements(cases);
  add_backend_experts(cases);
  add_backend_pictures(cases);
  return cases;
}

}  // namespace cairn::conformance
