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

io::Extras read_extras(const cairn_metadata_t* metadata, size_t metadata_count, const char* const* files,
                       size_t file_count) {
  array_not_null(metadata, metadata_count, "metadata");
  array_not_null(files, file_count, "files");
  io::Extras extras;
  for (size_t i = 0; i < metadata_count; ++i) {
    require(metadata[i].key != nullptr && metadata[i].value != nullptr, Code::kInvalidArgument, "metadata[",
            i, "]: key or value is NULL");
    require(extras.metadata.emplace(metadata[i].key, metadata[i].value).second, Code::kInvalidArgument,
            "metadata[", i, "]: the key '", metadata[i].key, "' is given twice");
  }
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

// By name; nothing: as it is.
std::optional<cairn::DType> dtype_of(const char* name, std::string_view what) {
  if (name == nullptr) return std::nullopt;
  const auto found =
      std::ranges::find_if(cairn::kDTypes, [&](cairn::DType t) { return cairn::dtype_name(t) == name; });
  require(found != std::end(cairn::kDTypes) && cairn::is_float(*found), Code::kInvalidArgument, what, " is '",
          name, "'; weights are written as f32, bf16, f16 or f64");
  return *found;
}

// Looked up before anything is loaded, so that a failing call leaves the session as it was.
void check_parameters(const cairn::graph::Graph& graph, const io::Checkpoint& checkpoint,
                      std::string_view directory) {
  std::set<std::string_view> there;
  for (const io::Checkpoint::TensorInfo& tensor : checkpoint.tensors()) there.insert(tensor.name);
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

cairn_status_t cairn_session_load(cairn_session_t* session, const cairn_checkpoint_t* checkpoint,
                                  cairn_error_t* error) {
  return guard(error, [&] {
    not_null(session, "session");
    not_null(checkpoint, "checkpoint");
    cairn::engine::Session& s = *session->session;
    check_parameters(*s.plan().joint->forward, *checkpoint->checkpoint, checkpoint->directory);
    checkpoint->checkpoint->load_parameters(s);
  });
}

cairn_status_t cairn_session_export(cairn_session_t* session, const char* path, const cairn_name_t* names,
                                    size_t name_count, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(session, "session");
    const std::filesystem::path to = target_of(path, "path");
    io::export_safetensors(*session->session, read_names(names, name_count, false), to);
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
    reserved_zero(given.reserved, "options");
    array_not_null(given.files, given.file_count, "options.files");
    io::ExportOptions as{.dtype = dtype_of(given.dtype, "options.dtype"),
                         .frozen_dtype = dtype_of(given.frozen_dtype, "options.frozen_dtype"),
                         .directory = given.directory != 0,
                         .shard_bytes = given.shard_bytes,
                         .files = {}};
    for (size_t i = 0; i < given.file_count; ++i)
      as.files.push_back(path_of(given.files[i], cairn::cat("options.files[", i, "]")));
    io::export_safetensors(*session->session, read_names(names, name_count, false), to, as);
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
