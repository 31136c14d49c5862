#include "runtime/plan/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

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

// Readers of JSON refuse whole numbers beyond 64 bits.
TEST(Text, NumbersBeyondIntegersAreNone) {
  const auto text = [](double x) {
    std::string out;
    append_number(out, x);
    return out;
  };
  EXPECT_EQ(text(0x1p63), "9223372036854775808");
  EXPECT_EQ(text(0x1p64), "18446744073709551616.0");
  EXPECT_EQ(text(-0x1p64), "-18446744073709551616.0");
  EXPECT_EQ(text(1e20), "1e+20");
  EXPECT_EQ(text(std::numeric_limits<double>::infinity()), "inf");
  for (int bits = 60; bits < 80; ++bits)
    for (const double x : {std::ldexp(1.0, bits), std::ldexp(1.9999, bits)}) {
      EXPECT_EQ(std::strtod(text(x).c_str(), nullptr), x);
      EXPECT_TRUE(x < 0x1p64 || text(x).find_first_of(".e") != std::string::npos) << text(x);
    }
}

TEST(Text, EscapedIsAlwaysUtf8WithoutControls) {
  EXPECT_EQ(escaped("it's"), "it&#39;s");
  EXPECT_EQ(escaped("\xf0\x9f\x97\xbf \xc3\xa9"), "\xf0\x9f\x97\xbf \xc3\xa9");
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(escaped("\xff"), bad);
  EXPECT_EQ(escaped("\xc3"), bad);
  EXPECT_EQ(escaped("\xc0\xaf"), bad + bad) << "overlong";
  EXPECT_EQ(escaped("\xed\xa0\x80"), bad + bad + bad) << "half of a pair";
  EXPECT_EQ(escaped("\xf4\x90\x80\x80"), bad + bad + bad + bad) << "beyond the last";
  EXPECT_EQ(escaped(std::string_view("a\0b\x7f\xc2\x85", 6)), "a b  ");
}

TEST(Text, ShortenedKeepsBothEnds) {
  EXPECT_EQ(shortened("short", 5), "short");
  EXPECT_EQ(shortened("0123456789", 5),
            "01\xe2\x80\xa6"
            "89");
  EXPECT_EQ(characters(shortened(std::string(4096, 'x'), 120)), 120u);
  EXPECT_EQ(shortened("\xf0\x9f\x97\xbf\xf0\x9f\x97\xbf\xf0\x9f\x97\xbf", 2), "\xf0\x9f\x97\xbf\xe2\x80\xa6");
  EXPECT_EQ(label("<<<<", 3), "&lt;\xe2\x80\xa6&lt;");
}

TEST(Text, InAScript) {
  std::string out;
  append_script_string(out, "</script>\"\n\xff");
  EXPECT_EQ(out, "\"\\u003c/script>\\\" \xef\xbf\xbd\"");
}

}  // namespace
}  // namespace cairn::plan
