// The manifest of a checkpoint as a plain struct. Private to runtime/io.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/io/checkpoint.h"

namespace cairn::io {

inline constexpr const char* kManifestName = "manifest.cairn";
inline constexpr const char* kTensorsName = "tensors.bin";
inline constexpr const char* kManifestIdentifier = "CMAN";

// A file that the host added to a checkpoint.
struct Extra {
  std::string name;
  uint64_t bytes = 0;
  uint64_t digest_low = 0, digest_high = 0;
};

struct Manifest {
  std::vector<std::byte> graph;  // a model file
  step::State state;
  std::vector<Checkpoint::TensorInfo> tensors;  // one after the other, each at a multiple of 64
  uint64_t tensors_bytes = 0;                   // size of tensors.bin
  std::map<std::string, std::string> metadata;
  std::optional<std::vector<Extra>> files = std::vector<Extra>();  // none: 1.0 did not list them
  std::optional<engine::BaseDigest> base;  // of frozen parameters that are not in `tensors`; none: all are
};

// kInvalidArgument: metadata too large, a key that is no name.
std::vector<std::byte> encode_manifest(const Manifest& manifest);
// kCorruptFile. Offsets, sizes and names are checked; the graph is not decoded.
Manifest decode_manifest(std::span<const std::byte> bytes);

// Places tensors one after the other: fills offsets, returns the size of tensors.bin.
uint64_t place(std::vector<Checkpoint::TensorInfo>& tensors);

// What a session's stepper has to keep: name and joint value, in the order of the file.
struct Slot {
  std::string name;
  int32_t value;
};
std::vector<Slot> slots_of(const engine::Session& session, bool gradients, bool without_frozen);

// Frozen parameters that a checkpoint does not hold, against those of a session (base.cc).
// kInvalidArgument: the session's frozen parameters are not these; names the first that differs.
void require_base(const engine::Session& session, const engine::BaseDigest& base, std::string_view directory);

// Whether a parameter is one of the base. kInvalidArgument: it is, and has other values. One that the session stores
// in less than the checkpoint's type cannot be compared, and is taken.
bool require_part(const engine::Session& session, int32_t value, const engine::BaseDigest& base,
                  std::string_view directory);

// Tensors are moved in pieces of this size.
inline constexpr int64_t kPieceBytes = int64_t{4} << 20;
// Room for one, not cleared: for small models that would take longer than what they store.
using Piece = std::unique_ptr<std::byte[]>;
inline Piece make_piece() { return std::make_unique_for_overwrite<std::byte[]>(kPieceBytes); }

}  // namespace cairn::io
