#include <gtest/gtest.h>

#include "runtime/report/report.h"

namespace cairn::plan {
namespace {

TEST(ReportPage, NothingComesFromElsewhereAndNoTextBecomesHtml) {
  for (std::string_view text : {page_style(), page_script()})
    for (const char* part : {"http", "url(", "@import", "</s", "fetch(", "import("})
      EXPECT_EQ(text.find(part), std::string_view::npos) << part;
  for (const char* part : {"innerHTML", "insertAdjacentHTML", "document.write", "eval("})
    EXPECT_EQ(page_script().find(part), std::string_view::npos) << part;
  EXPECT_NE(page_style().find("prefers-color-scheme: dark"), std::string_view::npos);
}

}  // namespace
}  // namespace cairn::plan
