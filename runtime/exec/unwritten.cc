// Finds the values that runs would read and nobody wrote. They hold zeros, and a run on them would look like any
// other.
#include <algorithm>

#include "runtime/exec/loaded.h"

namespace cairn::engine {
namespace {

constexpr size_t kNamed = 3;  // a message names so many values and counts the others

const std::string& name_of(const graph::JointGraph& joint, int32_t value) {
  return joint.values[static_cast<size_t>(value)].name;
}

// By joint value: an op of the micro-batch reads its storage.
std::vector<bool> read_by(const graph::JointGraph& joint) {
  std::vector<bool> read(joint.values.size(), false);
  for (const graph::JointOp& op : joint.ops())
    for (const int32_t in : op.in)
      if (in >= 0) read[static_cast<size_t>(joint.storage(in))] = true;
  return read;
}

// Whether the caller has to write values of the kind: those in a checkpoint and those of every micro-batch. A cache
// begins with zeros, so it needs none.
bool needs_numbers(graph::Role role) {
  const graph::KindRow& kind = graph::kind(role);
  return kind.is(graph::WRITTEN) &&
         (kind.saved == graph::Saved::kAlways || kind.lifetime == graph::Lifetime::kMicroBatch);
}

template <class List, class Name>
void tell(std::string& text, const List& missing, std::string_view one, std::string_view many,
          std::string_view remedy, const Name& name) {
  if (missing.empty()) return;
  text += cat(text.empty() ? "" : "; ", missing.size() == 1 ? one : cat(missing.size(), " ", many), ": ");
  for (size_t i = 0; i < std::min(kNamed, missing.size()); ++i)
    text += cat(i > 0 ? ", " : "", "'", name(missing[i]), "'");
  text += cat(missing.size() > kNamed ? ", ..." : "", "; ", remedy);
}

}  // namespace

void note_unwritten(Store& store) {
  for (LoadedPlan& of : store.plans) {
    const graph::JointGraph& joint = *of.plan->joint;
    const std::vector<bool> read = read_by(joint);
    for (const graph::Resident& resident : joint.residents) {
      if (!needs_numbers(resident.role)) continue;
      const std::string& name = name_of(joint, resident.value);
      if (!graph::kind(resident.role).is(graph::SHARED)) {
        if (read[static_cast<size_t>(resident.value)]) of.unwritten.push_back(resident.value);
      } else if (std::find(store.unwritten.begin(), store.unwritten.end(), name) == store.unwritten.end()) {
        store.unwritten.push_back(name);  // programs share some or all
      }
    }
  }
}

void note_average(Store& store, const graph::JointGraph& joint, int32_t value) {
  if (!store.averages) return;
  const graph::JointValue& written = joint.values[static_cast<size_t>(value)];
  if (written.role == graph::Role::kParameter) store.averages_begin.insert(written.name);
  if (written.role == graph::Role::kAverage)
    store.averages_begin.erase(joint.forward->values()[static_cast<size_t>(written.source)].name);
}

void note_written(Store& store, LoadedPlan& of, int32_t value) {
  const graph::JointGraph& joint = *of.plan->joint;
  const graph::Role role = joint.values[static_cast<size_t>(value)].role;
  note_average(store, joint, value);
  if (!needs_numbers(role)) return;
  if (graph::kind(role).is(graph::SHARED))
    std::erase(store.unwritten, name_of(joint, value));
  else
    std::erase(of.unwritten, value);
}

void require_written(const Store& store, const LoadedPlan& of) {
  if (store.unwritten.empty() && of.unwritten.empty()) [[likely]]
    return;
  const graph::JointGraph& joint = *of.plan->joint;
  std::vector<std::string> parameters;  // that this program has
  for (const std::string& name : store.unwritten)
    if (joint.find(name) >= 0) parameters.push_back(name);
  std::string text;
  tell(text, parameters, "this parameter has no values", "parameters have no values",
       "initialise the session, load or import weights, or write them",
       [](const std::string& name) { return name; });
  tell(text, of.unwritten, "this input was never written", "inputs were never written",
       "write them before the session runs", [&](int32_t value) { return name_of(joint, value); });
  require(text.empty(), Code::kWrongState, text);
}

}  // namespace cairn::engine
