// Parameters of a session as safetensors, under names of others.
#pragma once
#include <filesystem>
#include <optional>
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
  bool stacked =
      false;  // theirs is the next element of the first dimension: a row for each, as for each expert
};
struct ExportOptions {
  std::optional<DType> dtype;         // floats are written as it; nothing: as they are stored
  std::optional<DType> frozen_dtype;  // of those not trained, unless a format has rounded them
  bool directory = false;             // of kModelName, or of files of up to shard_bytes and their index
  uint64_t shard_bytes = 0;           // of tensors; 0: no limit. A larger tensor has a file of its own
  std::vector<std::filesystem::path> files;  // copied into the directory
};
// All or nothing, durable. kInvalidArgument: the directory holds something.
void export_safetensors(const engine::Session& session, const std::vector<NameRow>& names,
                        const std::filesystem::path& path, const ExportOptions& options = {});
// From what ModelFiles opens. kInvalidArgument: a tensor is missing, its shape differs (both shapes), or its dtype is
// not a float one.
void import_safetensors(engine::Session& session, const std::vector<NameRow>& names,
                        const std::filesystem::path& path);

}  // namespace cairn::io
