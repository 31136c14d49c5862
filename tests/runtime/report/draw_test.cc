#include <gtest/gtest.h>

#include "runtime/report/report.h"

namespace cairn::plan {
namespace {

TEST(ReportDraw, TicksAreRound) {
  EXPECT_DOUBLE_EQ(tick(1.0, 8, false), .2);
  EXPECT_DOUBLE_EQ(tick(7, 7, false), 1);
  EXPECT_DOUBLE_EQ(tick(1000, 6, true), 256);
  EXPECT_DOUBLE_EQ(tick(0, 6, true), 1);
  EXPECT_EQ(tick_seconds(.2), "200 ms");
  EXPECT_EQ(tick_seconds(.0125), "12.5 ms");
  EXPECT_EQ(tick_seconds(2), "2 s");
}

TEST(ReportDraw, SharesInWords) {
  EXPECT_EQ(percent(0), "0 %");
  EXPECT_EQ(percent(1e-9), "0 %");
  EXPECT_EQ(percent(.00034), "0.034 %");
  EXPECT_EQ(percent(.0123), "1.23 %");
  EXPECT_EQ(percent(.218), "21.8 %");
  EXPECT_EQ(percent(28.48), "2848 %");
  EXPECT_EQ(over(1.5, 1), " (+50.0 %)");
  EXPECT_EQ(over(1, 1), " (no slower than keeping everything)");
  EXPECT_EQ(over(1, 0), "");
}

TEST(ReportDraw, TheStyleIsForBothGrounds) {
  EXPECT_NE(picture_style().find("prefers-color-scheme:dark"), std::string_view::npos);
  EXPECT_NE(open_svg(10, "a 'b' <c>").find("a &#39;b&#39; &lt;c&gt;"), std::string::npos);
  EXPECT_DOUBLE_EQ(text_width("\xf0\x9f\x97\xbf", 10), text_width("a", 10));
}

}  // namespace
}  // namespace cairn::plan
