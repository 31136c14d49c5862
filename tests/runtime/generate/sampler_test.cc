#include "runtime/generate/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "runtime/base/error.h"

namespace cairn::generate {
namespace {

const std::vector<float> kLogits = {1.0f, 3.0f, -2.0f, 3.0f, 2.0f, 0.5f};

// Shares of the tokens over many places of a text.
std::map<int32_t, double> shares(const Sampling& sampling, const std::vector<float>& logits = kLogits) {
  constexpr int kDraws = 20000;
  Sampler sampler;
  std::map<int32_t, double> found;
  std::vector<int32_t> seen;
  for (int i = 0; i < kDraws; ++i) {
    found[sampler.draw(logits, seen, sampling)] += 1.0 / kDraws;
    seen.push_back(2);  // the place in the text is what the draw depends on
  }
  return found;
}

void expect_shares(const std::map<int32_t, double>& found, const std::map<int32_t, double>& weights) {
  double sum = 0;
  for (const auto& [token, weight] : weights) sum += weight;
  EXPECT_EQ(found.size(), weights.size());
  for (const auto& [token, weight] : weights) {
    ASSERT_TRUE(found.contains(token)) << token;
    EXPECT_NEAR(found.at(token), weight / sum, 0.015) << token;
  }
}

double e(double x) { return std::exp(x); }

TEST(Sampler, TemperatureZeroIsTheFirstOfTheLargest) {
  Sampler sampler;
  for (int place = 0; place < 4; ++place)
    EXPECT_EQ(sampler.draw(kLogits, std::vector<int32_t>(static_cast<size_t>(place)), {.temperature = 0}), 1);
}

TEST(Sampler, DrawsByProbability) {
  expect_shares(shares({}), {{0, e(1)}, {1, e(3)}, {2, e(-2)}, {3, e(3)}, {4, e(2)}, {5, e(.5)}});
  expect_shares(shares({.temperature = 2}),
                {{0, e(.5)}, {1, e(1.5)}, {2, e(-1)}, {3, e(1.5)}, {4, e(1)}, {5, e(.25)}});
}

TEST(Sampler, LimitsLeaveTheLikeliest) {
  expect_shares(shares({.top_k = 2}), {{1, 1}, {3, 1}});
  expect_shares(shares({.top_k = 1}), {{1, 1}});
  expect_shares(shares({.top_k = 3}), {{1, e(3)}, {3, e(3)}, {4, e(2)}});
  // e^3 is 0.377 of all, twice that 0.754, with e^2 0.893.
  expect_shares(shares({.top_p = 0.3}), {{1, 1}});
  expect_shares(shares({.top_p = 0.7}), {{1, 1}, {3, 1}});
  expect_shares(shares({.top_p = 0.8}), {{1, e(3)}, {3, e(3)}, {4, e(2)}});
  expect_shares(shares({.min_p = 0.3}), {{1, e(3)}, {3, e(3)}, {4, e(2)}});
  expect_shares(shares({.top_k = 3, .top_p = 0.75}), {{1, 1}, {3, 1}});  // of the probability that top_k left
}

TEST(Sampler, ThePenaltyCountsATokenOnce) {
  Sampler sampler;
  const Sampling penal = {.temperature = 0, .repetition_penalty = 2};
  EXPECT_EQ(sampler.draw(kLogits, std::vector<int32_t>{1, 1}, penal), 3);
  EXPECT_EQ(sampler.draw(kLogits, std::vector<int32_t>{1, 3, 1}, penal), 4);
  EXPECT_EQ(sampler.draw(std::vector<float>{-1.f, -1.5f}, std::vector<int32_t>{0}, penal), 1)
      << "-2 is below -1.5";
}

TEST(Sampler, TheSeedAndThePlaceDecide) {
  Sampler one, other;
  std::vector<int32_t> seen;
  bool differs = false;
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(one.draw(kLogits, seen, {.seed = 5}), other.draw(kLogits, seen, {.seed = 5}));
    differs |= one.draw(kLogits, seen, {.seed = 5}) != one.draw(kLogits, seen, {.seed = 6});
    seen.push_back(0);
  }
  EXPECT_TRUE(differs);
}

TEST(Sampler, LogitsThatAreNoNumbersAreRefused) {
  Sampler sampler;
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (const std::vector<float>& bad : {std::vector<float>{1, nan, 2}, {nan, 1}, {1, inf}, {-inf, -inf}})
    for (const double temperature : {0.0, 1.0}) {
      try {
        sampler.draw(bad, {}, {.temperature = temperature});
        ADD_FAILURE();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::kNonFinite);
      }
    }
  EXPECT_EQ(sampler.draw(std::vector<float>{-inf, 1}, {}, {}), 1);
}

TEST(Sampler, NumbersOutOfRangeAreNamed) {
  const std::pair<Sampling, const char*> cases[] = {{{.temperature = -1}, "temperature is -1"},
                                                    {{.temperature = NAN}, "temperature is"},
                                                    {{.repetition_penalty = 0}, "repetition_penalty is 0"},
                                                    {{.top_k = -1}, "top_k is -1"},
                                                    {{.top_p = 0}, "top_p is 0"},
                                                    {{.top_p = 1.5}, "top_p is 1.5"},
                                                    {{.min_p = 2}, "min_p is 2"}};
  for (const auto& [sampling, words] : cases) {
    try {
      check(sampling);
      ADD_FAILURE() << words;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }
  check({});
}

}  // namespace
}  // namespace cairn::generate
