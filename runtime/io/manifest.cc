#include "runtime/io/manifest.h"

#include <cmath>
#include <set>
#include <unordered_set>

#include "runtime/io/envelope.h"
#include "runtime/io/schema/manifest_generated.h"

namespace cairn::io {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

Offset<fb::ManifestState> encode_state(FlatBufferBuilder& to, const step::State& s) {
  const step::Options& o = s.options;
  const auto options = fb::CreateManifestOptions(
      to, o.micro_steps, o.seed, static_cast<uint32_t>(o.schedule.kind), o.schedule.rate,
      o.schedule.warmup_steps, o.schedule.total_steps, o.schedule.minimum_rate, o.beta1, o.beta2, o.eps,
      o.weight_decay, o.clip_norm);
  return fb::CreateManifestState(to, s.step, s.micro, s.updates, s.skipped, s.loss_sum, s.weight_sum,
                                 options);
}

step::State read_state(const fb::ManifestState& from) {
  const fb::ManifestOptions& o = *from.options();
  require(o.micro_steps() >= 1 && from.micro() < o.micro_steps(), Code::kCorruptFile,
          "checkpoint: micro-batch ", from.micro(), " of ", o.micro_steps());
  require(o.schedule() <= static_cast<uint32_t>(step::ScheduleKind::kLinear), Code::kCorruptFile,
          "checkpoint: unknown schedule ", o.schedule());
  for (double number :
       {o.rate(), o.minimum_rate(), o.beta1(), o.beta2(), o.eps(), o.weight_decay(), o.clip_norm()})
    require(std::isfinite(number), Code::kCorruptFile, "checkpoint: an option is not a number");
  step::State s;
  s.step = from.step();
  s.micro = from.micro();
  s.updates = from.updates();
  s.skipped = from.skipped();
  s.loss_sum = from.loss_sum();  // may be NaN: the step will then be skipped
  s.weight_sum = from.weight_sum();
  s.options.micro_steps = o.micro_steps();
  s.options.seed = o.seed();
  s.options.schedule = {static_cast<step::ScheduleKind>(o.schedule()), o.rate(), o.warmup_steps(),
                        o.total_steps(), o.minimum_rate()};
  s.options.beta1 = o.beta1();
  s.options.beta2 = o.beta2();
  s.options.eps = o.eps();
  s.options.weight_decay = o.weight_decay();
  s.options.clip_norm = o.clip_norm();
  return s;
}

// Names of files are joined to a directory and deleted with it: only plain names, each once.
std::optional<std::vector<Extra>> read_files(const fb::ManifestFile& from, Budget& budget) {
  if (from.files() == nullptr) return std::nullopt;
  std::vector<Extra> files;
  std::set<std::string> names = {kManifestName, kTensorsName, "", ".", ".."};
  const uint64_t count = count_of(from.files(), kMaxFiles, "files", budget);
  for (uint32_t i = 0; i < count; ++i) {
    const fb::ManifestExtra& file = *from.files()->Get(i);
    Extra extra{text_of(file.name(), budget, kMaxFileNameBytes), file.bytes(), file.digest_low(),
                file.digest_high()};
    require(names.insert(extra.name).second &&
                extra.name.find_first_of(std::string_view("/\0", 2)) == std::string::npos,
            Code::kCorruptFile, "checkpoint: file '", extra.name, "' is there twice or is no plain name");
    files.push_back(std::move(extra));
  }
  return files;
}

uint64_t aligned(uint64_t bytes) {
  return static_cast<uint64_t>(align_up(static_cast<int64_t>(bytes), kAlignment));
}

}  // namespace

uint64_t place(std::vector<Checkpoint::TensorInfo>& tensors) {
  uint64_t at = 0;
  for (Checkpoint::TensorInfo& tensor : tensors) {
    tensor.offset = at;
    at = aligned(static_cast<uint64_t>(checked_add(static_cast<int64_t>(at), tensor.desc.bytes())));
  }
  return at;
}

std::vector<std::byte> encode_manifest(const Manifest& manifest) {
  require(manifest.metadata.size() <= kMaxMetadata, Code::kInvalidArgument, manifest.metadata.size(),
          " metadata entries are more than ", kMaxMetadata);
  FlatBufferBuilder to;
  const auto graph =
      to.CreateVector(reinterpret_cast<const uint8_t*>(manifest.graph.data()), manifest.graph.size());
  const auto state = encode_state(to, manifest.state);
  std::vector<Offset<fb::ManifestTensor>> tensors;
  for (const Checkpoint::TensorInfo& t : manifest.tensors)
    tensors.push_back(fb::CreateManifestTensor(
        to, to.CreateString(t.name), static_cast<uint8_t>(t.desc.dtype),
        to.CreateVector(t.desc.shape.dims.data(), t.desc.shape.rank), t.offset, t.digest_low, t.digest_high));
  std::vector<Offset<fb::ManifestEntry>> metadata;
  for (const auto& [key, value] : manifest.metadata) {
    check_name(key, "metadata entry");
    require(value.size() <= kMaxMetadataBytes, Code::kInvalidArgument, "metadata '", key.substr(0, 64),
            "' of ", value.size(), " bytes is longer than ", kMaxMetadataBytes);
    metadata.push_back(fb::CreateManifestEntry(to, to.CreateString(key), to.CreateString(value)));
  }
  Offset<flatbuffers::Vector<Offset<fb::ManifestExtra>>> extras;
  if (manifest.files) {
    require(manifest.files->size() <= kMaxFiles, Code::kInvalidArgument, manifest.files->size(),
            " files are more than a checkpoint's ", kMaxFiles);
    std::vector<Offset<fb::ManifestExtra>> files;
    for (const Extra& f : *manifest.files)
      files.push_back(
          fb::CreateManifestExtra(to, to.CreateString(f.name), f.bytes, f.digest_low, f.digest_high));
    extras = to.CreateVector(files);
  }
  to.Finish(fb::CreateManifestFile(to, kFormatVersion, graph, state, to.CreateVector(tensors),
                                   manifest.tensors_bytes, to.CreateVector(metadata), extras),
            fb::ManifestFileIdentifier());
  return seal(to);
}

Manifest decode_manifest(std::span<const std::byte> bytes) {
  const Opened opened(bytes, kManifestIdentifier, "checkpoint");
  Budget budget = opened.budget();
  const fb::ManifestFile& file = *opened.root<fb::ManifestFile>();
  Manifest manifest;
  budget.take(file.graph()->size());
  const auto* graph = reinterpret_cast<const std::byte*>(file.graph()->data());
  manifest.graph.assign(graph, graph + file.graph()->size());
  manifest.state = read_state(*file.state());

  const uint64_t tensors = count_of(file.tensors(), kMaxValues, "tensors", budget);
  std::unordered_set<std::string> names;
  uint64_t at = 0;
  for (uint32_t i = 0; i < tensors; ++i) {
    const fb::ManifestTensor& from = *file.tensors()->Get(i);
    Checkpoint::TensorInfo tensor{text_of(from.name(), budget), desc_of(from.dtype(), from.shape(), budget),
                                  from.offset(), from.digest_low(), from.digest_high()};
    require(names.insert(tensor.name).second, Code::kCorruptFile, "checkpoint: tensor '", tensor.name,
            "' is there twice");
    require(tensor.offset == at, Code::kCorruptFile, "checkpoint: tensor '", tensor.name, "' lies at ",
            tensor.offset, " where ", at, " is expected");
    const auto size = static_cast<uint64_t>(tensor.desc.bytes());
    require(size <= (uint64_t{1} << 62) - at, Code::kCorruptFile, "checkpoint: tensor '", tensor.name,
            "' is too large");
    at = aligned(at + size);
    manifest.tensors.push_back(std::move(tensor));
  }
  require(file.tensors_bytes() == at, Code::kCorruptFile, "checkpoint: its tensors take ", at, " bytes, not ",
          file.tensors_bytes());
  manifest.tensors_bytes = at;
  const uint64_t entries = count_of(file.metadata(), kMaxMetadata, "metadata entries", budget);
  for (uint32_t i = 0; i < entries; ++i) {
    const fb::ManifestEntry& entry = *file.metadata()->Get(i);
    require(manifest.metadata
                .emplace(text_of(entry.key(), budget), text_of(entry.value(), budget, kMaxMetadataBytes))
                .second,
            Code::kCorruptFile, "checkpoint: metadata '", entry.key()->str(), "' is there twice");
  }
  manifest.files = read_files(file, budget);
  return manifest;
}

std::vector<Slot> slots_of(const graph::JointGraph& joint, bool gradients) {
  static constexpr size_t kMoments = std::size(kStateSuffixes) - 1;
  std::vector<Slot> slots;
  for (const graph::ParameterSlot& slot : joint.parameters) {
    const std::string& name = joint.forward->values()[slot.source].name;
    slots.push_back({name, slot.value});
    for (size_t i = 0; i < slot.moments.size(); ++i)
      slots.push_back(
          {i < kMoments ? cat(name, kStateSuffixes[i]) : cat(name, "/moment", i), slot.moments[i]});
    if (gradients && slot.gradient >= 0)
      slots.push_back({cat(name, kStateSuffixes[kMoments]), slot.gradient});
  }
  return slots;
}

}  // namespace cairn::io
