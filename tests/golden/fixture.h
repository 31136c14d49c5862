// Reads the fixtures that make_ops.py writes; the form is described there.
#pragma once
#include <bit>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/base/attrs.h"
#include "runtime/base/tensor.h"

namespace cairn::golden {

struct Item {
  std::string word;       // "in", "out", "grad", ...
  std::string qualifier;  // operand kind or index; empty if the item has none
  TensorDesc desc;
  std::vector<double> values;
};

struct FixtureCase {
  std::string op;
  Attrs attrs;
  std::vector<Item> items;

  std::vector<const Item*> all(std::string_view word) const {
    std::vector<const Item*> found;
    for (const Item& item : items)
      if (item.word == word) found.push_back(&item);
    return found;
  }
};

inline AttrValue parse_attr(char type, const std::string& text) {
  if (type == 'i') return int64_t{std::stoll(text)};
  if (type == 'f') return std::stod(text);
  if (type == 's') return text;
  std::istringstream parts(text);
  if (type == 'r') {
    std::vector<double> reals;
    for (std::string part; std::getline(parts, part, ',');) reals.push_back(std::stod(part));
    return reals;
  }
  std::vector<int64_t> list;
  for (std::string part; std::getline(parts, part, ',');) list.push_back(std::stoll(part));
  return list;
}

inline double parse_value(DType type, const std::string& hex) {
  const uint64_t bits = std::stoull(hex, nullptr, 16);
  if (type == DType::kF64) return std::bit_cast<double>(bits);
  if (type == DType::kF32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  return static_cast<int32_t>(static_cast<uint32_t>(bits));
}

inline Item parse_item(const std::string& word, std::istringstream& line) {
  Item item;
  item.word = word;
  if (word == "in" || word == "out" || word == "grad") line >> item.qualifier;
  if (item.qualifier == "-") return item;
  std::string dtype, dims;
  line >> dtype >> dims;
  item.desc.dtype = dtype_from_name(dtype);
  if (dims != "-")
    item.desc.shape = Shape(std::span<const int64_t>(std::get<std::vector<int64_t>>(parse_attr('l', dims))));
  for (std::string hex; line >> hex;) item.values.push_back(parse_value(item.desc.dtype, hex));
  require(static_cast<int64_t>(item.values.size()) == item.desc.shape.elements(), Code::kCorruptFile,
          "fixture: ", to_string(item.desc), " has ", item.values.size(), " values");
  return item;
}

inline std::vector<FixtureCase> read_fixture(const std::string& path) {
  std::ifstream file(path);
  require(file.good(), Code::kIo, "cannot read ", path);
  std::vector<FixtureCase> cases;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string word;
    line >> word;
    if (word == "case") {
      cases.emplace_back();
      line >> cases.back().op;
    } else if (word == "attr") {
      std::string name, value;
      char type = 0;
      line >> name >> type >> value;
      cases.back().attrs.set(name, parse_attr(type, value));
    } else {
      cases.back().items.push_back(parse_item(word, line));
    }
  }
  return cases;
}

}  // namespace cairn::golden
