#include <sys/statvfs.h>

#include <algorithm>
#include <set>

#include "runtime/base/os/file.h"
#include "runtime/io/digest.h"
#include "runtime/io/graph_file.h"
#include "runtime/io/manifest.h"
#include "runtime/io/own.h"

namespace cairn::io {
namespace fs = std::filesystem;
namespace {

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

std::vector<InputFile> open_extras(const Extras& extras, Manifest& manifest) {
  std::vector<InputFile> files;
  std::set<std::string> names = {kManifestName, kTensorsName};
  for (const fs::path& path : extras.files) {
    const std::string name = path.filename().string();
    require(names.insert(name).second, Code::kInvalidArgument, "a checkpoint cannot hold two files named '",
            name, "'");
    files.emplace_back(path);
    manifest.files->push_back({name, files.back().size(), 0, 0});
  }
  return files;
}

void copy(const InputFile& from, DurableDirectory& target, Extra& extra, std::byte* piece) {
  const auto file = target.create(extra.name);
  Digest digest;
  for (uint64_t at = 0; at < extra.bytes; at += kPieceBytes) {
    const std::span<std::byte> bytes(piece, std::min<uint64_t>(kPieceBytes, extra.bytes - at));
    from.read(at, bytes.data(), bytes.size());
    digest.add(bytes);
    file->append(bytes.data(), bytes.size());
  }
  file->close();
  extra.digest_low = digest.low();
  extra.digest_high = digest.high();
}

// One tensor, piece by piece; fills the digest.
void write_tensor(DurableDirectory::File& file, const engine::Session& session, int32_t value,
                  Checkpoint::TensorInfo& tensor, std::byte* piece, Digest& digest) {
  digest.restart();
  const int64_t bytes = tensor.desc.bytes();
  for (int64_t at = 0; at < bytes; at += kPieceBytes) {
    const int64_t n = std::min(kPieceBytes, bytes - at);
    session.read_saved(value, at, piece, n);
    digest.add({piece, static_cast<size_t>(n)});
    file.append(piece, static_cast<uint64_t>(n));
  }
  tensor.digest_low = digest.low();
  tensor.digest_high = digest.high();
}

// What a reader will find: the model is built again, every tensor and file compared with its digest. Memory
// that was damaged, or a model that cannot be opened, is found while the older checkpoint is still there.
void read_back(const fs::path& written, const fs::path& directory, std::span<const std::byte> manifest) try {
  const FileContent content(written / kManifestName);
  require(std::ranges::equal(content.bytes(), manifest), Code::kCorruptFile, "'", content.path().string(),
          "' has other bytes than were written");
  Checkpoint(written).verify();
} catch (const Error& error) {
  if (error.code() == Code::kOutOfMemory) throw;
  fail(error.code() == Code::kIo ? Code::kIo : Code::kCorruptFile, "the save to '", directory.string(),
       "' cannot be read back, and replaced nothing: ", error.what());
}

}  // namespace

void save(step::Stepper& stepper, const fs::path& directory, const Extras& extras) {
  engine::Session& session = stepper.session();
  const graph::JointGraph& joint = *session.plan().joint;
  Manifest manifest;
  manifest.graph = encode_graph(*joint.forward);
  manifest.state = stepper.state();
  require(manifest.state.gathered == 0, Code::kWrongState,
          "a graph with values of the effective batch is saved between steps, and ", manifest.state.gathered,
          " micro-batches of this one are gathered: finish the step, or discard it");
  manifest.metadata = extras.metadata;
  if (extras.without_frozen) manifest.base = session.base_digest();
  if (manifest.base && manifest.base->parts.empty()) manifest.base.reset();
  const std::vector<Slot> slots = slots_of(session, manifest.state.micro > 0, manifest.base.has_value());
  for (const Slot& slot : slots) manifest.tensors.push_back({slot.name, session.saved(slot.value), 0, 0, 0});
  manifest.tensors_bytes = place(manifest.tensors);
  const std::vector<InputFile> files = open_extras(extras, manifest);

  std::vector<std::byte> encoded = encode_manifest(manifest);
  uint64_t total = manifest.tensors_bytes + encoded.size();
  std::vector<std::string> names;
  for (const Extra& extra : *manifest.files) {
    total = checked_add(total, extra.bytes);
    names.push_back(extra.name);
  }
  DurableDirectory target(directory, own_files(names));
  check_space(directory, total);
  // The first manifest lacks digests. If this save dies, it says whose the other files are.
  target.write(kManifestName, encoded);
  Digest digest;
  const Piece piece = make_piece();
  for (size_t i = 0; i < files.size(); ++i) copy(files[i], target, (*manifest.files)[i], piece.get());
  const auto tensors = target.create(kTensorsName);
  for (size_t i = 0; i < slots.size(); ++i) {
    write_tensor(*tensors, session, slots[i].value, manifest.tensors[i], piece.get(), digest);
    tensors->pad_to(kAlignment);
  }
  tensors->close();
  encoded = encode_manifest(manifest);
  target.rewrite(kManifestName, encoded);
  read_back(target.path(), directory, encoded);
  target.commit();
}

}  // namespace cairn::io
