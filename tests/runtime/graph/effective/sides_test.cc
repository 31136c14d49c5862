// Which values are of the effective batch, and the parts that a joint graph has then.
#include "runtime/graph/effective/sides.h"

#include <gtest/gtest.h>

#include "runtime/graph/joint.h"

namespace cairn::graph {
namespace {

TensorDesc f32(std::initializer_list<int64_t> dims) { return {DType::kF32, Shape(dims)}; }

constexpr int64_t kSteps = 4, kRows = 2;

// y of the effective batch, made of x by w; targets of all rows.
struct Model {
  std::shared_ptr<Graph> g = std::make_shared<Graph>();
  ValueId x = g->input("x", f32({kRows, 6})), t = g->input("t", f32({kSteps * kRows, 3}));
  ValueId w = g->parameter("w", f32({3, 6}), {}), scale = g->parameter("scale", f32({1}), {});
  ValueId h = one("linear", {x, w});
  ValueId y = one("effective", {h}, {{"micro_steps", kSteps}});

  ValueId one(const char* name, std::vector<ValueId> in, Attrs attrs = {}) {
    return g->op(name, std::move(in), std::move(attrs))[0];
  }
  void freeze(ValueId of, std::vector<ValueId> outputs = {}) { g->freeze(of, kNone, std::move(outputs)); }
};

std::string refused(Code code, const std::function<void(Model&)>& body) {
  Model model;
  try {
    body(model);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "no error";
}

void expect_words(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words) EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
}

TEST(Effective, WhatMeetsThemIsOfTheEffectiveBatchToo) {
  Model m;
  const ValueId scaled = m.one("mul", {m.y, m.one("exp", {m.scale})}), far = m.one("tanh", {m.t});
  const ValueId metric = m.one("reduce_mean", {m.h});
  m.freeze(m.one("mse", {scaled, far}), {metric});
  const Sides sides = find_sides(*m.g, m.g->loss(), m.g->weight());
  EXPECT_EQ(sides.micro_steps, kSteps);
  std::map<std::string, bool> of;
  for (size_t i = 0; i < m.g->ops().size(); ++i)
    of[std::string(ops::name(m.g->ops()[i].code))] = sides.effective[i];
  const std::map<std::string, bool> expected = {
      {"linear", false}, {"effective", false},   {"exp", true}, {"mul", true},
      {"tanh", true},    {"reduce_mean", false}, {"mse", true}};
  EXPECT_EQ(of, expected);
}

TEST(Effective, PartsFollowEachOther) {
  Model m;
  m.freeze(m.one("mse", {m.one("mul", {m.y, m.scale}), m.t}));
  const auto joint = derive(m.g, {});
  EXPECT_EQ(joint->effective_steps, kSteps);
  std::vector<std::string> names;
  Part last = Part::kGather;
  for (const JointOp& op : joint->ops()) {
    EXPECT_LE(last, op.part) << op.name;
    last = op.part;
    names.push_back(cat(static_cast<int>(op.part), ' ', ops::name(op.code)));
  }
  // `scale` and `w` have a first writer each.
  const std::vector<std::string> expected = {
      "0 linear",      "0 effective", "1 mul",    "1 mse_grad",       "1 mul",
      "1 reduce_axes", "1 mul",       "2 linear", "2 effective_rows", "2 linear_grad_weight"};
  EXPECT_EQ(std::multiset<std::string>(names.begin(), names.end()),
            std::multiset<std::string>(expected.begin(), expected.end()));
  for (const Resident& resident : joint->residents)
    if (resident.role == Role::kEffective) {
      EXPECT_EQ(resident.saved, Saved::kNever);
      EXPECT_EQ(joint->values[static_cast<size_t>(resident.value)].desc, f32({kSteps * kRows, 3}));
    }
  EXPECT_EQ(std::ranges::count(joint->residents, Role::kEffective, &Resident::role), 2)
      << "y and its gradient";
}

TEST(Effective, FreezeNamesWhatIsMissing) {
  expect_words(refused(Code::kInvalidArgument, [](Model& m) { m.freeze(m.one("reduce_mean", {m.h})); }),
               {"the loss 'reduce_mean_2'", "effective_1", "effective batch of 4"});
  expect_words(
      refused(Code::kInvalidArgument,
              [](Model& m) {
                m.freeze(m.one("mse", {m.y, m.one("concat", {m.h, m.h, m.h, m.h}, {{"axis", int64_t{0}}})}));
              }),
      {"'mse_3'", "'concat_2'", "one micro-batch", "op 'effective'"});
  expect_words(refused(Code::kInvalidArgument,
                       [](Model& m) {
                         const ValueId own = m.g->input("own", f32({1, 3}));
                         const ValueId other = m.one("add", {m.h, own});
                         m.freeze(m.one("mse", {m.one("add", {m.y, own}), m.t}), {other});
                       }),
               {"'own'", "micro-batch", "effective"});
  expect_words(
      refused(Code::kInvalidArgument,
              [](Model& m) {
                const ValueId again = m.one("effective", {m.one("tanh", {m.y})}, {{"micro_steps", kSteps}});
                m.freeze(m.one("reduce_mean", {again}));
              }),
      {"effective_1"});
  expect_words(
      refused(Code::kInvalidArgument,
              [](Model& m) {
                m.freeze(m.one("add", {m.one("reduce_mean", {m.y}),
                                       m.one("reduce_mean",
                                             {m.one("effective", {m.h}, {{"micro_steps", int64_t{2}}})})}));
              }),
      {"micro_steps 2", "4", "one number of micro-batches"});
  expect_words(refused(Code::kInvalidArgument, [](Model& m) { m.g->freeze(kNone, kNone, {m.y}); }),
               {"effective_1", "no loss", "micro_steps 1"});
}

TEST(Effective, WhatMustNotRunTwiceIsRefused) {
  expect_words(refused(Code::kUnsupported,
                       [](Model& m) {
                         const ValueId cache = m.g->resident("cache", ValueKind::kCache, f32({8, 3}));
                         const ValueId at = m.g->input("at", {DType::kI32, {1}});
                         const ValueId all = m.one("append", {cache, m.h, at});
                         m.freeze(m.one("mse", {m.y, m.t}), {all});
                       }),
               {"append_2", "must not run twice"});
}

}  // namespace
}  // namespace cairn::graph
