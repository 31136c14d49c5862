// Parameters of a session as safetensors or GGUF, under names of others.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/exec/session.h"

namespace cairn::io {

// Parameters of a session under other names: rows (ours, theirs, transposed) map e.g. to Hugging Face GPT-2,
// whose Conv1D weights are [in, out] where ours are [out, in]; of more axes, channels stand second there and
// last here. A parameter without a row keeps its name.
struct NameRow {
  std::string ours, theirs;
  bool transposed = false;
  bool kept = false;  // by an import: the file is not asked for it
  bool stacked =
      false;  // theirs is the next element of the first dimension: a row for each, as for each expert
};
// What is added to a parameter W that is written: of a matrix W + scale B A, of a table of rows W + scale A Bᵀ, and with a
// magnitude (DoRA) each row of that brought to its length. `a` empty: nothing is added.
struct MergeRow {
  std::string weight, a, b, magnitude;
  double scale = 1;
  bool table = false;
  std::optional<DType> format;  // the one in which W was trained with, where the session has it in full
};
// How a file has the values of a parameter, where it is not as they are. Its rows (all dimensions but the last) are `groups`
// groups of units of `unit` rows, in which `ways` runs of units take turns: unit i of run j is number i * ways + j there,
// where ours has one run after the other. `offset` is added to what the file has.
struct LayoutRow {
  std::string ours;
  uint32_t groups = 1, ways = 1, unit = 1;
  float offset = 0;
};
struct ExportOptions {
  std::optional<DType> dtype = {};         // floats are written as it; nothing: as they are stored
  std::optional<DType> frozen_dtype = {};  // of those not trained, unless a format has rounded them
  bool directory = false;                  // of kModelName, or of files of up to shard_bytes and their index
  uint64_t shard_bytes = 0;                // of tensors; 0: no limit. A larger tensor has a file of its own
  std::vector<std::filesystem::path> files = {};     // copied into the directory
  std::string file_name = {};                        // of a directory of one file; empty: kModelName
  std::map<std::string, std::string> metadata = {};  // of each file, besides "format"
  std::vector<MergeRow> merges = {};
  bool dequantise = false;       // of rows with a format: W is what that format makes of it
  double* difference = nullptr;  // largest and mean, over all rows with a format, between that and W in full
  std::vector<LayoutRow> layouts = {};
  std::string gguf = {};  // metadata (gguf/write.h) of a GGUF file, which is written then; "": safetensors
};
// All or nothing, durable. kInvalidArgument: the directory holds something.
void export_safetensors(const engine::Session& session, const std::vector<NameRow>& names,
                        const std::filesystem::path& path, const ExportOptions& options = {});
// From what ModelFiles opens. kInvalidArgument: a tensor is missing, its shape differs (both shapes), or its dtype is
// not a float one.
void import_safetensors(engine::Session& session, const std::vector<NameRow>& names,
                        const std::filesystem::path& path, const std::vector<LayoutRow>& layouts = {});

}  // namespace cairn::io
