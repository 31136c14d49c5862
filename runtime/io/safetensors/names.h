// Parameters of a session as safetensors, under names of others.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/exec/session.h"

namespace cairn::io {

// Parameters of a session under other names: rows (ours, theirs, transposed) map e.g. to Hugging Face GPT-2,
// whose Conv1D weights are [in, out] where ours are [out, in]. A parameter without a row keeps its name.
struct NameRow {
  std::string ours, theirs;
  bool transposed = false;
  bool kept = false;  // by an import: the file is not asked for it
};
void export_safetensors(const engine::Session& session, const std::vector<NameRow>& names,
                        const std::filesystem::path& path);
// kInvalidArgument: a tensor is missing, its shape differs (both shapes), or its dtype is not a float one.
void import_safetensors(engine::Session& session, const std::vector<NameRow>& names,
                        const std::filesystem::path& path);

}  // namespace cairn::io
