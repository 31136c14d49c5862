// Chapter 9: text, token by token. The model counts the tokens that its cache holds: the next is the one after that which
// was there most often, the first of equal ones.
#include "tests/capi/rig.h"

namespace cairn_test {
namespace {

constexpr int64_t kSamples = 2, kVocabulary = 6, kRows = 8;

cairn::Graph counter(const cairn::Instance& instance, int64_t length) {
  auto graph = cairn::Graph::create(instance);
  const cairn::Value tokens = graph.input("tokens", {kSamples, length}, CAIRN_I32);
  const cairn::Value position = graph.input("position", {kSamples}, CAIRN_I32);
  const cairn::Value count = graph.input("count", {kSamples}, CAIRN_I32);
  const cairn::Value x =
      graph.op("embedding", {graph.parameter("table", {kVocabulary, kVocabulary}), tokens});
  const cairn::Value cache = graph.resident("cache", {kSamples, kRows, kVocabulary}, CAIRN_RESIDENT_CACHE);
  const cairn::Value all = graph.op("append", {cache, x, position, count});
  const cairn::Value counts = graph.op("reduce_sum", {all}, {{"axes", std::vector<int64_t>{1}}});
  const cairn::Value logits =
      graph.op("linear", {counts, graph.parameter("after", {kVocabulary, kVocabulary})});
  graph.name(logits, "logits");
  graph.freeze(0, {logits});
  return graph;
}

struct GeneratorTest : testing::Test {
  Devices devices;
  Failure failure;
  std::vector<cairn::Session> sessions = open();
  cairn::Generator generator = cairn::Generator::create(sessions);

  std::vector<cairn::Session> open() {
    std::vector<cairn::Program> programs;
    for (const int64_t length : {1, 4})
      programs.push_back({std::to_string(length), counter(devices.instance, length)});
    auto made = cairn::Session::create_set(cairn::Plan::create_set(programs, devices.device), devices.device);
    made[0].initialise(1);
    std::vector<float> table(kVocabulary * kVocabulary), after(kVocabulary * kVocabulary);
    for (size_t i = 0; i < kVocabulary; ++i) {
      table[i * kVocabulary + i] = 1;
      after[(i + 1) % kVocabulary * kVocabulary + i] = 1;
    }
    made[0].write("table", table);
    made[0].write("after", after);
    return made;
  }
};

cairn::Sampling greedy() {
  cairn::Sampling sampling;
  sampling.temperature = 0;
  return sampling;
}

TEST_F(GeneratorTest, TokensAreDrawnFromLogitsOfOnesOwn) {
  const std::vector<float> logits = {0.5F, 2, 1};
  EXPECT_EQ(greedy().draw(logits, {}), 1);
  cairn::Sampling by = greedy();
  by.repetition_penalty = 4;
  EXPECT_EQ(by.draw(logits, {1}), 2);
  const int32_t seen = 3;
  const float none = NAN;
  int32_t token = -5;
  const auto refused = [&](const float* from, size_t count, cairn_status_t wanted, const char* words) {
    expect_failure(cairn_sampling_draw(&by, from, count, &seen, count == 3, &token, failure), wanted, failure,
                   {words});
  };
  refused(logits.data(), 3, CAIRN_STATUS_INVALID_ARGUMENT, "0 to 2");
  refused(logits.data(), 0, CAIRN_STATUS_INVALID_ARGUMENT, "0 logits");
  refused(nullptr, 1, CAIRN_STATUS_INVALID_ARGUMENT, "logits");
  refused(&none, 1, CAIRN_STATUS_NON_FINITE, "not finite");
  by.top_p = 0;
  refused(logits.data(), 2, CAIRN_STATUS_INVALID_ARGUMENT, "top_p");
  EXPECT_EQ(token, -5);
  // A generator draws the same from its own logits.
  cairn::Sampling drawn;
  drawn.seed = 7;
  generator.begin(0, {2, 5, 5}, drawn);
  std::vector<int32_t> text = {2, 5, 5};
  for (int i = 0; i < 4; ++i) {
    text.push_back(generator.next()[0]);
    EXPECT_EQ(drawn.draw(generator.logits(0), {text.data(), text.size() - 1}), text.back());
  }
}

TEST_F(GeneratorTest, SamplesGoOnEachByItself) {
  generator.begin(1, {2, 2, 2, 5, 5}, greedy());
  EXPECT_EQ(generator.next(), (std::vector<int32_t>{-1, 3}));
  generator.begin(0, {5}, greedy());
  EXPECT_EQ(generator.next(), (std::vector<int32_t>{0, 3}));
  EXPECT_EQ(generator.logits(1), (std::vector<float>{2, 0, 0, 3, 1, 0}));
  generator.end(1);
  EXPECT_EQ(generator.next(), (std::vector<int32_t>{0, -1}));  // a 5 and a 0: of equal ones the first
  const cairn_generator_info_t info = generator.info();
  EXPECT_EQ(info.samples, 2u);
  EXPECT_EQ(info.vocabulary, 6u);
  EXPECT_EQ(info.capacity, 8u);
  EXPECT_EQ(info.cache_bytes, 2u * 8 * 6 * 4);
  EXPECT_EQ(info.prefill_tokens, 6u);
  EXPECT_EQ(info.decode_tokens, 2u);
  EXPECT_GT(info.prefill_seconds, 0);
  EXPECT_GT(info.decode_seconds, 0);
}

TEST_F(GeneratorTest, TheCacheIsInThePlan) {
  const cairn_plan_summary_t planned =
      cairn::Plan::create_set({{"1", counter(devices.instance, 1)}, {"4", counter(devices.instance, 4)}},
                              devices.device)[0]
          .summary();
  EXPECT_GE(planned.persistent_bytes, generator.info().cache_bytes + 2 * 36 * 4);
  generator.begin(0, {1, 2, 3}, greedy());
  generator.next();
  EXPECT_EQ(sessions[0].usage(CAIRN_TIER_DEVICE).peak_bytes, planned.peak_bytes[0]);
}

TEST_F(GeneratorTest, WhatIsWrongIsNamed) {
  cairn_generator_t* none = nullptr;
  cairn_session_t* raw[] = {sessions[0].get(), nullptr};
  int32_t tokens[9] = {};
  float logits[kVocabulary];
  const auto refused = [&](cairn_status_t status, cairn_status_t wanted,
                           const std::vector<std::string>& words) {
    expect_failure(status, wanted, failure, words);
  };
  refused(cairn_generator_create(raw, 0, 0, &none, failure), CAIRN_STATUS_INVALID_ARGUMENT, {"program"});
  refused(cairn_generator_create(raw, 2, 0, &none, failure), CAIRN_STATUS_INVALID_ARGUMENT, {"sessions[1]"});
  refused(cairn_generator_create(raw, 1, 7, &none, failure), CAIRN_STATUS_INVALID_ARGUMENT, {"7", "6"});
  const std::vector<cairn::Session> other = open();
  raw[1] = other[1].get();
  refused(cairn_generator_create(raw, 2, 0, &none, failure), CAIRN_STATUS_WRONG_STATE, {"share a store"});
  EXPECT_EQ(none, nullptr);
  cairn_generator_t* const g = generator.get();
  refused(cairn_generator_begin(g, 2, tokens, 1, nullptr, failure), CAIRN_STATUS_INVALID_ARGUMENT,
          {"sample 2"});
  refused(cairn_generator_begin(g, 0, tokens, 0, nullptr, failure), CAIRN_STATUS_INVALID_ARGUMENT,
          {"prompt"});
  refused(cairn_generator_begin(g, 0, nullptr, 3, nullptr, failure), CAIRN_STATUS_INVALID_ARGUMENT,
          {"prompt"});
  refused(cairn_generator_begin(g, 0, tokens, 9, nullptr, failure), CAIRN_STATUS_INVALID_ARGUMENT,
          {"9 tokens", "holds 8"});
  tokens[0] = 6;
  refused(cairn_generator_begin(g, 0, tokens, 1, nullptr, failure), CAIRN_STATUS_INVALID_ARGUMENT,
          {"token 6"});
  tokens[0] = 0;
  cairn_sampling_t sampling = CAIRN_SAMPLING_INIT;
  sampling.top_p = 0;
  refused(cairn_generator_begin(g, 0, tokens, 1, &sampling, failure), CAIRN_STATUS_INVALID_ARGUMENT,
          {"top_p"});
  refused(cairn_generator_next(g, tokens, 3, failure), CAIRN_STATUS_INVALID_ARGUMENT, {"room for 3"});
  refused(cairn_generator_logits(g, 0, logits, kVocabulary, failure), CAIRN_STATUS_WRONG_STATE, {"no token"});
  ASSERT_EQ(cairn_generator_begin(g, 0, tokens, 8, nullptr, failure), CAIRN_STATUS_OK);
  ASSERT_EQ(cairn_generator_next(g, tokens, 2, failure), CAIRN_STATUS_OK);
  refused(cairn_generator_next(g, tokens, 2, failure), CAIRN_STATUS_INVALID_ARGUMENT,
          {"sample 0", "holds 8"});
  refused(cairn_generator_logits(g, 0, logits, 3, failure), CAIRN_STATUS_INVALID_ARGUMENT, {"6"});
}

TEST_F(GeneratorTest, LogitsThatAreNoNumbersStopIt) {
  sessions[0].write("after", std::vector<float>(kVocabulary * kVocabulary, NAN));
  int32_t tokens[] = {1, 2};
  ASSERT_EQ(cairn_generator_begin(generator.get(), 0, tokens, 2, nullptr, failure), CAIRN_STATUS_OK);
  expect_failure(cairn_generator_next(generator.get(), tokens, 2, failure), CAIRN_STATUS_NON_FINITE, failure,
                 {"logits"});
}

}  // namespace
}  // namespace cairn_test
