// What training changes, by name.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "runtime/engine/exec/session.h"

namespace cairn::step {

using Values = std::map<std::string, std::vector<char>>;

// Bytes of all parameters and their moments, wherever they live.
inline Values trained(const engine::Session& session) {
  Values found;
  const graph::JointGraph& joint = *session.plan().joint;
  for (const graph::ParameterSlot& slot : joint.parameters) {
    std::vector<int32_t> values = slot.states;
    values.push_back(slot.value);
    for (const int32_t v : values) {
      auto& bytes = found[joint.values[static_cast<size_t>(v)].name];
      bytes.resize(static_cast<size_t>(joint.values[static_cast<size_t>(v)].desc.bytes()));
      session.read(v, bytes.data(), static_cast<int64_t>(bytes.size()));
    }
  }
  return found;
}

}  // namespace cairn::step
