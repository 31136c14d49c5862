#include "runtime/io/manifest.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_set>

#include "runtime/io/envelope.h"
#include "runtime/io/manifest_schedule.h"
#include "runtime/io/schema/manifest_generated.h"

namespace cairn::io {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

// A hyper-parameter of AdamW for the options: older readers, which know no groups, take it from there.
double adamw(const step::State& s, std::string_view hyper) {
  const ops::OptimizerRow& row = ops::optimizer("adamw");
  const auto index = static_cast<size_t>(row.hyper(hyper));
  return !s.groups.empty() && s.groups[0].optimizer == &row ? s.groups[0].hypers.at(index)
                                                            : row.hypers[index].value;
}

Offset<fb::ManifestGroup> encode_group(FlatBufferBuilder& to, const graph::ParameterGroup& group) {
  const ops::OptimizerRow& row = *group.optimizer;
  std::vector<Offset<fb::ManifestHyper>> hypers;
  for (size_t i = 0; i < row.hypers.size(); ++i)
    hypers.push_back(fb::CreateManifestHyper(to, to.CreateString(row.hypers[i].name), group.hypers.at(i)));
  return fb::CreateManifestGroup(to, to.CreateString(group.pattern), to.CreateString(row.name),
                                 to.CreateVector(hypers));
}

Offset<fb::ManifestState> encode_state(FlatBufferBuilder& to, const step::State& s) {
  const step::Options& o = s.options;
  const SavedSchedules saved = encode_schedules(to, o.schedule);
  const auto options = fb::CreateManifestOptions(
      to, o.micro_steps, o.seed, saved.number, o.schedule.rate, o.schedule.warmup_steps,
      o.schedule.total_steps, o.schedule.minimum_rate, adamw(s, "beta1"), adamw(s, "beta2"), adamw(s, "eps"),
      adamw(s, "weight_decay"), o.clip_norm, saved.list, o.loss_scale.initial, o.loss_scale.growth,
      o.loss_scale.backoff, o.loss_scale.interval);
  const step::LossScale scale = s.loss_scale.value_or(step::LossScale{0});
  std::vector<Offset<fb::ManifestGroup>> groups;
  for (const graph::ParameterGroup& group : s.groups) groups.push_back(encode_group(to, group));
  return fb::CreateManifestState(to, s.step, s.micro, s.updates, s.skipped, s.loss_sum, s.weight_sum, options,
                                 to.CreateVector(groups), scale.scale, scale.finite_steps);
}

graph::ParameterGroup group_with_defaults(std::string pattern, const ops::OptimizerRow& row) {
  graph::ParameterGroup group{std::move(pattern), &row, {}, {}};
  for (const ops::Hyper& hyper : row.hypers) group.hypers.push_back(hyper.value);
  group.given.assign(group.hypers.size(), true);
  return group;
}

void set(graph::ParameterGroup& group, const ops::OptimizerRow& row, std::string_view name, double value) {
  const int index = row.hyper(name);
  require(index >= 0 && std::isfinite(value), Code::kCorruptFile, "checkpoint: hyper-parameter '", name,
          "' of ", row.name, " is not known, or no number");
  group.hypers[static_cast<size_t>(index)] = value;
}

graph::ParameterGroup read_group(const fb::ManifestGroup& from, Budget& budget) {
  const std::string optimizer = text_of(from.optimizer(), budget);
  const auto known = ops::optimizers();
  const auto row =
      std::find_if(known.begin(), known.end(), [&](const auto& r) { return r.name == optimizer; });
  require(row != known.end(), Code::kCorruptFile, "checkpoint: unknown optimizer '", optimizer, "'");
  graph::ParameterGroup group = group_with_defaults(text_of(from.pattern(), budget), *row);
  const uint64_t hypers = count_of(from.hypers(), kMaxValues, "hyper-parameters", budget);
  for (uint32_t i = 0; i < hypers; ++i)
    set(group, *row, text_of(from.hypers()->Get(i)->name(), budget), from.hypers()->Get(i)->value());
  return group;
}

std::vector<graph::ParameterGroup> read_groups(const fb::ManifestState& from, Budget& budget) {
  std::vector<graph::ParameterGroup> groups;
  if (from.groups() == nullptr) {
    const fb::ManifestOptions& o = *from.options();
    const ops::OptimizerRow& row = ops::optimizer("adamw");
    groups.push_back(group_with_defaults("", row));
    set(groups[0], row, "beta1", o.beta1());
    set(groups[0], row, "beta2", o.beta2());
    set(groups[0], row, "eps", o.eps());
    set(groups[0], row, "weight_decay", o.weight_decay());
    return groups;
  }
  const uint64_t count = count_of(from.groups(), kMaxValues, "parameter groups", budget);
  for (uint32_t i = 0; i < count; ++i) groups.push_back(read_group(*from.groups()->Get(i), budget));
  return groups;
}

step::State read_state(const fb::ManifestState& from, Budget& budget) {
  const fb::ManifestOptions& o = *from.options();
  require(o.micro_steps() >= 1 && from.micro() < o.micro_steps(), Code::kCorruptFile,
          "checkpoint: micro-batch ", from.micro(), " of ", o.micro_steps());
  for (double number :
       {o.rate(), o.minimum_rate(), o.beta1(), o.beta2(), o.eps(), o.weight_decay(), o.clip_norm(),
        o.loss_scale(), o.loss_scale_growth(), o.loss_scale_backoff(), from.loss_scale()})
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
  s.options.schedule = {decode_schedules(o, budget), o.rate(), o.warmup_steps(), o.total_steps(),
                        o.minimum_rate()};
  s.options.clip_norm = o.clip_norm();
  s.options.loss_scale = {o.loss_scale(), o.loss_scale_growth(), o.loss_scale_backoff(),
                          o.loss_scale_interval()};
  require(from.loss_scale() >= 0, Code::kCorruptFile, "checkpoint: the loss scale is ", from.loss_scale());
  if (from.loss_scale() > 0) s.loss_scale = {from.loss_scale(), from.finite_steps()};
  s.groups = read_groups(from, budget);
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

// A library that comes after this one may store a tensor in a format that this one cannot read; files say its name.
void check_format(const fb::ManifestTensor& from, Budget& budget) {
  const std::string format = text_of(from.format(), budget);
  if (format.empty() ||
      (from.dtype() < kDTypeCount && dtype_name(static_cast<DType>(from.dtype())) == format))
    return;
  std::string known;
  for (const DType type : kDTypes) known += cat(known.empty() ? "" : ", ", dtype_name(type));
  fail(Code::kUnsupported, "checkpoint: tensor '", text_of(from.name(), budget), "' is stored as '", format,
       "', a format that this library does not have (it has ", known,
       "): open it with the library that wrote it");
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

namespace {

Offset<fb::ManifestTensor> encode_tensor(FlatBufferBuilder& to, const Checkpoint::TensorInfo& t) {
  return fb::CreateManifestTensor(to, to.CreateString(t.name), static_cast<uint8_t>(t.desc.dtype),
                                  to.CreateVector(t.desc.shape.dims.data(), t.desc.shape.rank), t.offset,
                                  t.digest_low, t.digest_high,
                                  t.desc.dtype > DType::kSplit ? to.CreateString(dtype_name(t.desc.dtype))
                                                               : Offset<flatbuffers::String>());
}

Offset<fb::ManifestBase> encode_base(FlatBufferBuilder& to, const engine::BaseDigest& base) {
  std::vector<Offset<fb::ManifestTensor>> parts;
  for (const engine::BaseDigest::Part& part : base.parts)
    parts.push_back(encode_tensor(to, {part.name, part.desc, 0, part.low, part.high}));
  return fb::CreateManifestBase(to, to.CreateVector(parts), base.low, base.high);
}

// names: of tensors, none of which may be there again.
std::optional<engine::BaseDigest> decode_base(const fb::ManifestBase* from,
                                              std::unordered_set<std::string>& names, Budget& budget) {
  if (from == nullptr) return std::nullopt;
  engine::BaseDigest base;
  base.low = from->digest_low(), base.high = from->digest_high();
  const uint64_t count = count_of(from->tensors(), kMaxValues, "frozen parameters", budget);
  require(count > 0, Code::kCorruptFile, "checkpoint: it has a base without parameters");
  for (uint32_t i = 0; i < count; ++i) {
    const fb::ManifestTensor& part = *from->tensors()->Get(i);
    check_format(part, budget);
    base.parts.push_back({text_of(part.name(), budget), desc_of(part.dtype(), part.shape(), budget),
                          part.digest_low(), part.digest_high()});
    require(part.offset() == 0 && names.insert(base.parts.back().name).second, Code::kCorruptFile,
            "checkpoint: the frozen parameter '", base.parts.back().name, "' is there twice, or has a place");
  }
  return base;
}

}  // namespace

std::vector<std::byte> encode_manifest(const Manifest& manifest) {
  require(manifest.metadata.size() <= kMaxMetadata, Code::kInvalidArgument, manifest.metadata.size(),
          " metadata entries are more than ", kMaxMetadata);
  FlatBufferBuilder to;
  const auto graph =
      to.CreateVector(reinterpret_cast<const uint8_t*>(manifest.graph.data()), manifest.graph.size());
  const auto state = encode_state(to, manifest.state);
  std::vector<Offset<fb::ManifestTensor>> tensors;
  for (const Checkpoint::TensorInfo& t : manifest.tensors) tensors.push_back(encode_tensor(to, t));
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
  const auto base = manifest.base ? encode_base(to, *manifest.base) : Offset<fb::ManifestBase>();
  to.Finish(fb::CreateManifestFile(to, kFormatVersion, graph, state, to.CreateVector(tensors),
                                   manifest.tensors_bytes, to.CreateVector(metadata), extras, base),
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
  manifest.state = read_state(*file.state(), budget);

  const uint64_t tensors = count_of(file.tensors(), kMaxValues, "tensors", budget);
  std::unordered_set<std::string> names;
  uint64_t at = 0;
  for (uint32_t i = 0; i < tensors; ++i) {
    const fb::ManifestTensor& from = *file.tensors()->Get(i);
    check_format(from, budget);
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
  manifest.base = decode_base(file.base(), names, budget);
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

std::vector<Slot> slots_of(const engine::Session& session, bool gradients, bool without_frozen) {
  std::vector<Slot> slots;
  for (const graph::Resident& resident : session.plan().joint->residents)
    if (without_frozen && session.is_frozen(resident.value))
      continue;
    else if (resident.saved == graph::Saved::kAlways ||
             (gradients && resident.saved == graph::Saved::kInStep))
      slots.push_back({resident.name, resident.value});
  return slots;
}

}  // namespace cairn::io
