// What a file is, as JSON. Files are told apart by their content, never by their name.
#include <cstring>
#include <set>

#include "runtime/base/os/file.h"
#include "runtime/data/data.h"
#include "runtime/data/token_file.h"
#include "runtime/io/envelope.h"
#include "runtime/io/gguf/gguf.h"
#include "runtime/io/graph_file.h"
#include "runtime/io/json.h"
#include "runtime/io/manifest.h"
#include "runtime/io/plan_file.h"
#include "runtime/io/safetensors/dtypes.h"
#include "runtime/io/safetensors/foreign.h"
#include "runtime/io/safetensors/model_files.h"
#include "runtime/io/safetensors/quantised/quantised.h"

namespace cairn::io {
namespace fs = std::filesystem;
namespace {

std::string n(int64_t value) { return std::to_string(value); }
std::string n(uint64_t value) { return std::to_string(value); }

std::string json(const Shape& shape) {
  Json out('[');
  for (int64_t d : shape.span()) out.add(std::to_string(d));
  return out.text();
}

Json fields(const TensorDesc& desc) {
  Json out('{');
  out.add("dtype", json_text(dtype_name(desc.dtype)))
      .add("shape", json(desc.shape))
      .add("bytes", n(desc.bytes()));
  return out;
}

std::string json(const TensorDesc& desc) { return fields(desc).text(); }

std::string json(const std::map<std::string, std::string>& metadata) {
  Json out('{');
  for (const auto& [key, value] : metadata) out.add(key, json_text(value));
  return out.text();
}

std::string json(const graph::Graph& graph) {
  static constexpr const char* kPolicies[] = {"auto", "keep", "recompute", "offload"};
  int64_t elements = 0;
  Json inputs('{'), parameters('{'), regions('[');
  for (const graph::Value& v : graph.values()) {
    if (v.kind == graph::ValueKind::kInput) inputs.add(v.name, json(v.desc));
    if (v.kind != graph::ValueKind::kParameter) continue;
    parameters.add(v.name, json(v.desc));
    elements += v.desc.shape.elements();
  }
  for (const graph::Region& r : graph.regions())
    regions.add(Json('{')
                    .add("name", json_text(r.name))
                    .add("policy", json_text(kPolicies[static_cast<uint32_t>(r.policy) % 4]))
                    .text());
  return Json('{')
      .add("digest", json_text(graph.digest()))
      .add("ops", n(graph.ops().size()))
      .add("values", n(graph.values().size()))
      .add("parameter_count", n(elements))
      .add("inputs", inputs.text())
      .add("parameters", parameters.text())
      .add("regions", regions.text())
      .text();
}

std::string json(const graph::ParameterGroup& group) {
  const ops::OptimizerRow& row = *group.optimizer;
  Json hypers('{');
  for (size_t i = 0; i < row.hypers.size(); ++i)
    hypers.add(std::string(row.hypers[i].name), number(group.hypers[i]));
  return Json('{')
      .add("pattern", json_text(group.pattern))
      .add("optimizer", json_text(row.name))
      .add("hypers", hypers.text())
      .text();
}

std::string json(const step::State& s) {
  const step::Options& o = s.options;
  Json groups('[');
  for (const graph::ParameterGroup& group : s.groups) groups.add(json(group));
  return Json('{')
      .add("step", n(s.step))
      .add("micro", n(uint64_t{s.micro}))
      .add("micro_steps", n(uint64_t{o.micro_steps}))
      .add("updates", n(s.updates))
      .add("skipped_steps", n(s.skipped))
      .add("loss_scale", number(s.loss_scale.value_or(step::LossScale{}).scale))
      .add("seed", n(o.seed))
      .add("schedule", json_text(step::schedule_text(o.schedule)))
      .add("rate", number(o.schedule.rate))
      .add("warmup_steps", n(o.schedule.warmup_steps))
      .add("total_steps", n(o.schedule.total_steps))
      .add("minimum_rate", number(o.schedule.minimum_rate))
      .add("clip_norm", number(o.clip_norm))
      .add("groups", groups.text())
      .text();
}

std::string hex(uint64_t high, uint64_t low) {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
  return text;
}

FileContent flat_buffer(const fs::path& path) { return FileContent(path, kMaxFlatBufferBytes); }

std::string inspect_manifest(const fs::path& path, std::span<const std::byte>) {
  const Manifest manifest = decode_manifest(flat_buffer(path).bytes());
  Json tensors('{');
  for (const Checkpoint::TensorInfo& t : manifest.tensors)
    tensors.add(t.name, Json('{')
                            .add("dtype", json_text(dtype_name(t.desc.dtype)))
                            .add("shape", json(t.desc.shape))
                            .add("offset", n(t.offset))
                            .add("xxh3_128", json_text(hex(t.digest_high, t.digest_low)))
                            .text());
  Json files('{');
  if (manifest.files)
    for (const Extra& file : *manifest.files)
      files.add(file.name, Json('{')
                               .add("bytes", n(file.bytes))
                               .add("xxh3_128", json_text(hex(file.digest_high, file.digest_low)))
                               .text());
  Json base('{');
  if (manifest.base)
    for (const engine::BaseDigest::Part& part : manifest.base->parts)
      base.add(part.name, Json('{')
                              .add("dtype", json_text(dtype_name(part.desc.dtype)))
                              .add("shape", json(part.desc.shape))
                              .add("xxh3_128", json_text(hex(part.high, part.low)))
                              .text());
  Json out('{');
  out.add("kind", json_text("checkpoint"))
      .add("state", json(manifest.state))
      .add("metadata", json(manifest.metadata))
      .add("model", json(*decode_graph(manifest.graph)))
      .add("tensors_bytes", n(manifest.tensors_bytes))
      .add("tensors", tensors.text())
      .add("files", files.text());
  if (manifest.base)
    out.add("base",
            Json('{').add("digest", json_text(manifest.base->hex())).add("tensors", base.text()).text());
  return out.text();
}

std::string inspect_graph(const fs::path& path, std::span<const std::byte>) {
  return Json('{')
      .add("kind", json_text("model"))
      .add("model", json(*decode_graph(flat_buffer(path).bytes())))
      .text();
}

std::string inspect_plan(const fs::path& path, std::span<const std::byte>) {
  const DecodedPlan decoded = decode_plan(flat_buffer(path).bytes());
  return Json('{')
      .add("kind", json_text("plan"))
      .add("plan", plan::to_json(decoded.problem, decoded.plan, false))
      .text();
}

std::string inspect_tokens(const fs::path& path, std::span<const std::byte> head) {
  data::TokenHeader header;
  std::memcpy(&header, head.data(), sizeof header);
  const auto set = data::Dataset::open(path, 1);
  return Json('{')
      .add("kind", json_text("tokens"))
      .add("vocabulary", n(int64_t{set->vocabulary()}))
      .add("tokens", n(set->tokens()))
      .add("token_bytes", n(uint64_t{header.token_bytes}))
      .text();
}

// A tensor that cairn has no type for: what the file says, and why.
Json unusable(const SafeTensor& tensor) {
  Json shape('['), out('{');
  for (uint64_t d : tensor.shape) shape.add(n(d));
  out.add("dtype", json_text(tensor.dtype))
      .add("shape", shape.text())
      .add("bytes", n(tensor.bytes))
      .add("unusable", json_text(tensor.unusable));
  return out;
}

// A matrix that the file has as several tensors.
Json json(const Quantised& matrix) {
  Json names('[');
  for (const std::string& name : matrix.tensors) names.add(json_text(name));
  Json out = fields({matrix.format, matrix.shape, 0});
  out.add("quantised", names.text());
  if (!matrix.note.empty()) out.add("note", json_text(matrix.note));
  return out;
}

std::string inspect_safetensors(const fs::path& path, std::span<const std::byte>) {
  const ModelFiles model(path);
  std::error_code failed;
  const bool several = fs::is_directory(path, failed);  // then a tensor says which file has it
  require(!failed, Code::kIo, "cannot read '", path.string(), "': ", failed.message());
  std::map<std::string, std::string> metadata;
  const QuantisedTensors quantised = find_quantised(model);
  std::set<std::string_view> parts;  // of quantised matrices, which stand for them
  Json tensors('{'), files('{');
  for (const auto& [name, matrix] : quantised) {
    parts.insert(matrix->tensors.begin(), matrix->tensors.end());
    tensors.add(name, json(*matrix).text());
  }
  for (const SafeTensors& file : model.files()) {
    const std::string name = file.path().filename().string();
    metadata.insert(file.metadata().begin(), file.metadata().end());
    files.add(name, Json('{').add("bytes", n(file.size())).text());
    for (const SafeTensor& tensor : file.tensors()) {
      if (parts.contains(tensor.name)) continue;
      Json row = tensor.usable() ? fields(tensor.desc) : unusable(tensor);
      row.add("offset", n(tensor.offset));
      if (several) row.add("file", json_text(name));
      tensors.add(tensor.name, row.text());
    }
  }
  Json out('{');
  out.add("kind", json_text("safetensors")).add("metadata", json(metadata));
  if (several) out.add("files", files.text());
  return out.add("tensors", tensors.text()).text();
}

std::string inspect_gguf(const fs::path& path, std::span<const std::byte>) { return gguf_json(Gguf(path)); }

std::string inspect_tokenizer(const fs::path& path, std::span<const std::byte>) {
  const auto tokenizer = data::load_bpe(path);
  return Json('{')
      .add("kind", json_text("tokenizer"))
      .add("type", json_text(tokenizer->kind()))
      .add("vocabulary", n(int64_t{tokenizer->vocabulary()}))
      .text();
}

bool is_manifest(std::span<const std::byte> b, uint64_t) { return has_identifier(b, kManifestIdentifier); }
bool is_graph(std::span<const std::byte> b, uint64_t) { return has_identifier(b, "CGRF"); }
bool is_plan(std::span<const std::byte> b, uint64_t) { return has_identifier(b, "CPLN"); }
bool is_tokens(std::span<const std::byte> b, uint64_t) {
  return b.size() >= sizeof(data::TokenHeader) &&
         std::memcmp(b.data(), data::kTokenMagic.data(), data::kTokenMagic.size()) == 0;
}
// A sentencepiece model begins with its list of pieces: field 1 of the message, a message itself.
bool is_tokenizer(std::span<const std::byte> b, uint64_t) { return b.size() > 2 && b[0] == std::byte{0x0A}; }

constexpr size_t kHeadBytes = 64;

struct Kind {
  bool (*is)(std::span<const std::byte> head, uint64_t file_bytes);
  std::string (*inspect)(const fs::path&, std::span<const std::byte>);
};
static_assert(kHeadBytes >= sizeof(data::TokenHeader));
constexpr Kind kKinds[] = {{is_manifest, inspect_manifest},  {is_graph, inspect_graph},
                           {is_plan, inspect_plan},          {is_tokens, inspect_tokens},
                           {looks_like_gguf, inspect_gguf},  {looks_like_safetensors, inspect_safetensors},
                           {is_tokenizer, inspect_tokenizer}};

// The checkpoint in a directory; nothing: there is none, but a model.
fs::path checkpoint_in(const fs::path& path) try {
  return newest_checkpoint(path);
} catch (const Error& error) {
  if (error.code() != Code::kNotFound || !is_model_directory(path)) throw;
  return {};
}

}  // namespace

std::string inspect(const fs::path& path) {
  std::error_code failed;
  fs::path file = path;
  if (fs::is_directory(path, failed)) {
    const fs::path directory = checkpoint_in(path);
    if (directory.empty()) return inspect_safetensors(path, {});
    const Checkpoint whole(directory);  // says so if the tensors do not belong to the manifest
    file = directory / kManifestName;
  }
  // A file's kind shows in its first bytes; the rest is read by who knows how much of it is needed.
  std::byte head[kHeadBytes];
  const InputFile opened(file);
  const std::span<const std::byte> bytes(head, std::min<uint64_t>(opened.size(), kHeadBytes));
  opened.read(0, head, bytes.size());
  for (const Kind& kind : kKinds)
    if (kind.is(bytes, opened.size())) return kind.inspect(file, bytes);
  const std::string foreign = foreign_file(bytes);
  require(foreign.empty(), Code::kCorruptFile, "'", path.string(), "' is ", foreign);
  fail(Code::kCorruptFile, "'", path.string(),
       "' is none of checkpoint, model, plan, token file, safetensors file, GGUF file or tokenizer");
}

}  // namespace cairn::io
