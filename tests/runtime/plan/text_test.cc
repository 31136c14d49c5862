#include "runtime/plan/text.h"

#include <gtest/gtest.h>

namespace cairn::plan {
namespace {

TEST(Text, ForPeople) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1536), "1.50 KiB");
  EXPECT_EQ(human_bytes(INT64_MAX), "8.00 EiB");
  EXPECT_EQ(human_seconds(1.5), "1.500 s");
  EXPECT_EQ(human_seconds(.0015), "1.50 ms");
  EXPECT_EQ(human_seconds(1e-6), "1.0 µs");
  EXPECT_EQ(escaped("<a & \"b\">\n"), "&lt;a &amp; &quot;b&quot;&gt; ");
}

TEST(Text, ForMachines) {
  std::string out;
  append_number(out, 0.1);
  append_number(out, int64_t{-5});
  append_string(out, "\"\\\n\xc3\xa9");
  EXPECT_EQ(out, "0.1-5\"\\\"\\\\\\u000a\xc3\xa9\"");
}

}  // namespace
}  // namespace cairn::plan
