#include <gtest/gtest.h>

#include "runtime/report/report.h"
#include "tests/runtime/plan/make_problem.h"

namespace cairn::plan {
namespace {

std::string section(const Problem& p) { return values_section(p, Index(p), solve(p)); }

// What lies between the data element's tags.
std::string data(const std::string& html) {
  const size_t from = html.find('>', html.find("id='values-data'")) + 1;
  return html.substr(from, html.find("</script>", from) - from);
}

TEST(ReportTable, DataHoldsEveryValue) {
  Problem p = chain(300, 6400, 10);
  p.budget_bytes = 128 + 6400 * 60;
  const std::string html = section(p), json = data(html);
  for (const Value& v : p.values) EXPECT_NE(json.find('"' + v.name + '"'), std::string::npos) << v.name;
  for (const char* part : {"\"regions\":[", "\"recompute\"", "recomputed by", "\"colors\":[\"#"})
    EXPECT_NE(json.find(part), std::string::npos) << part;
  EXPECT_NE(html.find("need scripts"), std::string::npos);
  size_t rows = 0;
  for (size_t at = html.find("<tr>"); at != std::string::npos; at = html.find("<tr>", at + 1)) ++rows;
  EXPECT_LE(rows, 60u) << "the rest is drawn where it is looked at";
}

TEST(ReportTable, NamesCannotLeaveTheirPlace) {
  Problem p = chain(3);
  p.values[1].name = "</script><script>alert(1)</script>";
  p.values[2].name = "quote \" ' & \\ \x01 \xf0\x9f\x97\xbf \xff \xed\xa0\x80";
  p.regions[0].name = "<!--";
  const std::string html = section(p), json = data(html);
  EXPECT_EQ(html.find("<script>alert"), std::string::npos);
  EXPECT_EQ(html.find("<!--"), std::string::npos);
  EXPECT_NE(html.find("&lt;/script&gt;&lt;script&gt;"), std::string::npos) << "the plain rows";
  EXPECT_EQ(json.find('<'), std::string::npos);
  EXPECT_NE(json.find("\\u003c/script>"), std::string::npos);
  EXPECT_NE(json.find("quote \\\" ' & \\\\   \xf0\x9f\x97\xbf \xef\xbf\xbd \xef\xbf\xbd"), std::string::npos);
}

TEST(ReportTable, LongNamesAreShortened) {
  Problem p = chain(2000);
  for (Value& v : p.values) {
    const std::string name = v.name;
    v.name.append(4096, 'x').append("end of ").append(name);
  }
  const std::string html = section(p);
  EXPECT_LT(html.size(), p.values.size() * 400);
  EXPECT_NE(html.find("\xe2\x80\xa6xxx"), std::string::npos);
  EXPECT_NE(html.find("end of a1000"), std::string::npos);
}

}  // namespace
}  // namespace cairn::plan
