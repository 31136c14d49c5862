// Checkpoints: a directory with manifest.cairn (FlatBuffers: graph, run state, tensor table with XXH3-128 of
// each tensor and of the manifest itself), tensors.bin (64-byte aligned blobs) and whatever extra files the
// host adds (tokenizer, recipe). Verifier -> semantic limits -> build; anything unknown, truncated or flipped
// is kCorruptFile.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/step/stepper.h"

namespace cairn::io {

// The host's own part: small named texts kept in the manifest (recipe name, options, tokenizer kind) and
// files copied into the directory.
struct Extras {
  std::map<std::string, std::string> metadata;
  std::vector<std::filesystem::path> files;
  // Frozen parameters are not stored: the manifest has their digests, and whoever opens the checkpoint brings them. They
  // are read once, for the first such save.
  bool without_frozen = false;
};

// Saves parameters, moments, run state and, in the middle of an accumulation, gradients. Durable when it
// returns. Checks free space first; what was written is read back before it replaces anything (kCorruptFile).
// Files of an older checkpoint there that no save wrote are kept. No temporary copy of tensors in memory.
void save(step::Stepper& stepper, const std::filesystem::path& directory, const Extras& extras);

// Deletes a checkpoint atomically: a reader sees the directory as it was, or none. Deletes only the files
// that the manifest lists, and never through a link. Returns false if other files are there: they and the directory are
// kept. kNotFound, kInvalidArgument (a link, no directory), kCorruptFile (the manifest cannot be read), kIo.
bool remove_checkpoint(const std::filesystem::path& directory);

// An opened checkpoint: structure and the host's files verified, tensors checked when they are read. The
// tensors' file is kept open, so later reads see the file that was opened, even if another replaces it.
class Checkpoint {
 public:
  explicit Checkpoint(const std::filesystem::path& directory);
  ~Checkpoint();

  struct TensorInfo {
    std::string name;  // "h0.attn.qkv.weight", ".../m", ".../v", ".../gradient"
    TensorDesc desc;
    uint64_t offset = 0;
    uint64_t digest_low = 0, digest_high = 0;
  };
  std::shared_ptr<const graph::Graph> graph() const;
  // One of the caller's own, whose custom ops wait for their callbacks; nullptr: none does.
  std::shared_ptr<graph::Graph> graph_to_bind() const;
  const step::State& state() const;
  const std::vector<TensorInfo>& tensors() const;
  const std::map<std::string, std::string>& metadata() const;
  // Of the frozen parameters that are not among the tensors; nullptr: all parameters are.
  const engine::BaseDigest* base() const;
  // Reads everything and compares digests. kCorruptFile, kIo.
  void verify() const;
  // Into a session whose graph has the same digest: everything; bit-identical continuation. kInvalidArgument
  // names the first difference, also where the session has another base. All is read and compared before the first value is written. A file that is
  // changed after that is kIo or kCorruptFile, and poisons the session.
  void restore(step::Stepper& stepper) const;
  // Parameters alone, by name, into any session (generation, fine-tuning); returns names not found in the
  // checkpoint. Those that it does not hold (base()) are compared: kInvalidArgument.
  // averages: in place of parameters that have one, these; kNotFound: the checkpoint has none.
  std::vector<std::string> load_parameters(engine::Session& session, bool averages = false) const;
  void read(const TensorInfo& tensor, void* to) const;  // kCorruptFile if the digest differs

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// DIR itself if it is a checkpoint, else the newest complete "step-*" below it. kNotFound says what was
// looked for.
std::filesystem::path newest_checkpoint(const std::filesystem::path& directory);

}  // namespace cairn::io
