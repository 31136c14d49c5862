// Where the numbers of an integer input go.
#include "runtime/graph/vocabulary.h"

#include <gtest/gtest.h>

namespace cairn::graph {
namespace {

TEST(Vocabulary, FollowsInputsThroughReshapeAndTranspose) {
  graph::Graph g;
  const auto ids = g.input("ids", {DType::kI32, {6}});
  const auto table = g.parameter("table", {DType::kF32, {10, 4}}, {});
  const auto small = g.parameter("small", {DType::kF32, {7, 4}}, {});
  const auto shaped = g.op("reshape", {ids}, {{"shape", std::vector<int64_t>{2, 3}}})[0];
  g.op("embedding", {table, shaped});
  const auto x = g.op("embedding", {small, ids})[0];
  const auto loss = g.op("linear_cross_entropy", {x, table, ids}, {{"ignore_index", int64_t{-1}}})[0];
  g.freeze(loss, graph::kNone, {});
  const Vocabularies found = vocabularies(g);
  ASSERT_EQ(found.size(), 1u);
  const std::vector<Vocabulary>& rules = found.at(ids);
  ASSERT_EQ(rules.size(), 3u);
  EXPECT_EQ(rules[0].size, 10);
  EXPECT_EQ(rules[1].size, 7);
  EXPECT_EQ(rules[2].size, 10);
  EXPECT_TRUE(rules[2].allows(-1));
  EXPECT_FALSE(rules[1].allows(-1));
  EXPECT_FALSE(rules[2].allows(-100));
  // All of them hold.
  std::vector<int32_t> numbers = {0, 1, 2, 3, 4, 6};
  EXPECT_NO_THROW(check_vocabulary(g.values()[ids], rules, numbers.data()));
  numbers[4] = 8;
  try {
    check_vocabulary(g.values()[ids], rules, numbers.data());
    FAIL() << "8 is not below 7";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("[4]"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("0..6"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace cairn::graph
