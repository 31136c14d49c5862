// Texts equal those that jinja2 made (make_golden.py).
#include <gtest/gtest.h>
#include <simdjson.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/base/error.h"
#include "runtime/data/template/template.h"

namespace cairn::data {
namespace {

const std::filesystem::path kGolden = CAIRN_SOURCE_DIR "/tests/runtime/data/template/golden";

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// "error" stands for any error.
std::string rendered(const std::string& source, const std::string& values) {
  try {
    return "text " + Template::parse(source, "golden")->render(values);
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == Code::kInvalidArgument || error.code() == Code::kUnsupported ||
                error.code() == Code::kCorruptFile)
        << error.what();
    return "error";
  }
}

std::string expected(simdjson::dom::element row) {
  return row.is_null() ? "error" : "text " + std::string(std::string_view(row));
}

struct Golden : testing::TestWithParam<std::string> {};

TEST_P(Golden, SaysWhatJinjaSays) {
  simdjson::dom::parser of_values, of_texts;
  const simdjson::dom::array values = of_values.load((kGolden / "values.json").string());
  const simdjson::dom::array texts = of_texts.load((kGolden / (GetParam() + ".json")).string());
  const std::string source = content(kGolden / (GetParam() + ".jinja"));
  ASSERT_EQ(values.size(), texts.size());
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(rendered(source, std::string(std::string_view(values.at(i)))), expected(texts.at(i)))
        << "row " << i;
}

INSTANTIATE_TEST_SUITE_P(Templates, Golden,
                         testing::Values("brackets", "channels", "chatml", "headers", "thinking", "turns"),
                         [](const auto& info) { return info.param; });

TEST(RandomTemplates, SayWhatJinjaSays) {
  simdjson::dom::parser parser;
  const simdjson::dom::array rows = parser.load((kGolden / "random.json").string());
  const std::string values(std::string_view(rows.at(0)));
  ASSERT_GT(rows.size(), 300u);
  for (size_t i = 1; i < rows.size(); ++i) {
    const std::string source(std::string_view(rows.at(i).at(0)));
    ASSERT_EQ(rendered(source, values), expected(rows.at(i).at(1))) << source;
  }
}

}  // namespace
}  // namespace cairn::data
