// What gradient rules read: `saves` of every row is exactly what its rule hands to backward ops, over all
// variants. The planner keeps what the table says, no more and no less.
#include "runtime/ops/gradients.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "runtime/ops/functions.h"
#include "tests/runtime/ops/descs.h"

namespace cairn::ops {
namespace {

struct Emitted {
  OpCode op;
  std::vector<Id> in;
  Attrs attrs;
  uint32_t wanted;
};

// Values: input i is i, output i is 100 + i, its gradient is 200 + i, what is emitted follows from 300 on.
class Recorder final : public GradientEmitter {
 public:
  Recorder(const OpRow& row, std::vector<TensorDesc> in, Attrs attrs, uint32_t wanted)
      : row_(row), attrs_(std::move(attrs)), wanted_(wanted) {
    std::vector<TensorDesc> out;
    if (row.code == OpCode::k_custom)
      out.assign(static_cast<size_t>(attrs_.integer("outputs")), in[0]);
    else
      out = infer(row.name, in, attrs_);
    for (size_t i = 0; i < in.size(); ++i)
      if (!is_none(in[i])) descs_[static_cast<Id>(i)] = in[i];
    for (size_t i = 0; i < out.size(); ++i)
      descs_[100 + static_cast<Id>(i)] = descs_[200 + static_cast<Id>(i)] = out[i];
  }

  Id in(int i) const override { return descs_.contains(i) && i < 16 ? i : kNone; }
  Id out(int i) const override { return descs_.contains(100 + i) ? 100 + i : kNone; }
  const Attrs& attrs() const override { return attrs_; }
  const TensorDesc& desc(Id value) const override { return descs_.at(value); }
  Id grad_out(int i) const override {
    const bool first_only = row_.code != OpCode::k_custom;
    return descs_.contains(200 + i) && (i == 0 || !first_only) ? 200 + i : kNone;
  }
  bool wants(int i) const override {
    return in(i) != kNone && is_float(desc(i).dtype) && (wanted_ >> i & 1u);
  }

  std::vector<Id> emit(OpCode op, std::vector<Id> in, Attrs attrs, uint32_t wanted) override {
    const OpRow& r = ops::row(op);
    std::vector<TensorDesc> descs;
    for (Id id : in) {
      if (id >= 0 && id < 16) reads |= IN(id);
      if (id >= 100 && id < 116) reads |= OUT(id - 100);
      descs.push_back(id == kNone ? none() : descs_.at(id));
    }
    check_attrs(r, attrs);
    const std::vector<TensorDesc> out = infer(r.name, descs, attrs);
    std::vector<Id> ids;
    for (size_t i = 0; i < r.outputs.size(); ++i) {
      const bool made = i < out.size() && (!r.outputs[i].optional || (wanted >> i & 1u));
      ids.push_back(made ? next_++ : kNone);
      if (made) descs_[ids.back()] = out[i];
    }
    emitted.push_back({op, std::move(in), std::move(attrs), wanted});
    return ids;
  }

  void give(int i, Id grad) override {
    EXPECT_TRUE(wants(i)) << row_.name << " gives the gradient of input " << i << ", which nobody wants";
    EXPECT_NE(grad, kNone) << row_.name << " gives nothing for input " << i;
    EXPECT_TRUE(given.emplace(i, grad).second) << row_.name << " gives input " << i << " twice";
    if (grad != kNone) {
      EXPECT_EQ(to_string(desc(grad)), to_string(desc(i))) << row_.name << ", input " << i;
    }
  }

  uint32_t reads = 0;
  std::vector<Emitted> emitted;
  std::map<int, Id> given;

 private:
  const OpRow& row_;
  Attrs attrs_;
  uint32_t wanted_;
  std::map<Id, TensorDesc> descs_;
  Id next_ = 300;
};

struct Variant {
  const char* op;
  std::vector<TensorDesc> in;
  Attrs attrs;
};

Attrs activation(std::string_view name) { return {{"activation", std::string(name)}}; }

void add_pictures(std::vector<Variant>& to) {
  const TensorDesc x = bf({2, 4, 5, 6}), l = f32({2, 5, 6}), c = f32({6}), h = f32({2, 3});
  const Attrs two{{"stride", List{2}}, {"padding", List{1}}, {"groups", int64_t{2}}},
      window{{"kernel", List{2}}}, size{{"size", List{3}}};
  to.push_back({"conv", {x, f32({4, 3, 3, 3}), f32({4})}, two});
  to.push_back({"conv", {l, f32({4, 2, 6})}, {}});
  to.push_back({"conv_transpose", {x, f32({6, 3, 3, 2})}, two});
  to.push_back({"max_pool", {x}, window});
  to.push_back({"max_pool", {l}, size});
  to.push_back({"average_pool", {x}, size});
  to.push_back({"average_pool", {l}, {{"kernel", List{2}}, {"count_padding", int64_t{0}}}});
  to.push_back({"resize", {x}, {{"size", List{8, 2}}, {"mode", std::string("bilinear")}}});
  to.push_back({"resize", {l}, size});
  to.push_back({"pad", {l}, {{"before", List{0, 1, 0}}, {"after", List{0, 0, 2}}}});
  to.push_back({"patches", {x}, window});
  to.push_back({"batchnorm", {x, c, c}, {}});
  to.push_back({"batchnorm", {l, none(), c}, {{"eps", 0.1}}});
  to.push_back({"normalize", {x, c, c, c, c}, {}});
  to.push_back({"groupnorm", {x, c, c}, {{"groups", int64_t{3}}}});
  to.push_back({"groupnorm", {l}, {{"groups", int64_t{2}}}});
  to.push_back({"l2_normalize", {l}, {}});
  to.push_back({"lstm", {bf({2, 5, 12}), f32({12, 3}), bf({2, 3}), h}, {}});
  to.push_back({"lstm", {f32({2, 1, 12}), f32({12, 3})}, {{"reverse", int64_t{1}}}});
  to.push_back({"gru", {bf({2, 5, 9}), f32({9, 3}), f32({9}), bf({2, 3})}, {{"reverse", int64_t{1}}}});
  to.push_back({"gru", {f32({2, 1, 9}), f32({9, 3})}, {}});
  to.push_back(
      {"pair_loss", {bf({4, 3}), bf({4, 3}), f32({1}), f32({1})}, {{"kind", std::string("sigmoid")}}});
  to.push_back({"pair_loss", {f32({4, 3}), f32({4, 3}), f32({1})}, {{"kind", std::string("triplet")}}});
}

std::vector<Variant> variants() {
  const Attrs heads{{"heads", int64_t{2}}};
  const Attrs custom{{"custom", int64_t{0}}, {"inputs", int64_t{4}}, {"outputs", int64_t{4}}};
  const TensorDesc x = f32({3, 4});
  std::vector<Variant> list = {
      {"embedding", {f32({9, 4}), i32({3})}, {}},
      {"embedding", {f32({9, 4}), i32({3})}, {{"dtype", std::string("bf16")}}},
      {"layernorm", {x, f32({4}), f32({4})}, {}},
      {"layernorm", {bf({3, 4})}, {}},
      {"rmsnorm", {x, f32({4})}, {}},
      {"attention", {f32({1, 3, 12})}, heads},
      {"attention", {f32({1, 3, 4}), f32({1, 3, 4}), f32({1, 3, 4})}, heads},
      {"attention", {f32({1, 3, 12}), none(), none(), f32({2}), i32({1, 3}), i32({1})}, heads},
      {"attention",
       {f32({1, 1, 4}), f32({1, 3, 4}), f32({1, 3, 4}), f32({2}), none(), none(), i32({1})},
       heads},
      {"attention", {f32({1, 3, 12}), none(), none(), none(), none(), none(), none(), f32({2, 5})}, heads},
      {"relative_bias", {f32({8, 2})}, {{"queries", int64_t{3}}, {"keys", int64_t{4}}}},
      {"rope", {f32({1, 3, 4})}, heads},
      {"rope", {f32({1, 3, 4}), i32({1, 3})}, heads},
      {"rmsnorm", {x, f32({4})}, {{"offset", 1.0}}},
      {"glu", {x, x}, {}},
      {"softcap", {x}, {{"cap", 2.0}}},
      {"swiglu", {x, x}, {}},
      {"add", {x, x}, {}},
      {"add", {x, f32({4})}, {}},
      {"add", {bf({3, 4}), f32({3, 4})}, {}},
      {"add", {bf({3, 4}), bf({4})}, {}},
      {"mul", {x, x}, {}},
      {"mul", {bf({3, 4}), f32({4})}, {}},
      {"mul", {bf({3, 4}), f32({3, 4})}, {}},
      {"add", {f32({3, 1}), f32({2, 1, 4})}, {}},
      {"sub", {x, f32({3, 1})}, {}},
      {"div", {f32({4}), f32({3, 4})}, {}},
      {"div", {bf({3, 4}), f32({3, 1})}, {}},
      {"minimum", {x, x}, {}},
      {"maximum", {x, f32({1, 4})}, {}},
      {"where", {f32({3, 1}), bf({4}), bf({2, 1, 4})}, {}},
      {"clamp", {x}, {{"min", -1.0}}},
      {"pow", {x}, {{"exponent", 2.5}}},
      {"matmul", {f32({2, 3, 4}), f32({4, 5})}, {}},
      {"matmul", {f32({4, 3}), f32({2, 5, 4})}, {{"transpose_a", int64_t{1}}, {"transpose_b", int64_t{1}}}},
      {"scale", {x}, {{"factor", 2.0}}},
      {"dropout", {x}, {{"rate", 0.5}, {"rng", int64_t{3}}}},
      {"softmax", {x}, {}},
      {"linear_cross_entropy", {x, f32({7, 4}), i32({3}), f32({3})}, {}},
      {"linear_cross_entropy", {bf({3, 4}), f32({7, 4}), i32({3})}, {}},
      {"linear_cross_entropy", {x, f32({7, 4}), i32({3})}, {{"accuracy", int64_t{1}}}},
      {"linear_cross_entropy", {x, f32({7, 4}), i32({3}), none(), f32({7})}, {}},
      {"cross_entropy", {x, i32({3}), f32({3})}, {}},
      {"cross_entropy", {x, i32({3}), none(), f32({4})}, {}},
      {"mse", {x, x, f32({3})}, {}},
      {"reshape", {x}, {{"shape", List{2, 6}}}},
      {"effective", {x}, {{"micro_steps", int64_t{3}}}},
      {"transpose", {x}, {{"perm", List{1, 0}}}},
      {"slice", {x}, {{"axis", int64_t{-1}}, {"begin", int64_t{1}}, {"end", int64_t{3}}}},
      {"concat", {x, none(), x}, {{"axis", int64_t{-2}}}},
      {"reduce_sum", {x}, {{"axes", List{-1}}}},
      {"reduce_mean", {x}, {{"keep", int64_t{1}}}},
      {"cast", {x}, {{"dtype", std::string("bf16")}}},
      {"route", {x}, {{"k", int64_t{2}}}},
      {"route", {bf({3, 4})}, {{"k", int64_t{2}}, {"normalise", int64_t{0}}}},
      {"gather_rows", {x, i32({6}), i32({3, 2})}, {}},
      {"gather_rows", {bf({3, 4}), i32({6}), i32({3, 2}), f32({3, 2})}, {}},
      {"combine_rows", {f32({6, 4}), i32({6}), i32({3, 2})}, {}},
      {"combine_rows", {bf({6, 4}), i32({6}), i32({3, 2}), f32({3, 2})}, {}},
      {"grouped_linear", {x, f32({2, 5, 4}), i32({3}), f32({2, 5})}, {}},
      {"grouped_linear", {bf({3, 4}), f32({2, 4, 5}), i32({3})}, {{"transposed", int64_t{1}}}},
      {"custom", {x, x, x, x}, custom},
  };
  add_pictures(list);
  for (const char* op : {"softplus", "exp", "log", "sqrt", "abs"}) list.push_back({op, {x}, {}});
  std::vector<std::string_view> activations{""};
  for (const Function& f : functions()) {
    list.push_back({name(f.op).data(), {x}, {}});
    activations.push_back(f.name);
  }
  for (const std::string_view name : activations) {
    list.push_back({"linear", {x, f32({5, 4}), f32({5})}, activation(name)});
    list.push_back({"linear", {bf({3, 4}), f32({5, 4})}, activation(name)});
  }
  return list;
}

// Weights of losses are inputs that get no gradient.
uint32_t wantable(const Variant& v) {
  const std::string_view op = v.op;
  if (op == "linear_cross_entropy" || op == "mse") return 3u;
  if (op == "cross_entropy") return 1u;
  if (op == "where") return 6u;
  if (op == "normalize") return ~6u;
  return ~0u;
}

TEST(GradientRules, ReadWhatTheTableSays) {
  std::map<std::string_view, uint32_t> reads;
  for (const Variant& v : variants()) {
    const OpRow& r = *find(v.op);
    // Everything wanted, and every operand alone.
    for (int only = -1; only < static_cast<int>(v.in.size()); ++only) {
      const uint32_t wanted = wantable(v) & (only < 0 ? ~0u : 1u << only);
      Recorder recorder(r, v.in, v.attrs, wanted);
      r.gradient(recorder);
      reads[r.name] |= recorder.reads;
      for (size_t i = 0; i < v.in.size(); ++i) {
        const bool want = recorder.wants(static_cast<int>(i));
        EXPECT_EQ(recorder.given.contains(static_cast<int>(i)), want) << v.op << ", input " << i;
      }
      bool any = false;
      for (size_t i = 0; i < v.in.size(); ++i) any = any || recorder.wants(static_cast<int>(i));
      if (!any) {
        EXPECT_TRUE(recorder.emitted.empty()) << v.op << " works for nobody";
      }
    }
  }
  for (const OpRow& r : all()) {
    if (r.gradient == nullptr) continue;
    ASSERT_TRUE(reads.contains(r.name)) << r.name << " has no variant";
    EXPECT_EQ(reads[r.name], r.saves) << r.name << ": the rule reads " << std::hex << reads[r.name];
  }
}

// What an activation costs: relu needs no second copy of the pre-activation.
TEST(GradientRules, LinearReadsWhatItsActivationNeeds) {
  const std::map<std::string, uint32_t> expected = {{"", IN(0) | IN(1)},
                                                    {"relu", IN(0) | IN(1) | OUT(0)},
                                                    {"silu", IN(0) | IN(1) | OUT(1)},
                                                    {"gelu_erf", IN(0) | IN(1) | OUT(1)}};
  for (const auto& [name, saves] : expected) {
    Recorder recorder(*find("linear"), {f32({3, 4}), f32({5, 4})}, activation(name.c_str()), ~0u);
    find("linear")->gradient(recorder);
    EXPECT_EQ(recorder.reads, saves) << name;
  }
}

// The gradient of an operand that was repeated is summed over the axes along which it was, run by run, the last first,
// and the last op's sums have the operand's shape: a parameter's accumulator takes them as they are.
TEST(GradientRules, RepeatedOperandsGetSums) {
  struct Case {
    std::vector<int64_t> own, whole;
    std::vector<std::string> sums;
  };
  for (const Case& c : {Case{{3, 4}, {2, 3, 4}, {"[3, 4]"}},
                        {{3, 1}, {2, 3, 4}, {"[2, 3, 1]", "[3, 1]"}},
                        {{1, 4}, {2, 3, 4}, {"[1, 4]"}},
                        {{1, 3, 1}, {2, 3, 4}, {"[2, 3, 1]", "[1, 3, 1]"}},
                        {{2, 1, 4}, {2, 3, 4}, {"[2, 1, 4]"}},
                        {{1, 1, 1}, {2, 3, 4}, {"[1, 1, 1]"}},
                        {{2, 3, 1}, {2, 3, 1}, {}},
                        {{}, {2, 3}, {"[]"}}}) {
    const TensorDesc own{DType::kF32, Shape(std::span(c.own))}, whole{DType::kF32, Shape(std::span(c.whole))};
    Recorder recorder(*find("add"), {whole, own}, {}, 2u);
    find("add")->gradient(recorder);
    std::vector<std::string> sums;
    std::string last;
    while (sums.size() < recorder.emitted.size())
      sums.push_back(to_string(recorder.desc(300 + static_cast<Id>(sums.size())).shape));
    EXPECT_EQ(sums, c.sums) << to_string(own) << " in " << to_string(whole);
  }
}

// Weight gradients come first, so that x is free before dx is taken.
TEST(GradientRules, WeightsComeBeforeInputs) {
  Recorder recorder(*find("linear"), {f32({3, 4}), f32({5, 4}), f32({5})}, {}, ~0u);
  find("linear")->gradient(recorder);
  ASSERT_EQ(recorder.emitted.size(), 2u);
  EXPECT_EQ(recorder.emitted[0].op, OpCode::k_linear_grad_weight);
  EXPECT_EQ(recorder.emitted[0].wanted, 3u);
  EXPECT_EQ(recorder.emitted[1].op, OpCode::k_linear_grad_input);
}

TEST(GradientRules, DropoutRepeatsItsKey) {
  const Attrs attrs{{"rate", 0.25}, {"rng", int64_t{17}}};
  Recorder recorder(*find("dropout"), {f32({8})}, attrs, 1u);
  find("dropout")->gradient(recorder);
  ASSERT_EQ(recorder.emitted.size(), 1u);
  EXPECT_EQ(recorder.emitted[0].op, OpCode::k_dropout);
  EXPECT_EQ(recorder.emitted[0].attrs, attrs);
}

}  // namespace
}  // namespace cairn::ops
