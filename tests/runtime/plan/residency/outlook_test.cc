#include "runtime/plan/residency/outlook.h"

#include <gtest/gtest.h>

#include <limits>

namespace cairn::plan {
namespace {

TEST(Outlook, SaysNothingAboutWhatItKnowsNothingOf) {
  Outlook outlook;
  EXPECT_LT(outlook.least(5), 0);
  outlook.add(10, 1, 2);
  EXPECT_LT(outlook.least(5), 0) << "one number makes no line";
  EXPECT_LT(outlook.least(10), 0) << "what was tried may be searched as a whole";
}

TEST(Outlook, BetweenTwoNumbersNoPlanBeatsBothWithoutTheirCopies) {
  Outlook outlook;
  outlook.add(0, 3, 9);
  outlook.add(10, 4, 9);
  EXPECT_EQ(outlook.least(5), 3);
}

TEST(Outlook, BeyondTwoNumbersSecondsFollowTheirLineOrLieAboveIt) {
  Outlook outlook;
  outlook.add(30, 1, 100);
  outlook.add(20, 1, 110);
  EXPECT_NEAR(outlook.least(10), 120, .2);
  EXPECT_LT(outlook.least(10), 120) << "plans that were found lie on no line exactly";
  EXPECT_NEAR(outlook.least(40), 90, .2);
}

TEST(Outlook, ALineThatOnceFallsAndThenRisesCountsOnItsOwnSideAlone) {
  Outlook outlook;
  outlook.add(0, 1, 110);
  outlook.add(10, 1, 100);
  outlook.add(20, 1, 130);
  EXPECT_NEAR(outlook.least(15), 95, .2) << "as it came down from 0 to 10";
  EXPECT_NEAR(outlook.least(5), 85, .2) << "as it rises from 10 to 20";
}

TEST(Outlook, NumbersCloseTogetherSayNothingAboutOnesFarAway) {
  Outlook outlook;
  outlook.add(1000, 1, 100);
  outlook.add(999, 1, 101);
  EXPECT_LT(outlook.least(500), 0);
}

TEST(Outlook, WhatDoesNotFitIsNoPoint) {
  Outlook outlook;
  outlook.add(20, 1, 100);
  outlook.add(30, 1, std::numeric_limits<double>::infinity());
  EXPECT_LT(outlook.least(10), 0);
  EXPECT_LT(outlook.least(25), 0);
}

TEST(Outlook, OfOneNumberTheFastestCounts) {
  Outlook outlook;
  outlook.add(0, 3, 9);
  outlook.add(10, 4, 9);
  outlook.add(0, 2, 10);
  EXPECT_EQ(outlook.least(5), 2);
}

}  // namespace
}  // namespace cairn::plan
