// Parses the rows of ops.def once into OpRow.
#include <deque>

#include "runtime/base/text/words.h"
#include "runtime/ops/functions.h"
#include "runtime/ops/ops.h"
#include "runtime/ops/rules.h"
#include "runtime/ops/work.h"

namespace cairn::ops {
namespace {

struct RoleWord {
  std::string_view word;
  OperandRole role;
  bool packed = false;  // the word is the use that a packed weight is for
  bool decoded = false;
};
constexpr RoleWord kRoles[] = {{"weight", OperandRole::kWeight},
                               {"forward", OperandRole::kWeight, true},
                               {"input_grad", OperandRole::kWeight, true},
                               {"decoded", OperandRole::kWeight, false, true},
                               {"wide", OperandRole::kWide},
                               {"index", OperandRole::kIndex},
                               {"state", OperandRole::kState},
                               {"addend", OperandRole::kAddend},
                               {"into", OperandRole::kInto},
                               {"moved", OperandRole::kMoved},
                               {"argument", OperandRole::kArgument}};

void set_role(Operand& operand, std::string_view word) {
  for (const RoleWord& known : kRoles) {
    if (known.word != word) continue;
    operand.role = known.role;
    if (known.packed) operand.pack = known.word;
    operand.decoded = known.decoded;
    return;
  }
  fail(Code::kInternal, "ops.def: operand '", operand.name, "' has an unknown role '", word, "'");
}

std::vector<Operand> operands(std::string_view text) {
  std::vector<Operand> list;
  for_words(text, [&](std::string_view word) {
    Operand o;
    for (; word.find_first_of("?+=~") != word.npos; word.remove_suffix(1))
      (word.back() == '?'   ? o.optional
       : word.back() == '+' ? o.accumulates
       : word.back() == '~' ? o.later
                            : o.in_place) = true;
    const size_t colon = word.find(':');
    o.name = word.substr(0, colon);
    if (colon != word.npos) set_role(o, word.substr(colon + 1));
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
struct OpSource {
  OpCode code;
  std::string_view name, inputs, outputs, attrs;
  ShapeRule shape;
  GradientRule gradient;
  uint32_t saves, traits;
  Amp amp;
  Tolerance tolerance;
  std::string_view description;
  WorkRule work = nullptr;
  double gpu = 1;
};

using enum Amp;
using enum Tolerance;
constexpr OpSource kOpSources[] = {
#define OP(id, inputs, outputs, attrs, shape, gradient, saves, traits, amp, tolerance, ...) \
  {OpCode::k_##id, #id, inputs, outputs, attrs, shape, gradient, saves, traits, amp, tolerance, __VA_ARGS__},
#include "runtime/ops/ops.def"
#undef OP
};

constexpr AmpRow kAmpClasses[] = {
#define AMP(id, ...) {Amp::id, __VA_ARGS__},
#include "runtime/ops/amp.def"
#undef AMP
};

struct OpTable {
  std::deque<std::string> texts;  // that rows point to; elements of a deque do not move
  std::vector<OpRow> rows;
};

// With what {activations} stands for.
std::string_view description(std::string_view text, std::deque<std::string>& texts) {
  constexpr std::string_view kMark = "{activations}";
  const size_t at = text.find(kMark);
  if (at == text.npos) return text;
  return texts.emplace_back(cat(text.substr(0, at), activation_words(), text.substr(at + kMark.size())));
}

OpTable make_op_table() {
  OpTable table;
  for (const OpSource& s : kOpSources)
    table.rows.push_back({s.code, s.name, operands(s.inputs), operands(s.outputs), schemas(s.attrs), s.shape,
                          s.gradient, s.saves, s.traits, s.amp, s.tolerance,
                          description(s.description, table.texts), s.work, s.gpu});
  return table;
}

// Made once, by the first thread that calls; if memory is refused, nothing is kept.
const std::vector<OpRow>& op_table() {
  static const OpTable table = make_op_table();
  return table.rows;
}

}  // namespace

const OpRow& row(OpCode code) { return op_table()[static_cast<size_t>(code)]; }

const OpRow* find(std::string_view name) {
  for (const OpRow& r : op_table())
    if (r.name == name) return &r;
  return nullptr;
}

std::span<const OpRow> all() { return op_table(); }

const OpRow& with(Trait trait) {
  for (const OpRow& r : op_table())
    if (r.is(trait)) return r;
  fail(Code::kInternal, "ops.def: no row has the trait ", static_cast<uint32_t>(trait));
}

std::span<const AmpRow> amp_classes() { return kAmpClasses; }

bool OpRow::has_attr(std::string_view wanted) const {
  for (const AttrSchema& a : attrs)
    if (a.name == wanted) return true;
  return false;
}

int OpRow::operand(OperandRole role) const {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].role == role) return static_cast<int>(i);
  return -1;
}

std::vector<PackedUse> packed_uses(const OpRow& row) {
  std::vector<PackedUse> uses;
  for (size_t i = row.inputs.size(); i-- > 0;)
    if (const int at = static_cast<int>(i); !row.inputs[i].pack.empty())
      uses.push_back({at, at, row.inputs[i].pack});
  for (PackedUse& use : uses) use.weight = uses.back().into;
  if (uses.size() > 1) uses.back().only_with = uses.front().into;
  return uses;
}

std::optional<Lookup> lookup(const OpRow& row) {
  if (row.is(INTERNAL)) return {};
  Lookup found{0, 0, -1, row.has_attr("ignore_index")};
  bool any = false;
  for (size_t i = 0; i < row.inputs.size(); ++i) {
    if (row.inputs[i].role == OperandRole::kIndex) found.numbers = i, any = true;
    if (row.inputs[i].role == OperandRole::kWeight || row.inputs[i].role == OperandRole::kInto)
      found.table = i, found.axis = 0;
  }
  return any ? std::optional(found) : std::nullopt;
}

}  // namespace cairn::ops
