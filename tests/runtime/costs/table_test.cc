#include "runtime/costs/table.h"

#include <gtest/gtest.h>

#include "samples.h"

namespace cairn::costs {
namespace {

TEST(Machine, DifferencesAreNamed) {
  const Machine a = sample_profile().machine;
  Machine b = a;
  b.memory_bytes *= 2;  // a virtual machine may grow, and another version may be as fast
  b.cairn = "1.1.0";
  EXPECT_EQ(difference(a, b), "");
  b.threads = 4;
  EXPECT_EQ(difference(a, b), "threads '3' there and '4' here");
  b.processor = "Comptometer";
  EXPECT_NE(difference(a, b).find("Abacus"), std::string::npos);
  EXPECT_NE(difference(a, b).find("Comptometer"), std::string::npos);
  b = a;
  b.device = "reference";
  EXPECT_NE(difference(a, b).find("device"), std::string::npos);
  b = a;
  b.isa = "rods";
  EXPECT_NE(difference(a, b).find("instruction set"), std::string::npos);
}

TEST(Profile, LinksAreByTierAndThrottle) {
  Profile p = sample_profile();
  p.set_link({{"host", 1, 1, 1, 1, 0}, 5e9});
  p.set_link({{"disk", 1, 2, 2, 1, 0}, 0});
  ASSERT_EQ(p.links.size(), 3u);
  p.set_link({{"host", 3, 3, 3, 1, 0}, 5e9});
  ASSERT_EQ(p.links.size(), 3u);
  EXPECT_EQ(p.find_link("host", 5e9)->link.latency_seconds, 3);
  EXPECT_EQ(p.find_link("host", 0)->link.latency_seconds, 2e-5);
  EXPECT_EQ(p.find_link("host", 6e9), nullptr);
  EXPECT_EQ(p.find_link("disk", 5e9), nullptr);
}

}  // namespace
}  // namespace cairn::costs
