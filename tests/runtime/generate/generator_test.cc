// A model small enough to follow: the logits are a product of the sum of all rows that a sample's cache holds up to its
// length, so that they show which rows are there.
#include "runtime/generate/generator.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "runtime/step/stepper.h"

namespace cairn::generate {
namespace {

using graph::ValueId;
using graph::ValueKind;

constexpr int64_t kSamples = 3, kVocabulary = 11, kWidth = 4, kRows = 8;

TensorDesc f32(std::initializer_list<int64_t> dims) { return {DType::kF32, Shape(dims)}; }
TensorDesc i32(std::initializer_list<int64_t> dims) { return {DType::kI32, Shape(dims)}; }

std::shared_ptr<graph::Graph> model(int64_t length, bool ring, DType of_cache = DType::kF32) {
  auto g = std::make_shared<graph::Graph>();
  graph::ParameterOptions normal;
  normal.init = graph::Init::kNormal, normal.init_scale = 1;
  const ValueId table = g->parameter("table", f32({kVocabulary, kWidth}), normal);
  const ValueId places = g->parameter("places", f32({64, kWidth}), normal);
  const ValueId head = g->parameter("head", f32({kVocabulary, kWidth}), normal);
  const ValueId seen =
      g->parameter("seen", f32({64, kRows}), {});  // row n: 1 for the first n rows of a cache
  const ValueId x =
      g->op("add", {g->op("embedding", {table, g->input("tokens", i32({kSamples, length}))})[0],
                    g->op("embedding", {places, g->input("positions", i32({kSamples, length}))})[0]})[0];
  const ValueId cache = g->resident("cache", ValueKind::kCache, {of_cache, Shape{kSamples, kRows, kWidth}});
  ValueId y =
      g->op("append", {cache, x, g->input("position", i32({kSamples})), g->input("count", i32({kSamples}))},
            {{"ring", int64_t{ring}}})[0];
  if (of_cache != DType::kF32) y = g->op("cast", {y}, {{"dtype", std::string("f32")}})[0];
  const ValueId mask = g->op("embedding", {seen, g->input("lengths", i32({kSamples}))})[0];
  y = g->op("mul",
            {y, g->op("reshape", {mask}, {{"shape", std::vector<int64_t>{kSamples, kRows, 1}}})[0]})[0];
  y = g->op("reduce_sum", {y}, {{"axes", std::vector<int64_t>{1}}})[0];
  const ValueId logits = g->op("linear", {y, head})[0];
  g->name_value(logits, "logits");
  g->freeze(graph::kNone, graph::kNone, {logits});
  return g;
}

struct Rig {
  std::vector<std::shared_ptr<engine::Session>> sessions;
  std::map<std::string, std::vector<float>> numbers;
  bool ring;

  explicit Rig(std::vector<int64_t> lengths = {1, 4}, bool turns = false) : ring(turns) {
    const auto device = device::checked(device::open("cpu", {.threads = 1}));
    std::vector<engine::ProgramGraph> graphs;
    for (const int64_t length : lengths) graphs.push_back({cat("p", length), model(length, ring)});
    if (graphs.size() == 1) {
      sessions = {std::make_shared<engine::Session>(engine::compile(graphs[0].graph, *device, {}), device)};
    } else {
      sessions = engine::Session::open(engine::compile_set(graphs, *device, {}), device);
    }
    step::initialise(*sessions[0], 7);
    std::vector<float> seen(64 * kRows);
    for (int64_t n = 0; n < 64; ++n)
      for (int64_t i = 0; i < kRows; ++i) seen[static_cast<size_t>(n * kRows + i)] = i < n ? 1 : 0;
    sessions[0]->write_declared(id("seen"), seen.data());
    for (const char* name : {"table", "places", "head"}) {
      std::vector<float>& to = numbers[name];
      to.resize(static_cast<size_t>(sessions[0]->declared(id(name)).bytes() / 4));
      sessions[0]->read_declared(id(name), to.data());
    }
  }
  int32_t id(const char* name) const { return sessions[0]->plan().joint->find(name); }
  // What the model would say: the sum over the rows that the cache holds.
  int32_t best(const std::vector<int32_t>& text) const {
    double sum[kWidth] = {};
    const size_t first = ring && text.size() > kRows ? text.size() - kRows : 0;
    for (size_t place = first; place < text.size(); ++place)
      for (size_t c = 0; c < kWidth; ++c)
        sum[c] += numbers.at("table")[static_cast<size_t>(text[place]) * kWidth + c] +
                  numbers.at("places")[place * kWidth + c];
    double most = -1e300;
    int32_t found = 0;
    for (int32_t v = 0; v < kVocabulary; ++v) {
      double logit = 0;
      for (size_t c = 0; c < kWidth; ++c)
        logit += sum[c] * numbers.at("head")[static_cast<size_t>(v) * kWidth + c];
      if (logit > most) most = logit, found = v;
    }
    return found;
  }
};

const Sampling kGreedy = {.temperature = 0};
std::vector<int32_t> text(const Generator& generator, int64_t sample) {
  const std::span<const int32_t> tokens = generator.text(sample);
  return {tokens.begin(), tokens.end()};
}

// Every token of each sample is what its own text asks for.
void expect_own(const Rig& rig, const Generator& generator, int64_t sample, size_t prompt) {
  const std::vector<int32_t> all = text(generator, sample);
  for (size_t n = prompt; n < all.size(); ++n)
    EXPECT_EQ(all[n], rig.best({all.begin(), all.begin() + static_cast<int64_t>(n)})) << "token " << n;
}

TEST(Generator, PromptsOfManyLengthsAreReadAtOnce) {
  for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{1}, {1, 4}, {1, 2}, {8, 1, 3}}) {
    const Rig rig(lengths);
    Generator generator(rig.sessions);
    EXPECT_EQ(generator.samples(), kSamples);
    EXPECT_EQ(generator.capacity(), kRows);
    EXPECT_EQ(generator.cache_bytes(), kSamples * kRows * kWidth * 4);
    generator.begin(0, std::vector<int32_t>{3}, kGreedy);
    generator.begin(2, std::vector<int32_t>{1, 2, 9, 4, 4}, kGreedy);
    std::vector<int32_t> out(kSamples);
    for (int i = 0; i < 3; ++i) {
      generator.next(out);
      EXPECT_EQ(out[0], text(generator, 0).back());
      EXPECT_EQ(out[1], kNoToken);
      EXPECT_EQ(out[2], text(generator, 2).back());
    }
    expect_own(rig, generator, 0, 1);
    expect_own(rig, generator, 2, 5);
    EXPECT_EQ(generator.prefill().tokens, 6);
    EXPECT_EQ(generator.decode().tokens, 4);
  }
}

TEST(Generator, ASampleMayBeginWhileOthersGoOn) {
  const Rig rig;
  Generator generator(rig.sessions);
  std::vector<int32_t> out(kSamples);
  generator.begin(1, std::vector<int32_t>{5, 6}, kGreedy);
  generator.next(out);
  generator.next(out);
  generator.begin(0, std::vector<int32_t>{7, 7, 7}, kGreedy);
  generator.next(out);
  generator.begin(1, std::vector<int32_t>{8}, kGreedy);  // over what was there
  generator.next(out);
  generator.end(0);
  const std::vector<int32_t> ended = text(generator, 0);
  generator.next(out);
  EXPECT_EQ(out[0], kNoToken);
  EXPECT_EQ(text(generator, 0), ended);
  expect_own(rig, generator, 0, 3);
  expect_own(rig, generator, 1, 1);
  EXPECT_EQ(text(generator, 1).size(), 3u);
}

TEST(Generator, AFullCacheIsNamed) {
  const Rig rig;
  Generator generator(rig.sessions);
  std::vector<int32_t> out(kSamples);
  generator.begin(0, std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7}, kGreedy);
  generator.next(out);
  generator.next(out);  // the ninth token is made by a full cache
  const std::vector<int32_t> before = text(generator, 0);
  EXPECT_EQ(before.size(), 9u);
  for (const auto& call : std::initializer_list<std::function<void()>>{
           [&] { generator.next(out); }, [&] { generator.begin(1, std::vector<int32_t>(9), kGreedy); }}) {
    try {
      call();
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument);
      EXPECT_NE(std::string(error.what()).find("9 tokens; the cache holds 8"), std::string::npos)
          << error.what();
    }
  }
  EXPECT_EQ(text(generator, 0), before);
  expect_own(rig, generator, 0, 7);
}

TEST(Generator, ARingKeepsTheLastTokens) {
  for (const int64_t prompt : {1, 5, 8, 13}) {
    const Rig rig({1, 4, 16}, true);
    Generator generator(rig.sessions);
    EXPECT_FALSE(generator.capacity());
    std::vector<int32_t> tokens(static_cast<size_t>(prompt)), out(kSamples);
    std::iota(tokens.begin(), tokens.end(), 0);
    for (int32_t& token : tokens) token %= kVocabulary;
    generator.begin(1, tokens, kGreedy);
    for (int i = 0; i < 14; ++i) generator.next(out);
    expect_own(rig, generator, 1, tokens.size());
  }
}

TEST(Generator, OtherSamplesAndRunsChangeNothing) {
  const Sampling drawn = {.temperature = 1.5, .seed = 3};
  const auto run = [&](int64_t sample, bool company) {
    const Rig rig;
    Generator generator(rig.sessions);
    std::vector<int32_t> out(kSamples);
    if (company) {
      generator.begin((sample + 1) % kSamples, std::vector<int32_t>{9, 9}, {.seed = 8});
      generator.next(out);
    }
    generator.begin(sample, std::vector<int32_t>{4, 2}, drawn);
    for (int i = 0; i < 5; ++i) generator.next(out);
    return text(generator, sample);
  };
  const std::vector<int32_t> alone = run(0, false);
  EXPECT_GT(std::set<int32_t>(alone.begin(), alone.end()).size(), 2u) << "drawn";
  EXPECT_EQ(run(0, true), alone);
  EXPECT_EQ(run(2, true), alone);
}

TEST(Generator, WhatDoesNotFitIsNamed) {
  const auto message = [](const std::function<void()>& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const Rig rig, longer({4}), other;
  EXPECT_NE(message([&] { Generator g({}); }).find("needs a program"), std::string::npos);
  EXPECT_NE(message([&] { Generator g(longer.sessions); }).find("the shortest here has 4"),
            std::string::npos);
  EXPECT_NE(message([&] {
              Generator g({rig.sessions[0], other.sessions[0]});
            }).find("share a store"),
            std::string::npos);
  EXPECT_NE(message([&] { Generator g(rig.sessions, 12); }).find("12 tokens is larger than the model's, 11"),
            std::string::npos);
  Generator generator(rig.sessions, 10);
  EXPECT_NE(message([&] { generator.begin(0, std::vector<int32_t>{10}, {}); }).find("token 10 is outside"),
            std::string::npos);
  EXPECT_NE(message([&] { generator.begin(0, {}, {}); }).find("needs a token"), std::string::npos);
  EXPECT_NE(message([&] { generator.begin(3, std::vector<int32_t>{1}, {}); }).find("no sample 3"),
            std::string::npos);
  EXPECT_NE(message([&] { generator.begin(0, std::vector<int32_t>{1}, {.top_p = 7}); }).find("top_p"),
            std::string::npos);
  std::vector<int32_t> out(2);
  EXPECT_NE(message([&] { generator.next(out); }).find("room for 2"), std::string::npos);
}

}  // namespace
}  // namespace cairn::generate
