// The peak of activations, on plans made by hand.
#include <gtest/gtest.h>

#include "runtime/plan/explain.h"

namespace cairn::plan {
namespace {

Step step(StepKind kind, int32_t index) {
  Step made;
  made.kind = kind;
  made.index = index;
  return made;
}

TEST(ActivationPeak, CountsWhatIsOnTheDeviceAndDoesNotPersist) {
  Problem p;
  p.values = {{"w", 1000, true}, {"a", 10, false}, {"b", 20, false}, {"c", 40, false}};
  p.ops = {{.name = "1", .workspace_bytes = 500, .inputs = {0}, .outputs = {1}},
           {.name = "2", .inputs = {1}, .outputs = {2}},
           {.name = "3", .inputs = {2}, .outputs = {3, 0}}};
  const std::vector<bool> all(p.values.size(), true);
  Plan made;
  made.steps = {step(StepKind::kRun, 0),     step(StepKind::kRun, 1),  step(StepKind::kOut, 1),
                step(StepKind::kWaitOut, 1), step(StepKind::kFree, 1), step(StepKind::kRun, 2)};
  EXPECT_EQ(activation_peak(p, made, all), 60);  // b and c
  made.steps.push_back(step(StepKind::kIn, 1));
  EXPECT_EQ(activation_peak(p, made, all), 70);  // a is back beside them
  made.steps.push_back(step(StepKind::kRun, 2));
  EXPECT_EQ(activation_peak(p, made, all), 70);                        // writes c where it is
  EXPECT_EQ(activation_peak(p, made, {true, true, true, false}), 30);  // c is a weight's gradient
}

}  // namespace
}  // namespace cairn::plan
