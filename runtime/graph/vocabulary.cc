#include "runtime/graph/vocabulary.h"

#include <cstring>

namespace cairn::graph {
namespace {

constexpr int64_t kDefaultIgnore = -100;

// The input whose numbers these are, in whatever order; kNone if an op made them.
ValueId source(const Graph& g, ValueId value) {
  while (value != kNone && g.values()[value].kind == ValueKind::kActivation) {
    const Op& op = g.ops()[g.values()[value].producer];
    if (!ops::row(op.code).is(ops::REORDER)) return kNone;
    value = op.in[0];
  }
  return value != kNone && g.values()[value].kind == ValueKind::kInput ? value : kNone;
}

std::string position(const Shape& shape, int64_t flat) {
  std::string text = "]";
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    text = cat(axis > 0 ? ", " : "[", flat % shape[axis], text);
    flat /= shape[axis];
  }
  return shape.rank == 0 ? "[]" : text;
}

}  // namespace

Vocabularies vocabularies(const Graph& g) {
  Vocabularies found;
  for (const Op& op : g.ops()) {
    const std::optional<ops::Lookup> lookup = ops::lookup(ops::row(op.code));
    if (!lookup) continue;
    const ValueId input = source(g, op.in[lookup->numbers]);
    if (input == kNone) continue;
    found[input].push_back({.op = op.name,
                            .size = g.values()[op.in[lookup->table]].desc.shape[lookup->axis],
                            .ignores = lookup->ignores,
                            .ignore = op.attrs.integer("ignore_index", kDefaultIgnore)});
  }
  return found;
}

void check_vocabulary(const Value& input, const std::vector<Vocabulary>& rules, const void* data) {
  const int64_t count = input.desc.shape.elements();
  const auto number = [&](int64_t i) {
    int32_t found;
    std::memcpy(&found, static_cast<const char*>(data) + i * 4, 4);
    return found;
  };
  for (const Vocabulary& rule : rules)
    for (int64_t i = 0; i < count; ++i)
      if (!rule.allows(number(i)))
          [[unlikely]]  // the message is made for it alone: this runs for every micro-batch
        fail(Code::kInvalidArgument, "input '", input.name, "': the number ", number(i), " at position ",
             position(input.desc.shape, i), " is outside the vocabulary of op '", rule.op, "' (0..",
             rule.size - 1, rule.ignores ? cat(", or ", rule.ignore, " to ignore") : "", ")");
}

}  // namespace cairn::graph
