#include "bench/layout/minimalloc_csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "runtime/base/error.h"

namespace cairn::bench {
namespace {

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> cells;
  for (;;) {
    const size_t comma = line.find(',');
    cells.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

std::string_view next_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

bool whole_number(std::string_view cell, int64_t& number) {
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  return error == std::errc{} && end == cell.data() + cell.size();
}

constexpr std::array<std::string_view, 3> kColumns = {"lower", "upper", "size"};

}  // namespace

Instance parse_minimalloc_csv(std::string_view text, const std::string& name) {
  const auto header = split(next_line(text));
  std::array<size_t, 3> at{};
  for (size_t c = 0; c < kColumns.size(); ++c) {
    at[c] = static_cast<size_t>(std::find(header.begin(), header.end(), kColumns[c]) - header.begin());
    require(at[c] < header.size(), Code::kInvalidArgument, name, ":1: no column '", kColumns[c],
            "' in the header; expected id,lower,upper,size");
  }
  Instance instance;
  for (int64_t line = 2; !text.empty(); ++line) {
    const std::string_view row = next_line(text);
    if (row.empty()) continue;
    const auto cells = split(row);
    require(cells.size() == header.size(), Code::kInvalidArgument, name, ":", line, ": ", cells.size(),
            " cells, the header has ", header.size());
    std::array<int64_t, 3> number{};
    for (size_t c = 0; c < kColumns.size(); ++c)
      require(whole_number(cells[at[c]], number[c]), Code::kInvalidArgument, name, ":", line, ": ",
              kColumns[c], " '", cells[at[c]], "' is no whole number of 64 bits");
    const auto [lower, upper, size] = number;
    require(0 <= lower && lower < upper && upper <= std::numeric_limits<int32_t>::max(),
            Code::kInvalidArgument, name, ":", line, ": alive from ", lower, " up to ", upper,
            "; expected 0 <= lower < upper < 2^31");
    require(size >= 0, Code::kInvalidArgument, name, ":", line, ": size ", size, " is negative");
    instance.blocks.push_back({static_cast<int32_t>(lower), static_cast<int32_t>(upper), size});
  }
  return instance;
}

Instance read_minimalloc_csv(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  require(file.good(), Code::kIo, path, ": cannot be opened");
  std::ostringstream text;
  text << file.rdbuf();
  Instance instance = parse_minimalloc_csv(text.str(), path);
  std::string number =
      std::filesystem::path(path).stem().extension().string();  // "A.1048576.csv": ".1048576"
  if (!number.empty()) number.erase(0, 1);
  if (!whole_number(number, instance.capacity)) instance.capacity = 0;
  return instance;
}

}  // namespace cairn::bench
