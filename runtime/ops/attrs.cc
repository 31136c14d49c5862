// Checks an op's attributes against its row.
#include <cmath>

#include "runtime/ops/ops.h"

namespace cairn::ops {
namespace {

// Values of which of AttrValue's types an attribute of a type may have, the first being its own.
struct TypeRow {
  char letter;
  std::string_view name;
  size_t own, also;
};
constexpr TypeRow kTypes[] = {{'i', "an integer", 0, 0},
                              {'f', "a real number", 1, 0},
                              {'s', "a word", 2, 2},
                              {'l', "a list of integers", 3, 3},
                              {'r', "a list of real numbers", 4, 3}};

const TypeRow& type_of(char letter) {
  for (const TypeRow& type : kTypes)
    if (type.letter == letter) return type;
  fail(Code::kInternal, "ops.def: an attribute has the unknown type '", letter, "'");
}

void check_finite(const OpRow& row, std::string_view name, const AttrValue& value) {
  if (const double* real = std::get_if<double>(&value))
    require(std::isfinite(*real), Code::kInvalidArgument, row.name, ": attribute '", name, "' is ", *real,
            ", it must be finite");
  if (const auto* list = std::get_if<std::vector<double>>(&value))
    for (size_t i = 0; i < list->size(); ++i)
      require(std::isfinite((*list)[i]), Code::kInvalidArgument, row.name, ": number ", i, " of attribute '",
              name, "' is ", (*list)[i], ", it must be finite");
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
    const TypeRow& type = type_of(schema->type);
    require(value.index() == type.own || value.index() == type.also, Code::kInvalidArgument, row.name,
            ": attribute '", name, "' must be ", type.name);
    check_finite(row, name, value);
  }
  for (const AttrSchema& a : row.attrs)
    require(!a.required || attrs.has(a.name), Code::kInvalidArgument, row.name, ": attribute '", a.name,
            "' is missing (", known(row), ")");
}

}  // namespace cairn::ops
