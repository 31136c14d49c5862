// Out of memory is an error like any other: no call ends the host, leaks, or leaves anything half done.
#include <gtest/gtest.h>

#include "tests/fault/memory/campaign.h"

namespace fault {
namespace {

struct Case {
  const char* name;
  MakeScript make;
  int64_t one_in;  // of the points, where not all are wanted
};

template <class Kind>
std::unique_ptr<Script> make_script(const std::filesystem::path& folder) {
  return std::make_unique<Kind>(folder);
}

class EveryAllocation : public testing::TestWithParam<Case> {
 protected:
  void fail(heap::Failing failing) {
    const Tally tally = run_campaign(GetParam().make, failing, GetParam().one_in);
    for (const std::string& finding : tally.findings) ADD_FAILURE() << finding;
    EXPECT_GT(tally.refused, 10);
    std::printf("%ld allocations failed: %ld calls refused, %ld succeeded all the same\n",
                static_cast<long>(tally.points), static_cast<long>(tally.refused),
                static_cast<long>(tally.absorbed));
  }
};

TEST_P(EveryAllocation, FailsAlone) { fail(heap::Failing::kOne); }
TEST_P(EveryAllocation, FailsAndAllAfterIt) { fail(heap::Failing::kRest); }

INSTANTIATE_TEST_SUITE_P(, EveryAllocation,
                         testing::Values(Case{"Perceptron", make_script<Perceptron>, 20},
                                         Case{"Transformer", make_script<Transformer>, 200},
                                         Case{"Readings", make_script<Readings>, 100}),
                         [](const auto& made) { return std::string(made.param.name); });

}  // namespace
}  // namespace fault
