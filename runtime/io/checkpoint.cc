#include "runtime/io/checkpoint.h"

#include <algorithm>
#include <charconv>

#include "runtime/base/os/file.h"
#include "runtime/formats/codecs.h"
#include "runtime/io/digest.h"
#include "runtime/io/envelope.h"
#include "runtime/io/graph_file.h"
#include "runtime/io/manifest.h"
#include "runtime/io/overwrite.h"

namespace cairn::io {
namespace fs = std::filesystem;

namespace {
// Of a piece.
int64_t blocks_of(const TensorDesc& desc) { return kPieceBytes / format(desc.dtype).block_bytes(); }
}  // namespace

struct Checkpoint::Impl {
  fs::path directory;
  Manifest manifest;
  std::shared_ptr<graph::Graph> graph;
  InputFile tensors;

  Impl(fs::path from, Manifest decoded)
      : directory(std::move(from)),
        manifest(std::move(decoded)),
        graph(decode_graph(manifest.graph)),
        tensors(directory / kTensorsName) {
    require(tensors.size() == manifest.tensors_bytes, Code::kCorruptFile, "'", tensors.path().string(),
            "' has ", tensors.size(), " bytes, not ", manifest.tensors_bytes);
    if (manifest.files)
      for (const Extra& extra : *manifest.files) verify(extra);
  }

  // Calls each(offset in the tensor, bytes) for a tensor in pieces of full blocks, then compares the digest.
  template <class Each>
  void for_pieces(const TensorInfo& tensor, Digest& digest, std::byte* piece, const Each& each) const {
    const auto size = static_cast<uint64_t>(tensor.desc.bytes());
    const auto whole =
        static_cast<uint64_t>(blocks_of(tensor.desc) * format(tensor.desc.dtype).block_bytes());
    digest.restart();
    for (uint64_t at = 0; at < size; at += whole) {
      const std::span<std::byte> bytes(piece, std::min(whole, size - at));
      tensors.read(tensor.offset + at, bytes.data(), bytes.size());
      digest.add(bytes);
      each(static_cast<int64_t>(at), bytes);
    }
    if (!digest.is(tensor.digest_low,
                   tensor.digest_high))  // no words, and no memory for them, where it holds
      fail(Code::kCorruptFile, "tensor '", tensor.name, "' in '", tensors.path().string(),
           "' is damaged: its digest differs");
  }
  void verify(const TensorInfo& tensor, Digest& digest, std::byte* piece) const {
    for_pieces(tensor, digest, piece, [](int64_t, std::span<const std::byte>) {});
  }
  void verify(const Extra& extra) const {
    std::error_code failed;
    require(fs::exists(directory / extra.name, failed) || failed, Code::kCorruptFile, "'", directory.string(),
            "' lacks its file '", extra.name, "'");
    const InputFile file(directory / extra.name);
    require(file.size() == extra.bytes, Code::kCorruptFile, "'", file.path().string(), "' has ", file.size(),
            " bytes, not ", extra.bytes);
    Digest digest;
    const Piece piece = make_piece();
    for (uint64_t at = 0; at < extra.bytes; at += kPieceBytes) {
      const std::span<std::byte> bytes(piece.get(), std::min<uint64_t>(kPieceBytes, extra.bytes - at));
      file.read(at, bytes.data(), bytes.size());
      digest.add(bytes);
    }
    require(digest.is(extra.digest_low, extra.digest_high), Code::kCorruptFile, "'", file.path().string(),
            "' is damaged: its digest differs");
  }
  // Padding carries nothing, but a flipped bit in it is still a damaged file.
  void verify_padding() const {
    std::byte padding[kAlignment];
    for (size_t i = 0; i < manifest.tensors.size(); ++i) {
      const TensorInfo& tensor = manifest.tensors[i];
      const uint64_t begin = tensor.offset + static_cast<uint64_t>(tensor.desc.bytes());
      const uint64_t end =
          i + 1 < manifest.tensors.size() ? manifest.tensors[i + 1].offset : manifest.tensors_bytes;
      tensors.read(begin, padding, end - begin);
      for (uint64_t at = 0; at < end - begin; ++at)
        require(padding[at] == std::byte{0}, Code::kCorruptFile, "'", tensors.path().string(),
                "' is damaged after tensor '", tensor.name, "'");
    }
  }
  const TensorInfo* find(std::string_view name) const {
    for (const TensorInfo& tensor : manifest.tensors)
      if (tensor.name == name) return &tensor;
    return nullptr;
  }
};

Checkpoint::Checkpoint(const fs::path& directory) {
  std::error_code failed;
  require(fs::exists(directory, failed), Code::kNotFound, "there is no checkpoint '", directory.string(),
          "'");
  const FileContent file(directory / kManifestName, kMaxFlatBufferBytes);
  impl_ = std::make_unique<Impl>(directory, decode_manifest(file.bytes()));
}

Checkpoint::~Checkpoint() = default;

std::shared_ptr<const graph::Graph> Checkpoint::graph() const { return impl_->graph; }
std::shared_ptr<graph::Graph> Checkpoint::graph_to_bind() const {
  return impl_->graph->waits_for_customs() ? decode_graph(impl_->manifest.graph) : nullptr;
}
const engine::BaseDigest* Checkpoint::base() const {
  return impl_->manifest.base ? &*impl_->manifest.base : nullptr;
}
const step::State& Checkpoint::state() const { return impl_->manifest.state; }
const std::vector<Checkpoint::TensorInfo>& Checkpoint::tensors() const { return impl_->manifest.tensors; }
const std::map<std::string, std::string>& Checkpoint::metadata() const { return impl_->manifest.metadata; }

void Checkpoint::read(const TensorInfo& tensor, void* to) const {
  const TensorInfo* known = impl_->find(tensor.name);
  require(known != nullptr && known->desc == tensor.desc && known->offset == tensor.offset,
          Code::kInvalidArgument, "tensor '", tensor.name, "' is not of this checkpoint");
  const auto bytes = static_cast<size_t>(known->desc.bytes());
  impl_->tensors.read(known->offset, to, bytes);
  Digest digest;
  digest.add({static_cast<const std::byte*>(to), bytes});
  require(digest.is(known->digest_low, known->digest_high), Code::kCorruptFile, "tensor '", known->name,
          "' in '", impl_->tensors.path().string(), "' is damaged: its digest differs");
}

void Checkpoint::verify() const {
  Digest digest;
  const Piece piece = make_piece();
  for (const TensorInfo& tensor : tensors()) impl_->verify(tensor, digest, piece.get());
  impl_->verify_padding();
}

namespace {

// Inputs of one model for micro-batches of two sizes: their first dimensions differ by one factor.
class Batches {
 public:
  bool may_differ(const TensorDesc& ours, const TensorDesc& theirs) {
    const Shape &a = ours.shape, &b = theirs.shape;
    if (ours.dtype != theirs.dtype || a.rank != b.rank || a.rank == 0 ||
        !std::equal(a.span().begin() + 1, a.span().end(), b.span().begin() + 1))
      return false;
    if (ours_ == 0) ours_ = a[0], theirs_ = b[0];
    return checked_mul(ours_, b[0]) == checked_mul(theirs_, a[0]);
  }

 private:
  int64_t ours_ = 0, theirs_ = 0;
};

// Attributes but the sizes of what is made, which follow the micro-batch's.
bool same_attributes(const Attrs& a, const Attrs& b) {
  Attrs ours = a, theirs = b;
  for (Attrs* attrs : {&ours, &theirs})
    for (const char* name : {"shape", "custom"})  // and an op that the host gave is told by its name
      if (attrs->has(name)) attrs->set(name, std::vector<int64_t>());
  return ours == theirs;
}

// The first thing two models do not share, for people; empty where they are one model, for micro-batches that may
// be of another size.
std::string difference(const graph::Graph& ours, const graph::Graph& theirs) {
  Batches batches;
  for (size_t i = 0; i < std::min(ours.values().size(), theirs.values().size()); ++i) {
    const graph::Value &a = ours.values()[i], &b = theirs.values()[i];
    if (a.name != b.name) return cat("value ", i, " is '", a.name, "', in the checkpoint '", b.name, "'");
    const bool follows = a.kind == graph::ValueKind::kActivation && a.desc.dtype == b.desc.dtype;
    const bool input = a.kind == graph::ValueKind::kInput && batches.may_differ(a.desc, b.desc);
    if (!(a.desc == b.desc) && !follows && !input)
      return cat("'", a.name, "' is ", to_string(a.desc), ", in the checkpoint ", to_string(b.desc));
    if (a.kind != b.kind || a.parameter.frozen != b.parameter.frozen ||
        a.parameter.decay != b.parameter.decay)
      return cat("'", a.name, "' is another kind of value in the checkpoint");
  }
  if (ours.values().size() != theirs.values().size())
    return cat("the model has ", ours.values().size(), " values, in the checkpoint ", theirs.values().size());
  for (size_t i = 0; i < std::min(ours.regions().size(), theirs.regions().size()); ++i) {
    const graph::Region &a = ours.regions()[i], &b = theirs.regions()[i];
    if (a.name != b.name || a.policy != b.policy || a.offload_tier != b.offload_tier)
      return cat("region '", a.name, "' has another name or policy in the checkpoint ('", b.name, "')");
  }
  for (size_t i = 0; i < std::min(ours.ops().size(), theirs.ops().size()); ++i) {
    const graph::Op &a = ours.ops()[i], &b = theirs.ops()[i];
    if (op_name(ours, a) != op_name(theirs, b))
      return cat("op '", a.name, "' is ", op_name(ours, a), ", in the checkpoint ", op_name(theirs, b));
    if (a.in != b.in || !same_attributes(a.attrs, b.attrs) || a.region != b.region)
      return cat("op '", a.name, "' has another kind, other inputs, attributes or region in the checkpoint");
  }
  if (ours.ops().size() != theirs.ops().size() || ours.regions().size() != theirs.regions().size() ||
      ours.loss() != theirs.loss() || ours.weight() != theirs.weight() || ours.outputs() != theirs.outputs())
    return "loss, weight, outputs, ops or regions differ";
  return "";
}

// Digests number the ops that the host gave, and do not name them.
bool same_customs(const graph::Graph& ours, const graph::Graph& theirs) {
  return std::ranges::equal(ours.ops(), theirs.ops(), [&](const graph::Op& a, const graph::Op& b) {
    return op_name(ours, a) == op_name(theirs, b);
  });
}

// Whether only what a parameter is stored as differs.
bool converts(const TensorDesc& stored, const TensorDesc& wanted) {
  const auto known = [](DType t) { return static_cast<bool>(formats::codec(t)); };
  return stored.shape == wanted.shape && known(stored.dtype) && known(wanted.dtype) &&
         formats::codec(wanted.dtype).scope == formats::Scope::kBlock;
}

// The options of a plan in which a tensor has the format that it is stored in.
std::string remedy(const Checkpoint::TensorInfo& stored) {
  const std::string_view name = dtype_name(stored.desc.dtype);
  if (format(stored.desc.dtype).trains) return cat("parameters in ", name);
  return cat("the format '", stored.name, '=', name, "'");
}

// Writes a piece of a stored tensor into a value of another type. at: the piece's first byte in the tensor of `type`. wide: a
// buffer that is used again.
void write_converted(engine::Session& session, int32_t value, DType type, int64_t at,
                     std::span<const std::byte> bytes, std::vector<float>& wide) {
  const Format& row = format(type);
  const int64_t first = at / row.block_bytes() * row.block, elements = session.saved(value).shape.elements();
  wide.resize(static_cast<size_t>(
      std::min(static_cast<int64_t>(bytes.size()) / row.block_bytes() * row.block, elements - first)));
  formats::codec(type).decode(bytes.data(), static_cast<int64_t>(wide.size()), wide.data());
  session.write_floats(value, first, wide);
}

}  // namespace

void Checkpoint::restore(step::Stepper& stepper) const {
  engine::Session& session = stepper.session();
  const graph::JointGraph& joint = *session.plan().joint;
  if (joint.forward->digest() != impl_->graph->digest() || !same_customs(*joint.forward, *impl_->graph)) {
    const std::string other = difference(*joint.forward, *impl_->graph);
    require(other.empty(), Code::kInvalidArgument, "the checkpoint '", impl_->directory.string(),
            "' is of another model: ", other);
  }
  stepper.check(state());  // another optimizer says more than what it keeps
  const std::vector<Slot> slots = slots_of(session, state().micro > 0, base() != nullptr);
  const std::vector<TensorInfo>& stored = tensors();
  for (size_t i = 0; i < std::max(slots.size(), stored.size()); ++i) {
    require(i < slots.size(), Code::kInvalidArgument, "the checkpoint holds '",
            i < stored.size() ? stored[i].name : "", "', which this session does not keep");
    require(i < stored.size() && stored[i].name == slots[i].name, Code::kInvalidArgument,
            "the checkpoint does not hold '", slots[i].name, "', which this session keeps");
    const TensorDesc desc = session.saved(slots[i].value);
    require(stored[i].desc == desc, Code::kInvalidArgument, "'", slots[i].name, "' is ", to_string(desc),
            " in the session and ", to_string(stored[i].desc), " in the checkpoint",
            converts(stored[i].desc, desc)
                ? cat("; plan with ", remedy(stored[i]), ", or begin with the checkpoint's parameters alone")
                : "");
  }
  if (base() != nullptr) require_base(session, *base(), impl_->directory.string());
  // Everything is verified before anything is written: a damaged file leaves the session as it was.
  verify();
  Digest digest;
  const Piece piece = make_piece();
  stepper.restore(state());
  overwrite(session, [&] {
    for (size_t i = 0; i < slots.size(); ++i)
      impl_->for_pieces(stored[i], digest, piece.get(), [&](int64_t at, std::span<const std::byte> bytes) {
        session.write_saved(slots[i].value, at, bytes.data(), static_cast<int64_t>(bytes.size()));
      });
  });
}

std::vector<std::string> Checkpoint::load_parameters(engine::Session& session, bool averages) const {
  const auto is_average = [](const TensorInfo& tensor) { return tensor.name.ends_with("/ema"); };
  require(!averages || std::ranges::any_of(tensors(), is_average), Code::kNotFound, "the checkpoint '",
          impl_->directory.string(), "' has no averages of its parameters: it was trained without ema");
  const graph::JointGraph& joint = *session.plan().joint;
  std::vector<std::string> missing;
  std::vector<std::pair<int32_t, const TensorInfo*>> found;
  std::vector<float> wide;
  Digest digest;
  const Piece piece = make_piece();
  for (const graph::Resident& resident : joint.residents) {
    // Of what is always saved, optimizer state is no part of a model.
    if (resident.saved != graph::Saved::kAlways || !graph::kind(resident.role).is(graph::WRITTEN)) continue;
    const std::string& name = resident.name;
    if (base() != nullptr && require_part(session, resident.value, *base(), impl_->directory.string()))
      continue;
    const TensorInfo* tensor = averages ? impl_->find(cat(name, "/ema")) : nullptr;
    if (tensor == nullptr) tensor = impl_->find(name);
    if (tensor == nullptr) {
      missing.push_back(name);
      continue;
    }
    const TensorDesc desc = session.saved(resident.value);
    require(tensor->desc == desc || converts(tensor->desc, desc), Code::kInvalidArgument,
            graph::kind(resident.role).name, " '", name, "' is ", to_string(desc), " in the session and ",
            to_string(tensor->desc), " in the checkpoint");
    impl_->verify(*tensor, digest, piece.get());
    found.emplace_back(resident.value, tensor);
    if (tensor->desc != desc)  // all memory is there before anything is written
      wide.reserve(static_cast<size_t>(std::min(blocks_of(tensor->desc) * format(tensor->desc.dtype).block,
                                                tensor->desc.shape.elements())));
  }
  overwrite(session, [&] {
    for (const auto& [value, tensor] : found)
      impl_->for_pieces(*tensor, digest, piece.get(),
                        [&, to = value, from = tensor](int64_t at, std::span<const std::byte> bytes) {
                          if (from->desc == session.saved(to))
                            session.write_saved(to, at, bytes.data(), static_cast<int64_t>(bytes.size()));
                          else
                            write_converted(session, to, from->desc.dtype, at, bytes, wide);
                        });
  });
  return missing;
}

fs::path newest_checkpoint(const fs::path& directory) {
  std::error_code failed;
  const fs::file_status status = fs::status(directory, failed);
  require(!fs::exists(status) || fs::is_directory(status), Code::kNotFound, "'", directory.string(),
          "' is not a directory");
  require(fs::is_directory(status), Code::kNotFound, "there is no directory '", directory.string(), "'");
  if (fs::exists(directory / kManifestName, failed)) return directory;
  std::vector<std::pair<uint64_t, fs::path>> steps;
  static constexpr std::string_view kPrefix = "step-";
  for (const std::string& name : entries_of(open_directory(directory).get(), directory)) {
    uint64_t step = 0;
    if (!name.starts_with(kPrefix)) continue;
    const char* last = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + kPrefix.size(), last, step);
    if (parsed.ec == std::errc() && parsed.ptr == last) steps.emplace_back(step, directory / name);
  }
  std::sort(steps.rbegin(), steps.rend());
  std::string why;
  for (const auto& [step, path] : steps) {
    try {
      const Checkpoint complete(path);
      return path;
    } catch (const Error& error) {
      if (error.code() == Code::kOutOfMemory) throw;  // says nothing of the checkpoint
      why += cat("; ", path.filename().string(), ": ", error.what());
    }
  }
  fail(Code::kNotFound, "'", directory.string(), "' is no checkpoint (no ", kManifestName,
       ") and has no complete 'step-N' below it", why);
}

}  // namespace cairn::io
