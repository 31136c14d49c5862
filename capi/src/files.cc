// Chapter 7: files.
#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>

#include "capi/src/graph.h"
#include "capi/src/session.h"
#include "capi/src/structs.h"
#include "capi/src/text.h"
#include "runtime/base/os/file.h"
#include "runtime/io/checkpoint.h"
#include "runtime/io/gguf/types.h"
#include "runtime/io/graph_file.h"
#include "runtime/io/inspect.h"
#include "runtime/io/safetensors/names.h"

using namespace cairn::capi;
using cairn::Code;
using cairn::require;
namespace io = cairn::io;

struct cairn_checkpoint : cairn::capi::Handle<cairn_checkpoint> {
  explicit cairn_checkpoint(cairn_instance* in) : instance(in) {}
  cairn::capi::Ref<cairn_instance> instance;
  std::string directory;
  std::unique_ptr<io::Checkpoint> checkpoint;
};

namespace {

// A path argument; "" is a mistake everywhere.
std::filesystem::path path_of(const char* path, std::string_view name) {
  not_null(path, name);
  require(path[0] != 0, Code::kInvalidArgument, "argument '", name, "' is empty");
  return path;
}

// The path of a file to write. Its directory is not made: a mistyped one would be found by nobody.
std::filesystem::path target_of(const char* path, std::string_view name) {
  std::filesystem::path to = path_of(path, name);
  const std::filesystem::path parent = to.has_parent_path() ? to.parent_path() : ".";
  std::error_code failed;
  require(std::filesystem::is_directory(parent, failed), Code::kIo, "cannot write '", to.string(),
          "': ", "there is no directory '", parent.string(), "'; make it first");
  return to;
}

// Decoders see bytes: the path joins the message here.
template <class Work>
void naming(const std::filesystem::path& path, Work&& work) {
  try {
    work();
  } catch (const cairn::Error& e) {
    if (e.code() != Code::kCorruptFile ||
        std::string_view(e.what()).find(path.string()) != std::string_view::npos)
      throw;
    cairn::fail(Code::kCorruptFile, "'", path.string(), "': ", e.what());
  } catch (const std::length_error&) {
    cairn::fail(Code::kCorruptFile, "'", path.string(), "': a length in it is beyond any memory");
  }
}

std::map<std::string, std::string> read_metadata(const cairn_metadata_t* metadata, size_t count) {
  array_not_null(metadata, count, "metadata");
  std::map<std::string, std::string> read;
  for (size_t i = 0; i < count; ++i) {
    require(metadata[i].key != nullptr && metadata[i].value != nullptr, Code::kInvalidArgument, "metadata[",
            i, "]: key or value is NULL");
    require(read.emplace(metadata[i].key, metadata[i].value).second, Code::kInvalidArgument, "metadata[", i,
            "]: the key '", metadata[i].key, "' is given twice");
  }
  return read;
}

io::Extras read_extras(const cairn_metadata_t* metadata, size_t metadata_count, const char* const* files,
                       size_t file_count) {
  array_not_null(files, file_count, "files");
  io::Extras extras;
  extras.metadata = read_metadata(metadata, metadata_count);
  for (size_t i = 0; i < file_count; ++i)
    extras.files.push_back(path_of(files[i], cairn::cat("files[", i, "]")));
  return extras;
}

// optional: rows without `theirs` are of parameters that the file is not asked for.
std::vector<io::NameRow> read_names(const cairn_name_t* names, size_t count, bool optional) {
  array_not_null(names, count, "names");
  std::vector<io::NameRow> rows;
  for (size_t i = 0; i < count; ++i) {
    require(names[i].ours != nullptr && (optional || names[i].theirs != nullptr), Code::kInvalidArgument,
            "names[", i, "]: ours or theirs is NULL");
    flag(names[i].transposed, cairn::cat("names[", i, "].transposed"));
    flag(names[i].stacked, cairn::cat("names[", i, "].stacked"));
    rows.push_back({.ours = names[i].ours,
                    .theirs = names[i].theirs != nullptr ? names[i].theirs : "",
                    .transposed = names[i].transposed != 0,
                    .kept = names[i].theirs == nullptr,
                    .stacked = names[i].stacked != 0});
  }
  return rows;
}

std::vector<io::LayoutRow> read_layouts(const cairn_layout_t* layouts, size_t count) {
  array_not_null(layouts, count, "options.layouts");
  std::vector<io::LayoutRow> rows;
  for (size_t i = 0; i < count; ++i) {
    require(layouts[i].ours != nullptr, Code::kInvalidArgument, "options.layouts[", i, "]: ours is NULL");
    rows.push_back({layouts[i].ours, layouts[i].groups, layouts[i].ways, layouts[i].unit, layouts[i].offset});
  }
  return rows;
}

// Whether a container is GGUF, whose metadata are given then and only then.
bool is_gguf(const char* container, const char* metadata, size_t layouts) {
  const std::string_view name = container == nullptr ? "safetensors" : container;
  require(name == "safetensors" || name == "gguf", Code::kInvalidArgument, "options.container is '", name,
          "'; wanted: safetensors or gguf");
  const bool gguf = name == "gguf";
  require(gguf == (metadata != nullptr) && (gguf || layouts == 0), Code::kInvalidArgument,
          "options.gguf_metadata and options.layouts go with the container gguf",
          gguf ? ", which needs metadata" : "");
  return gguf;
}

// By name; nothing: as it is. blocks: those of GGUF's block types, too.
std::optional<cairn::DType> dtype_of(const char* name, std::string_view what, bool blocks = false) {
  if (name == nullptr) return std::nullopt;
  const auto found =
      std::ranges::find_if(cairn::kDTypes, [&](cairn::DType t) { return cairn::dtype_name(t) == name; });
  const bool known = found != std::end(cairn::kDTypes) &&
                     (cairn::is_float(*found) || (blocks && io::gguf_block(*found) != nullptr));
  require(known, Code::kInvalidArgument, what, " is '", name,
          "'; weights are written as f32, bf16, f16 or f64", blocks ? ", q8_0 or q4_0" : "");
  return *found;
}

std::vector<io::MergeRow> read_merges(const cairn_merge_t* merges, size_t count) {
  array_not_null(merges, count, "options.merges");
  std::vector<io::MergeRow> rows;
  for (size_t i = 0; i < count; ++i) {
    const cairn_merge_t& from = merges[i];
    const std::string what = cairn::cat("options.merges[", i, "]");
    require(from.weight != nullptr && (from.a != nullptr) == (from.b != nullptr), Code::kInvalidArgument,
            what, ": weight is NULL, or one of a and b is");
    flag(from.kind, what + ".kind");
    reserved_zero(from.reserved, what);
    const auto text = [](const char* given) { return std::string(given != nullptr ? given : ""); };
    rows.push_back({from.weight, text(from.a), text(from.b), text(from.magnitude), from.scale,
                    from.kind == CAIRN_MERGE_TABLE, std::nullopt});
    if (from.format != nullptr) rows.back().format = cairn::dtype_from_name(from.format);
  }
  return rows;
}

// Looked up before anything is loaded, so that a failing call leaves the session as it was.
void check_parameters(const cairn::graph::Graph& graph, const io::Checkpoint& checkpoint,
                      std::string_view directory) {
  std::set<std::string_view> there;
  for (const io::Checkpoint::TensorInfo& tensor : checkpoint.tensors()) there.insert(tensor.name);
  if (checkpoint.base() != nullptr)
    for (const auto& part : checkpoint.base()->parts) there.insert(part.name);
  for (const cairn::graph::Value& value : graph.values())
    require(value.kind != cairn::graph::ValueKind::kParameter || there.contains(value.name), Code::kNotFound,
            "the checkpoint '", directory, "' has no parameter '", value.name, "'");
}

}  // namespace

cairn_status_t cairn_stepper_save(cairn_stepper_t* stepper, const char* directory,
                                  const cairn_metadata_t* metadata, size_t metadata_count,
                                  const char* const* files, size_t file_count, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(stepper, "stepper");
    const std::filesystem::path path = path_of(directory, "directory");
    io::save(*stepper->stepper, path, read_extras(metadata, metadata_count, files, file_count));
  });
}

cairn_status_t cairn_stepper_save_as(cairn_stepper_t* stepper, const char* directory,
                                     const cairn_save_options_t* options, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(stepper, "stepper");
    const std::filesystem::path path = path_of(directory, "directory");
    const auto given = read_struct(options, "options");
    flag(given.without_frozen, "options.without_frozen");
    reserved_zero(given.reserved, "options");
    io::Extras extras = read_extras(given.metadata, given.metadata_count, given.files, given.file_count);
    extras.without_frozen = given.without_frozen != 0;
    io::save(*stepper->stepper, path, extras);
  });
}

cairn_status_t cairn_checkpoint_open(cairn_instance_t* instance, const char* directory,
                                     cairn_checkpoint_t** out_checkpoint, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(instance, "instance");
    const std::filesystem::path path = path_of(directory, "directory");
    not_null(out_checkpoint, "out_checkpoint");
    auto made = std::make_unique<cairn_checkpoint>(instance);
    const std::filesystem::path found = io::newest_checkpoint(path);
    made->directory = found.string();
    naming(found, [&] { made->checkpoint = std::make_unique<io::Checkpoint>(found); });
    *out_checkpoint = made.release();
  });
}
void cairn_checkpoint_retain(cairn_checkpoint_t* checkpoint) { retain(checkpoint); }
void cairn_checkpoint_release(cairn_checkpoint_t* checkpoint) { release(checkpoint); }

cairn_status_t cairn_checkpoint_remove(cairn_instance_t* instance, const char* directory,
                                       cairn_error_t* error) {
  return guard(error, [&] {
    not_null(instance, "instance");
    io::remove_checkpoint(path_of(directory, "directory"));
  });
}

const char* cairn_checkpoint_directory(const cairn_checkpoint_t* checkpoint) {
  return checkpoint == nullptr ? "" : checkpoint->directory.c_str();
}

const char* cairn_checkpoint_metadata(const cairn_checkpoint_t* checkpoint, const char* key) {
  if (checkpoint == nullptr || key == nullptr) return nullptr;
  for (const auto& [name, value] : checkpoint->checkpoint->metadata())
    if (std::string_view(name) == key) return value.c_str();
  return nullptr;
}

cairn_status_t cairn_checkpoint_verify(const cairn_checkpoint_t* checkpoint, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(checkpoint, "checkpoint");
    naming(checkpoint->directory, [&] { checkpoint->checkpoint->verify(); });
  });
}

cairn_status_t cairn_checkpoint_graph(const cairn_checkpoint_t* checkpoint, cairn_graph_t** out_graph,
                                      cairn_error_t* error) {
  return guard(error, [&] {
    not_null(checkpoint, "checkpoint");
    not_null(out_graph, "out_graph");
    auto made = std::make_unique<cairn_graph>(checkpoint->instance.get());
    made->building = checkpoint->checkpoint->graph_to_bind();
    made->graph = made->building != nullptr ? made->building : checkpoint->checkpoint->graph();
    *out_graph = made.release();
  });
}

cairn_status_t cairn_stepper_restore(cairn_stepper_t* stepper, const cairn_checkpoint_t* checkpoint,
                                     cairn_error_t* error) {
  return guard(error, [&] {
    not_null(stepper, "stepper");
    not_null(checkpoint, "checkpoint");
    checkpoint->checkpoint->restore(*stepper->stepper);
  });
}

namespace {

cairn_status_t load(cairn_session_t* session, const cairn_checkpoint_t* checkpoint, bool averages,
                    cairn_error_t* error) {
  return guard(error, [&] {
    not_null(session, "session");
    not_null(checkpoint, "checkpoint");
    cairn::engine::Session& s = *session->session;
    check_parameters(*s.plan().joint->forward, *checkpoint->checkpoint, checkpoint->directory);
    checkpoint->checkpoint->load_parameters(s, averages);
  });
}

}  // namespace

cairn_status_t cairn_session_load(cairn_session_t* session, const cairn_checkpoint_t* checkpoint,
                                  cairn_error_t* error) {
  return load(session, checkpoint, false, error);
}
cairn_status_t cairn_session_load_ema(cairn_session_t* session, const cairn_checkpoint_t* checkpoint,
                                      cairn_error_t* error) {
  return load(session, checkpoint, true, error);
}

cairn_status_t cairn_session_export(cairn_session_t* session, const char* path, const cairn_name_t* names,
                                    size_t name_count, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(session, "session");
    const std::filesystem::path to = target_of(path, "path");
    io::export_safetensors(*session->session, read_names(names, name_count, true), to);
  });
}

cairn_status_t cairn_session_export_as(cairn_session_t* session, const char* path, const cairn_name_t* names,
                                       size_t name_count, const cairn_export_options_t* options,
                                       cairn_error_t* error) {
  return guard(error, [&] {
    not_null(session, "session");
    const std::filesystem::path to = target_of(path, "path");
    const auto given = read_struct(options, "options");
    flag(given.directory, "options.directory");
    flag(given.dequantise, "options.dequantise");
    reserved_zero(given.reserved, "options");
    reserved_zero(given.reserved2, "options");
    require(given.file_name == nullptr ||
                (given.directory != 0 && given.shard_bytes == 0 &&
                 std::string_view(given.file_name).find('/') == std::string::npos && given.file_name[0] != 0),
            Code::kInvalidArgument,
            "options.file_name is the name of the one file of a directory, without shard_bytes");
    array_not_null(given.files, given.file_count, "options.files");
    const bool gguf = is_gguf(given.container, given.gguf_metadata, given.layout_count);
    io::ExportOptions as{.dtype = dtype_of(given.dtype, "options.dtype", gguf),
                         .frozen_dtype = dtype_of(given.frozen_dtype, "options.frozen_dtype"),
                         .directory = given.directory != 0,
                         .shard_bytes = given.shard_bytes,
                         .files = {},
                         .file_name = given.file_name != nullptr ? given.file_name : "",
                         .metadata = read_metadata(given.metadata, given.metadata_count),
                         .merges = read_merges(given.merges, given.merge_count),
                         .dequantise = given.dequantise != 0,
                         .difference = given.out_difference,
                         .layouts = read_layouts(given.layouts, given.layout_count),
                         .gguf = gguf ? given.gguf_metadata : ""};
    for (size_t i = 0; i < given.file_count; ++i)
      as.files.push_back(path_of(given.files[i], cairn::cat("options.files[", i, "]")));
    io::export_safetensors(*session->session, read_names(names, name_count, true), to, as);
  });
}

cairn_status_t cairn_session_import(cairn_session_t* session, const char* path, const cairn_name_t* names,
                                    size_t name_count, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(session, "session");
    const std::filesystem::path from = path_of(path, "path");
    io::import_safetensors(*session->session, read_names(names, name_count, true), from);
  });
}

cairn_status_t cairn_session_import_as(cairn_session_t* session, const char* path, const cairn_name_t* names,
                                       size_t name_count, const cairn_import_options_t* options,
                                       cairn_error_t* error) {
  return guard(error, [&] {
    not_null(session, "session");
    const std::filesystem::path from = path_of(path, "path");
    const auto given = read_struct(options, "options");
    io::import_safetensors(*session->session, read_names(names, name_count, true), from,
                           read_layouts(given.layouts, given.layout_count));
  });
}

cairn_status_t cairn_graph_save(const cairn_graph_t* graph, const char* path, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(graph, "graph");
    const std::filesystem::path to = target_of(path, "path");
    cairn::write_file_durably(to, io::encode_graph(*graph->graph));
  });
}

cairn_status_t cairn_graph_load(cairn_instance_t* instance, const char* path, cairn_graph_t** out_graph,
                                cairn_error_t* error) {
  return guard(error, [&] {
    not_null(instance, "instance");
    const std::filesystem::path from = path_of(path, "path");
    not_null(out_graph, "out_graph");
    const cairn::FileContent file(from);
    auto made = std::make_unique<cairn_graph>(instance);
    naming(from, [&] { made->building = io::decode_graph(file.bytes()); });
    made->graph = made->building;
    *out_graph = made.release();
  });
}

cairn_status_t cairn_inspect(const cairn_instance_t* instance, const char* path, cairn_text_t** out_json,
                             cairn_error_t* error) {
  return guard(error, [&] {
    not_null(instance, "instance");
    const std::filesystem::path at = path_of(path, "path");
    not_null(out_json, "out_json");
    *out_json = std::make_unique<cairn_text>(io::inspect(at)).release();
  });
}
