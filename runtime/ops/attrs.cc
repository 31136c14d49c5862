// Checks an op's attributes against its row.
#include <cmath>

#include "runtime/ops/ops.h"

namespace cairn::ops {
namespace {

std::string_view type_name(char type) {
  switch (type) {
    case 'i':
      return "an integer";
    case 'f':
      return "a real number";
    case 's':
      return "a word";
    default:
      return "a list of integers";
  }
}

bool fits(char type, const AttrValue& value) {
  switch (type) {
    case 'i':
      return std::holds_alternative<int64_t>(value);
    case 'f':
      return std::holds_alternative<double>(value) || std::holds_alternative<int64_t>(value);
    case 's':
      return std::holds_alternative<std::string>(value);
    default:
      return std::holds_alternative<std::vector<int64_t>>(value);
  }
}

std::string known(const OpRow& row) {
  if (row.attrs.empty()) return "it has none";
  std::string list = "known:";
  for (const AttrSchema& a : row.attrs) list += cat(' ', a.name);
  return list;
}

}  // namespace

void check_attrs(const OpRow& row, const Attrs& attrs) {
  for (const auto& [name, value] : attrs.items()) {
    const AttrSchema* schema = nullptr;
    for (const AttrSchema& a : row.attrs)
      if (a.name == name) schema = &a;
    require(schema != nullptr, Code::kInvalidArgument, row.name, ": unknown attribute '", name, "' (",
            known(row), ")");
    require(fits(schema->type, value), Code::kInvalidArgument, row.name, ": attribute '", name, "' must be ",
            type_name(schema->type));
    if (const double* real = std::get_if<double>(&value))
      require(std::isfinite(*real), Code::kInvalidArgument, row.name, ": attribute '", name, "' is ", *real,
              ", it must be finite");
  }
  for (const AttrSchema& a : row.attrs)
    require(!a.required || attrs.has(a.name), Code::kInvalidArgument, row.name, ": attribute '", a.name,
            "' is missing (", known(row), ")");
}

}  // namespace cairn::ops
