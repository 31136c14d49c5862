#include "runtime/base/os/proc.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(Proc, ReadsWhatTheSystemWrites) {
  EXPECT_NE(read_system_file("/proc/self/status").find("Name:"), std::string::npos);
  EXPECT_EQ(read_system_file("/proc/self/there-is-no-such-file"), "");
}

TEST(Proc, TakesLinesWordsAndNumbers) {
  std::string_view text = "MemTotal:\t 12 kB\n\nlast";
  std::string_view line = take_line(text);
  EXPECT_EQ(take_word(line), "MemTotal:");
  EXPECT_EQ(number_of(take_word(line)), 12);
  EXPECT_EQ(take_word(line), "kB");
  EXPECT_EQ(take_word(line), "");
  EXPECT_EQ(take_line(text), "");
  EXPECT_EQ(take_line(text), "last");
  EXPECT_TRUE(text.empty());
  EXPECT_EQ(take_line(text), "");
  EXPECT_EQ(number_of("max"), std::nullopt);
  EXPECT_EQ(number_of("12x"), std::nullopt);
  EXPECT_EQ(number_of("-3"), -3);
}

}  // namespace
}  // namespace cairn
