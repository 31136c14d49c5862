#include "runtime/io/manifest.h"

#include <gtest/gtest.h>

#include "runtime/io/graph_file.h"
#include "tests/runtime/io/reseal.h"
#include "tests/runtime/io/samples.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::io {
namespace {

std::vector<step::Stage> stages() {
  return {step::Stage("wsd", 40).set("decay_steps", 7).set("decay_shape", "sqrt"),
          step::Stage("multistep").set("milestones", 20).set("milestones", 30)};
}

Manifest sample() {
  Manifest m;
  m.graph = encode_graph(*test::sample_graph());
  m.state.step = 12;
  m.state.micro = 3;
  m.state.updates = 11;
  m.state.skipped = 1;
  m.state.loss_sum = 3.25;
  m.state.weight_sum = 64;
  m.state.options = {.micro_steps = 4,
                     .seed = 0xFEEDFACECAFEBEEF,
                     .schedule = {stages(), 1e-3, 10, 100, 1e-5},
                     .clip_norm = 0.5};
  m.state.groups = {{"", &ops::optimizer("adamw"), {0.5, 0.8, 0.9, 1e-7, 0.2}, {}},
                    {"*.bias", &ops::optimizer("sgd"), {1, 0.9, 0, 1, 0.01}, {}}};
  m.tensors = {{"wte", {DType::kF32, {11, 8}}, 0, 1, 2}, {"wte/m", {DType::kF32, {3}}, 0, 3, 4}};
  m.tensors_bytes = place(m.tensors);
  m.metadata = {{"recipe", "gpt2.lua"}, {"empty", ""}};
  m.base = engine::BaseDigest{{{"h0.mlp", {DType::kF32, {8, 8}}, 5, 6}}, 7, 8};
  return m;
}

TEST(Manifest, GivesBackEverything) {
  const Manifest a = sample(), b = decode_manifest(encode_manifest(a));
  EXPECT_EQ(b.graph, a.graph);
  EXPECT_EQ(b.state.step, 12u);
  EXPECT_EQ(b.state.micro, 3u);
  EXPECT_EQ(b.state.updates, 11u);
  EXPECT_EQ(b.state.skipped, 1u);
  EXPECT_EQ(b.state.loss_sum, 3.25);
  EXPECT_EQ(b.state.weight_sum, 64);
  EXPECT_EQ(b.state.options.micro_steps, 4u);
  EXPECT_EQ(b.state.options.seed, 0xFEEDFACECAFEBEEF);
  EXPECT_EQ(step::schedule_text(b.state.options.schedule),
            "wsd:40:decay_steps=7:decay_shape=sqrt,multistep:milestones=20/30");
  EXPECT_EQ(b.state.options.schedule.rate, 1e-3);
  EXPECT_EQ(b.state.options.schedule.warmup_steps, 10u);
  EXPECT_EQ(b.state.options.schedule.total_steps, 100u);
  EXPECT_EQ(b.state.options.schedule.minimum_rate, 1e-5);
  ASSERT_EQ(b.state.groups.size(), 2u);
  for (size_t g = 0; g < 2; ++g) {
    EXPECT_EQ(b.state.groups[g].pattern, a.state.groups[g].pattern);
    EXPECT_EQ(b.state.groups[g].optimizer, a.state.groups[g].optimizer);
    EXPECT_EQ(b.state.groups[g].hypers, a.state.groups[g].hypers);
  }
  EXPECT_EQ(b.state.options.clip_norm, 0.5);
  EXPECT_EQ(b.metadata, a.metadata);
  EXPECT_EQ(b.tensors_bytes, 384u + 64u);
  ASSERT_EQ(b.tensors.size(), 2u);
  EXPECT_EQ(b.tensors[1].name, "wte/m");
  EXPECT_EQ(b.tensors[1].offset, 384u);
  EXPECT_EQ(b.tensors[1].digest_high, 4u);
  ASSERT_TRUE(b.base && b.base->parts.size() == 1);
  EXPECT_EQ(b.base->parts[0].name, "h0.mlp");
  EXPECT_EQ(b.base->parts[0].desc, a.base->parts[0].desc);
  EXPECT_EQ(b.base->parts[0].high, 6u);
  EXPECT_EQ(b.base->hex(), "00000000000000080000000000000007");
}

// A schedule that was there before there were others is saved as it was then.
TEST(Manifest, SavesEverySchedule) {
  for (const step::ScheduleRow& row : step::schedules()) {
    Manifest m = sample();
    m.graph.resize(1);  // its ops have names, too
    m.state.options.schedule.stages = {step::Stage(row.name)};
    if (row.name == "step") m.state.options.schedule.stages[0].set("step_size", 3);
    if (row.name == "multistep") m.state.options.schedule.stages[0].set("milestones", 3);
    m.state.options.schedule.warmup_steps = 0;
    const auto bytes = encode_manifest(m);
    const Manifest back = decode_manifest(bytes);
    ASSERT_EQ(back.state.options.schedule.stages.size(), 1u);
    EXPECT_EQ(back.state.options.schedule.stages[0].row, &row);
    EXPECT_EQ(back.state.options.schedule.stages[0].values, m.state.options.schedule.stages[0].values);
    EXPECT_EQ(back.state.options.schedule.stages[0].list, m.state.options.schedule.stages[0].list);
    const bool old = row.name == "constant" || row.name == "cosine" || row.name == "linear";
    EXPECT_EQ(test::text_of(bytes).find(row.name) == std::string::npos, old) << row.name;
  }
}

// One reason each; the reason is part of the message.
struct Broken {
  const char* reason;
  void (*make)(Manifest&);
};
const Broken kMustFail[] = {
    {"is there twice", [](Manifest& m) { m.tensors[1].name = "wte"; }},
    {"lies at 320", [](Manifest& m) { m.tensors[1].offset = 320; }},
    {"lies at 448", [](Manifest& m) { m.tensors[1].offset = 448; }},
    {"its tensors take 448 bytes, not 512", [](Manifest& m) { m.tensors_bytes = 512; }},
    {"unknown dtype 7", [](Manifest& m) { m.tensors[0].desc.dtype = DType::kOpaque; }},
    {"overflows", [](Manifest& m) { m.tensors[0].desc.shape.dims[0] = int64_t{1} << 62; }},
    {"must be at least 1", [](Manifest& m) { m.tensors[0].desc.shape.dims[0] = -4; }},
    {"micro-batch 4 of 4", [](Manifest& m) { m.state.micro = 4; }},
    {"of 0", [](Manifest& m) { m.state.micro = m.state.options.micro_steps = 0; }},
    {"unknown schedule 'zigzag'; known: constant",
     [](Manifest& m) {
       static const step::ScheduleRow row{"zigzag", {}, 0, nullptr, nullptr, nullptr, ""};
       m.state.options.schedule.stages[0].row = &row;
       m.state.options.schedule.stages[0].values.clear();
     }},
    {"wsd: decay_steps is -1", [](Manifest& m) { m.state.options.schedule.stages[0].values[0] = -1; }},
    {"has 20 after 30",
     [](Manifest& m) {
       m.state.options.schedule.stages[1].list = {30, 20};
     }},
    {"schedule 1 of 2, wsd, says no steps",
     [](Manifest& m) { m.state.options.schedule.stages[0].steps = 0; }},
    {"hyper-parameter 'nesterov' of sgd is not known, or no number",
     [](Manifest& m) { m.state.groups[1].hypers[3] = INFINITY; }},
    {"not a number", [](Manifest& m) { m.state.groups[0].hypers[2] = NAN; }},
    {"the frozen parameter 'wte' is there twice", [](Manifest& m) { m.base->parts[0].name = "wte"; }},
    {"a base without parameters", [](Manifest& m) { m.base->parts.clear(); }},
    {"must be at least 1", [](Manifest& m) { m.base->parts[0].desc.shape.dims[1] = 0; }},
};

TEST(Manifest, MustFail) {
  for (const Broken& broken : kMustFail) {
    Manifest m = sample();
    broken.make(m);
    const auto result = test::failure([&] { decode_manifest(encode_manifest(m)); });
    EXPECT_EQ(result.code, Code::kCorruptFile) << broken.reason;
    EXPECT_NE(result.message.find(broken.reason), std::string::npos)
        << broken.reason << " / " << result.message;
  }
  Manifest m = sample();
  m.metadata["large"] = std::string((1 << 20) + 1, 'x');
  EXPECT_EQ(test::failure([&] { encode_manifest(m); }).code, Code::kInvalidArgument);
}

TEST(Manifest, EveryTruncationAndEveryFlippedBitIsFound) {
  Manifest small = sample();
  const std::string good = test::text_of(encode_manifest(small));
  for (size_t size = 0; size < good.size(); ++size)
    ASSERT_EQ(test::failure([&] { decode_manifest(test::bytes_of(good).first(size)); }).code,
              Code::kCorruptFile);
  std::string bad = good;
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    bad[bit / 8] ^= static_cast<char>(1u << bit % 8);
    ASSERT_EQ(test::failure([&] { decode_manifest(test::bytes_of(bad)); }).code, Code::kCorruptFile) << bit;
    bad[bit / 8] = good[bit / 8];
  }
}

TEST(Manifest, DamageUnderARightDigestNeverCrashes) {
  const std::string good = test::text_of(encode_manifest(sample()));
  std::mt19937 random(3);
  for (int round = 0; round < 5000; ++round) {
    std::string bad = good;
    for (size_t n = random() % 3 + 1; n > 0; --n) bad = test::mutate(bad, random);
    const auto result = test::failure([&] {
      const Manifest m = decode_manifest(test::bytes_of(test::reseal(bad)));
      for (const auto& tensor : m.tensors)
        ASSERT_LE(tensor.offset + static_cast<uint64_t>(tensor.desc.bytes()), m.tensors_bytes);
    });
    ASSERT_TRUE(result.code == Code::kOk || result.code == Code::kCorruptFile) << result.message;
  }
}

}  // namespace
}  // namespace cairn::io
