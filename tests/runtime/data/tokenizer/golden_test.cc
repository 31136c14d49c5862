// Tokens, offsets and texts equal those that PyPI's libraries gave (make_golden.py).
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/data/data.h"
#include "tests/runtime/data/tokenizer/rig.h"

namespace cairn::data {
namespace {

struct Row {
  std::string text;
  std::vector<int32_t> tokens;
  std::vector<Offset> offsets;
  std::string decoded;
};

std::string from_hex(std::string_view digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  return bytes;
}

std::vector<Row> read_rows(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line + '|');
    std::string text, tokens, offsets, decoded;
    std::getline(fields, text, '|');
    std::getline(fields, tokens, '|');
    std::getline(fields, offsets, '|');
    std::getline(fields, decoded, '|');
    Row row{from_hex(text), {}, {}, from_hex(decoded)};
    std::istringstream numbers(tokens), pairs(offsets);
    for (int32_t token; numbers >> token;) row.tokens.push_back(token);
    char comma;
    for (Offset at; pairs >> at.begin >> comma >> at.end;) row.offsets.push_back(at);
    rows.push_back(std::move(row));
  }
  return rows;
}

struct Golden : testing::TestWithParam<std::string> {};

TEST_P(Golden, SaysWhatTheLibrarySays) {
  const std::filesystem::path path = kGolden / GetParam();
  const auto tokenizer = load_pretrained(path);
  const std::vector<Row> rows = read_rows(std::filesystem::path(path).replace_extension(".txt"));
  ASSERT_GE(rows.size(), 24u);
  for (size_t round = 0; round < 2; ++round)  // the second time words are known
    for (size_t i = 0; i < rows.size(); ++i) {
      std::vector<Offset> offsets;
      ASSERT_EQ(tokenizer->encode_with(rows[i].text, true, &offsets), rows[i].tokens) << "text " << i;
      ASSERT_EQ(offsets, rows[i].offsets) << "text " << i;
      ASSERT_EQ(tokenizer->encode_with(rows[i].text, true, nullptr), rows[i].tokens) << "text " << i;
      ASSERT_EQ(tokenizer->decode_with(rows[i].tokens, true, false), rows[i].decoded) << "text " << i;
    }
  for (int32_t id = 0; id < tokenizer->vocabulary(); ++id)
    if (const std::string token = tokenizer->token(id); !token.empty()) {
      EXPECT_EQ(tokenizer->token(tokenizer->find(token)), token) << id;
    }
}

std::vector<std::string> golden_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kGolden))
    if (entry.path().extension() != ".txt") names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Files, Golden, testing::ValuesIn(golden_files()), name_of);

TEST(GoldenFiles, AreThere) { EXPECT_GE(golden_files().size(), 20u); }

}  // namespace
}  // namespace cairn::data
