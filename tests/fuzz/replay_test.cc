// The fuzz targets over mutated samples, hundreds to thousands of inputs each, the same every time; and over
// the corpora that libFuzzer has gathered.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "tests/fuzz/targets.h"
#include "tests/runtime/io/samples.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::fuzz {
namespace {
namespace fs = std::filesystem;

class Replay : public testing::TestWithParam<Target> {};

TEST_P(Replay, SamplesAndTheirMutations) {
  const Target& target = GetParam();
  std::mt19937 random(17);
  const std::vector<std::string> seeds = target.seeds();
  for (const std::string& seed : seeds) ASSERT_NO_THROW(target.run(test::bytes_of(seed)));
  ASSERT_NO_THROW(target.run({}));
  for (int round = 0; round < target.rounds; ++round) {
    std::string input = seeds[random() % seeds.size()];
    for (size_t n = random() % 5 + 1; n > 0; --n) input = test::mutate(input, random);
    ASSERT_NO_THROW(target.run(test::bytes_of(input))) << "round " << round;
  }
}

TEST_P(Replay, Corpus) {
  const Target& target = GetParam();
  std::vector<fs::path> files;
  for (const auto& entry :
       fs::directory_iterator(fs::path(CAIRN_SOURCE_DIR) / "tests/fuzz/corpus" / target.name))
    files.push_back(entry.path());
  std::ranges::sort(files);
  ASSERT_FALSE(files.empty());
  for (const fs::path& file : files) ASSERT_NO_THROW(target.run(test::bytes_of(test::slurp(file)))) << file;
}
INSTANTIATE_TEST_SUITE_P(Loaders, Replay, testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace cairn::fuzz
