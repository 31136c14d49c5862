#include <sys/statvfs.h>
#include <xxhash.h>

#include <algorithm>
#include <set>

#include "runtime/io/manifest.h"

namespace cairn::io {
namespace fs = std::filesystem;
namespace {

// The save replaces the whole directory, so it must not be pointed at somebody's other files.
void check_target(const fs::path& directory) {
  std::error_code failed;
  if (!fs::exists(directory, failed)) return;
  require(fs::is_directory(directory, failed), Code::kInvalidArgument, "cannot save to '", directory.string(),
          "': it is not a directory");
  require(fs::exists(directory / kManifestName, failed) || fs::is_empty(directory, failed),
          Code::kInvalidArgument, "cannot save to '", directory.string(),
          "': it holds other files and is not a checkpoint");
}

void check_space(fs::path directory, uint64_t bytes) {
  std::error_code failed;
  directory = fs::absolute(directory, failed);
  while (!fs::exists(directory, failed) && directory.has_relative_path()) directory = directory.parent_path();
  struct statvfs space;
  if (::statvfs(directory.c_str(), &space) != 0) return;  // the writes will tell
  const uint64_t free = static_cast<uint64_t>(space.f_bavail) * space.f_frsize;
  require(free >= bytes, Code::kIo, "cannot save to '", directory.string(), "': the checkpoint takes ", bytes,
          " bytes, ", free, " are free");
}

struct ExtraFile {
  std::string name;
  std::unique_ptr<MappedFile> file;
};

std::vector<ExtraFile> open_extras(const Extras& extras) {
  std::vector<ExtraFile> files;
  std::set<std::string> names = {kManifestName, kTensorsName};
  for (const fs::path& path : extras.files) {
    std::string name = path.filename().string();
    require(names.insert(name).second, Code::kInvalidArgument, "a checkpoint cannot hold two files named '",
            name, "'");
    files.push_back({std::move(name), std::make_unique<MappedFile>(path)});
  }
  return files;
}

// One tensor, piece by piece; fills the digest.
void write_tensor(DurableDirectory::File& file, const engine::Session& session, int32_t value,
                  Checkpoint::TensorInfo& tensor, std::vector<std::byte>& piece, XXH3_state_t* state) {
  XXH3_128bits_reset(state);
  const int64_t bytes = tensor.desc.bytes();
  for (int64_t at = 0; at < bytes; at += kPieceBytes) {
    const int64_t n = std::min(kPieceBytes, bytes - at);
    session.read_at(value, at, piece.data(), n);
    XXH3_128bits_update(state, piece.data(), static_cast<size_t>(n));
    file.append(piece.data(), static_cast<uint64_t>(n));
  }
  const XXH128_hash_t digest = XXH3_128bits_digest(state);
  tensor.digest_low = digest.low64;
  tensor.digest_high = digest.high64;
}

}  // namespace

void save(step::Stepper& stepper, const fs::path& directory, const Extras& extras) {
  engine::Session& session = stepper.session();
  const graph::JointGraph& joint = *session.plan().joint;
  Manifest manifest;
  manifest.graph = encode_graph(*joint.forward);
  manifest.state = stepper.state();
  manifest.metadata = extras.metadata;
  const std::vector<Slot> slots = slots_of(joint, manifest.state.micro > 0);
  for (const Slot& slot : slots)
    manifest.tensors.push_back({slot.name, joint.values[slot.value].desc, 0, 0, 0});
  manifest.tensors_bytes = place(manifest.tensors);
  const std::vector<ExtraFile> files = open_extras(extras);

  check_target(directory);
  uint64_t total = manifest.tensors_bytes + encode_manifest(manifest).size();
  for (const ExtraFile& extra : files) total += extra.file->bytes().size();
  check_space(directory, total);

  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              XXH3_freeState);
  require(state != nullptr, Code::kOutOfMemory, "no memory for a digest");
  std::vector<std::byte> piece(kPieceBytes);
  DurableDirectory target(directory);
  const auto tensors = target.create(kTensorsName);
  for (size_t i = 0; i < slots.size(); ++i) {
    write_tensor(*tensors, session, slots[i].value, manifest.tensors[i], piece, state.get());
    tensors->pad_to(kAlignment);
  }
  tensors->close();
  target.write(kManifestName, encode_manifest(manifest));
  for (const ExtraFile& extra : files) target.write(extra.name, extra.file->bytes());
  target.commit();
}

}  // namespace cairn::io
