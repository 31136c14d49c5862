// Parses the rows of ops.def once into OpRow.
#include "runtime/ops/ops.h"
#include "runtime/ops/rules.h"

namespace cairn::ops {
namespace {

// Calls take(word) for each blank-separated word.
template <class Take>
void for_words(std::string_view text, const Take& take) {
  while (!text.empty()) {
    const size_t begin = text.find_first_not_of(' ');
    if (begin == text.npos) return;
    const size_t end = std::min(text.find(' ', begin), text.size());
    take(text.substr(begin, end - begin));
    text.remove_prefix(end);
  }
}

std::vector<Operand> operands(std::string_view text) {
  std::vector<Operand> list;
  for_words(text, [&](std::string_view word) {
    Operand o;
    for (; word.find_first_of("?+=") != word.npos; word.remove_suffix(1))
      (word.back() == '?' ? o.optional : word.back() == '+' ? o.accumulates : o.in_place) = true;
    o.name = word;
    list.push_back(o);
  });
  return list;
}

std::vector<AttrSchema> schemas(std::string_view text) {
  std::vector<AttrSchema> list;
  for_words(text, [&](std::string_view word) {
    const size_t colon = word.find(':');
    list.push_back({word.substr(0, colon), word[colon + 1], word.ends_with('!')});
  });
  return list;
}

// A row as it is written; plain data, so that the compiler has one loop to translate and not sixty
// constructors.
struct Source {
  OpCode code;
  std::string_view name, inputs, outputs, attrs;
  ShapeRule shape;
  GradientRule gradient;
  uint32_t saves, traits;
  Amp amp;
  Tolerance tolerance;
  std::string_view description;
};

using enum Amp;
using enum Tolerance;
constexpr Source kSources[] = {
#define OP(id, inputs, outputs, attrs, shape, gradient, saves, traits, amp, tolerance, description) \
  {OpCode::k_##id, #id, inputs, outputs, attrs, shape, gradient, saves, traits, amp, tolerance, description},
#include "runtime/ops/ops.def"
#undef OP
};

std::vector<OpRow> build() {
  std::vector<OpRow> rows;
  for (const Source& s : kSources)
    rows.push_back({s.code, s.name, operands(s.inputs), operands(s.outputs), schemas(s.attrs), s.shape,
                    s.gradient, s.saves, s.traits, s.amp, s.tolerance, s.description});
  return rows;
}

const std::vector<OpRow>& table() {
  static const std::vector<OpRow> rows = build();  // initialised once, by whichever thread comes first
  return rows;
}

}  // namespace

const OpRow& row(OpCode code) { return table()[static_cast<size_t>(code)]; }

const OpRow* find(std::string_view name) {
  for (const OpRow& r : table())
    if (r.name == name) return &r;
  return nullptr;
}

std::span<const OpRow> all() { return table(); }

}  // namespace cairn::ops
