#include "runtime/compile/residency/vocabulary_parts.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "runtime/base/checked.h"
#include "runtime/compile/kernel_maker.h"

namespace cairn::engine {
namespace {

using graph::JointGraph;
using graph::JointOp;
using graph::ParameterSlot;

bool is_loss(const JointOp& op) {
  return op.code == ops::OpCode::k_linear_cross_entropy ||
         op.code == ops::OpCode::k_linear_cross_entropy_grad;
}

// The rows that parts of this parameter are multiples of, in this graph; 0: it cannot be split.
int64_t unit_of(const JointGraph& joint, const ParameterSlot& slot, const kernels::Registry& kernels,
                int threads) {
  if (!slices_by_rows(joint, slot)) return 0;
  int64_t unit = 1;
  for (JointOp op : joint.ops()) {
    if (!is_loss(op) || op.in[1] != slot.value) continue;
    const Operands operands(joint, op);
    const int64_t own = kernels.part_rows(signature_of(op, operands, threads));
    if (own <= 0) return 0;
    unit = std::lcm(unit, own);
  }
  // Parts follow one another, and each must begin at an aligned place.
  const TensorDesc& desc = joint.values[at(slot.value)].desc;
  for (const int64_t element : {dtype_bytes(desc.dtype), int64_t{4}})
    unit = std::lcm(unit, kAlignment / std::gcd(kAlignment, desc.shape.elements() / desc.shape[0] * element));
  return unit;
}

// The first rows of so many parts, which are as equal as multiples of the unit allow.
std::vector<int64_t> firsts(int64_t vocab, int64_t unit, int64_t parts) {
  std::vector<int64_t> list;
  for (int64_t k = 0; k < parts; ++k) list.push_back(k * vocab / parts / unit * unit);
  return list;
}

// More parts of one weight make too many ops and values: planning them takes minutes, and running them longer.
constexpr int64_t kMostParts = 4096;

// The fewest parts with at most so many rows. Where a unit has more rows, as many parts as there can be.
int64_t parts_for(int64_t vocab, int64_t unit, int64_t most) {
  const int64_t all = std::min(vocab / unit, kMostParts);
  int64_t parts = std::clamp<int64_t>(vocab / std::max<int64_t>(1, most), 1, all);
  const auto largest = [&] {
    const std::vector<int64_t> list = firsts(vocab, unit, parts);
    int64_t rows = vocab - list.back();
    for (size_t k = 1; k < list.size(); ++k) rows = std::max(rows, list[k] - list[k - 1]);
    return rows;
  };
  while (parts < all && largest() > most) ++parts;
  return parts;
}

// The bytes that an op has on the device at once. parted: those of values that are split.
struct WorkingSet {
  int64_t fixed = 0, parted = 0;
};
WorkingSet working_set(const Lowered& plan, const JointOp& op, int64_t workspace,
                       const std::set<int32_t>& parted) {
  WorkingSet set;
  std::set<int32_t> seen;
  for (const auto* list : {&op.in, &op.out})
    for (const int32_t v : *list) {
      if (v < 0 || !seen.insert(plan.joint->storage(v)).second) continue;
      const int32_t stored = plan.joint->storage(v);
      if (plan.offloaded.contains(stored)) continue;
      const int64_t bytes = align_up(plan.joint->values[at(stored)].desc.bytes(), kAlignment);
      (parted.contains(stored) ? set.parted : set.fixed) += bytes;
    }
  (set.parted > 0 && is_loss(op) ? set.parted : set.fixed) += workspace;
  return set;
}

int64_t workspace_of(const Lowered& plan, size_t op) {
  const int32_t kernel = plan.op_kernel[graph::kMicroBatch][op];
  return kernel < 0 ? 0 : align_up(plan.kernels[at(kernel)]->workspace_bytes(), kAlignment);
}

// The largest working set of the ops that use nothing of what is split.
int64_t largest_of_others(const Lowered& plan, const std::set<int32_t>& parted) {
  int64_t most = 0;
  for (size_t i = 0; i < plan.joint->ops().size(); ++i)
    if (const WorkingSet set = working_set(plan, plan.joint->ops()[i], workspace_of(plan, i), parted);
        set.parted == 0)
      most = std::max(most, set.fixed);
  return most;
}

// How many of the op's rows leave its working set at most at `most`.
int64_t rows_within(int64_t most, const WorkingSet& set, int64_t rows) {
  const double room = static_cast<double>(std::max<int64_t>(0, most - set.fixed));
  return static_cast<int64_t>(std::min(1.0, room / static_cast<double>(set.parted)) *
                              static_cast<double>(rows));
}

// The parts that follow from what ops need with the weights in one piece.
graph::PartRows first_parts(const Lowered& whole, const PartUnits& units) {
  const JointGraph& joint = *whole.joint;
  std::map<std::string, std::set<int32_t>> values;  // by name, the values to split: a weight and its gradient
  std::set<int32_t> all;
  for (const ParameterSlot& slot : joint.parameters) {
    const std::string& name = joint.values[at(slot.value)].name;
    if (!units.contains(name)) continue;
    for (const int32_t v : {slot.value, slot.gradient})
      if (v >= 0) values[name].insert(v), all.insert(v);
  }
  const int64_t most = largest_of_others(whole, all);
  graph::PartRows chosen;
  for (const auto& [name, parted] : values) {
    const int64_t vocab = joint.values[at(*parted.begin())].desc.shape[0], unit = units.at(name);
    int64_t least = vocab;
    for (size_t i = 0; i < joint.ops().size(); ++i) {
      const WorkingSet set = working_set(whole, joint.ops()[i], workspace_of(whole, i), parted);
      if (set.parted > 0) least = std::min(least, rows_within(most, set, vocab));
    }
    if (const int64_t parts = parts_for(vocab, unit, least); parts > 1)
      chosen[name] = firsts(vocab, unit, parts);
  }
  return chosen;
}

// Splits a weight into more parts if ops on its parts turn out to need more memory than other ops.
graph::PartRows more_parts(const Lowered& parted, const PartUnits& units, graph::PartRows parts) {
  const JointGraph& joint = *parted.joint;
  std::map<std::string, std::set<int32_t>> values;  // by name, the slices of a weight and its gradient
  std::set<int32_t> all;
  for (const ParameterSlot& slot : joint.parameters)
    for (const int32_t v : {slot.value, slot.gradient})
      if (const graph::Slices* const slices = v < 0 ? nullptr : joint.slices_of(v))
        for (const int32_t part : slices->parts)
          values[joint.values[at(slot.value)].name].insert(part), all.insert(part);
  const int64_t most = largest_of_others(parted, all);
  for (auto& [name, firsts_of] : parts) {
    const int64_t vocab = joint.values[at(joint.find(name))].desc.shape[0];
    int64_t least = vocab;
    for (size_t i = 0; i < joint.ops().size(); ++i) {
      const WorkingSet set = working_set(parted, joint.ops()[i], workspace_of(parted, i), values[name]);
      if (set.parted == 0 || set.fixed + set.parted <= most) continue;
      int64_t rows = 0;
      for (const auto* list : {&joint.ops()[i].in, &joint.ops()[i].out})
        for (const int32_t v : *list)
          if (v >= 0 && values[name].contains(joint.storage(v)))
            rows = std::max(rows, joint.values[at(v)].desc.shape[0]);
      least = std::min(least, rows_within(most, set, rows));
    }
    const int64_t unit = units.at(name), count = parts_for(vocab, unit, least);
    if (count > static_cast<int64_t>(firsts_of.size())) firsts_of = firsts(vocab, unit, count);
  }
  return parts;
}

}  // namespace

PartUnits part_units(std::span<const std::shared_ptr<const JointGraph>> joints,
                     const kernels::Registry& kernels, int threads) {
  PartUnits units;
  if (kernels.part_rows == nullptr) return units;
  std::set<std::string> whole;
  for (const auto& joint : joints)
    for (const ParameterSlot& slot : joint->parameters) {
      const std::string& name = joint->values[at(slot.value)].name;
      const int64_t unit = unit_of(*joint, slot, kernels, threads);
      if (unit == 0) whole.insert(name);
      if (unit > 0) units[name] = std::lcm(std::max<int64_t>(1, units[name]), unit);
    }
  for (const std::string& name : whole) units.erase(name);
  std::erase_if(units, [&](const auto& of) {
    return 2 * of.second > joints[0]->values[at(joints[0]->find(of.first))].desc.shape[0];
  });
  return units;
}

graph::PartRows choose_parts(
    const std::function<std::shared_ptr<const Lowered>(const graph::JointOptions&)>& lower,
    graph::JointOptions joint, const PartUnits& units) {
  joint.parts = first_parts(*lower(joint), units);
  while (!joint.parts.empty()) {
    graph::PartRows more = more_parts(*lower(joint), units, joint.parts);
    if (more == joint.parts) break;
    joint.parts = std::move(more);
  }
  return joint.parts;
}

graph::PartRows choose_parts(const Lowered& whole, const PartUnits& units, int64_t parts) {
  graph::PartRows chosen;
  for (const auto& [name, unit] : units) {
    const int64_t vocab = whole.joint->values[at(whole.joint->find(name))].desc.shape[0];
    require(parts <= vocab / unit, Code::kInvalidArgument, "'", name, "' has ", vocab,
            " rows, of which a part has ", unit, " or more: it goes in at most ", vocab / unit,
            " parts, not ", parts);
    chosen[name] = firsts(vocab, unit, parts);
  }
  return chosen;
}

}  // namespace cairn::engine
