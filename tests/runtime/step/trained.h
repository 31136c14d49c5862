// What training reads, and what it changes, by name.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "runtime/exec/session.h"

namespace cairn::step {

using Values = std::map<std::string, std::vector<char>>;

// Words that follow from the step, below `vocabulary`, for the inputs "ids" and "targets" of `count` each.
inline void feed_words(engine::Session& session, uint64_t step, int64_t count, int64_t vocabulary) {
  std::vector<int32_t> words(static_cast<size_t>(count));
  for (const char* name : {"ids", "targets"}) {
    for (size_t i = 0; i < words.size(); ++i)
      words[i] = static_cast<int32_t>((i * 5 + step * 3 + static_cast<size_t>(name[0])) %
                                      static_cast<size_t>(vocabulary));
    session.write(session.plan().joint->find(name), words.data(), count * 4);
  }
}

// Bytes of all parameters and their moments, wherever they live.
inline Values trained(const engine::Session& session) {
  Values found;
  const graph::JointGraph& joint = *session.plan().joint;
  for (const graph::ParameterSlot& slot : joint.parameters) {
    std::vector<int32_t> values = joint.owned(slot.value, graph::Role::kOptimizer);
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
