// Parameters of a session into a safetensors file, or into the directory of a model.
#include <algorithm>
#include <cstdio>
#include <set>

#include "runtime/base/checked.h"
#include "runtime/io/convert.h"
#include "runtime/io/json.h"
#include "runtime/io/manifest.h"
#include "runtime/io/safetensors/mapped.h"
#include "runtime/io/safetensors/model_files.h"

namespace cairn::io {
namespace fs = std::filesystem;
namespace {

void store(std::byte* to, DType type, int64_t index, double value) {
  const auto put = [&](auto number) {
    std::memcpy(to + index * static_cast<int64_t>(sizeof number), &number, sizeof number);
  };
  if (type == DType::kF64) return put(value);
  const auto narrow = static_cast<float>(value);
  if (type == DType::kF32) return put(narrow);
  type == DType::kBF16 ? put(to_bf16(narrow).bits) : put(to_f16(narrow).bits);
}

// One of the tensors as the file has it: transposed, rounded. It has complete rows, and so complete blocks of a format.
void read_for_file(const engine::Session& session, const Mapped& m, size_t number, DType type,
                   std::byte* to) {
  const int64_t width = dtype_bytes(m.desc.dtype), elements = m.part.elements();
  const int64_t columns = m.part.last(), rows = elements / columns;
  const int64_t first = static_cast<int64_t>(number) * elements, end = first + elements;
  const bool as_it_is = type == m.desc.dtype && !m.transposed;
  const Piece piece = as_it_is ? nullptr : make_piece();
  for (int64_t at = first; at < end; at += kPieceBytes / width) {
    const int64_t n = std::min(kPieceBytes / width, end - at);
    std::byte* const ours = as_it_is ? to + (at - first) * width : piece.get();
    if (m.encoded)
      session.read_floats(m.value, at, {reinterpret_cast<float*>(ours), static_cast<size_t>(n)});
    else
      session.read_saved(m.value, at * width, ours, n * width);
    if (as_it_is) continue;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t e = at + i - first;
      store(to, type, m.transposed ? e % columns * rows + e / columns : e, load_float(ours, m.desc.dtype, i));
    }
  }
}

std::vector<SafeTensorSource> sources_of(const engine::Session& session, const std::vector<NameRow>& names,
                                         const ExportOptions& options) {
  std::vector<SafeTensorSource> sources;
  for (const Mapped& m : map_parameters(session, names)) {
    TensorDesc desc{m.desc.dtype, m.shape_there()};
    if (options.dtype) desc.dtype = *options.dtype;
    if (m.frozen && !m.encoded && options.frozen_dtype) desc.dtype = *options.frozen_dtype;
    const auto shared = std::make_shared<const Mapped>(m);
    for (size_t i = 0; i < m.theirs.size(); ++i)
      sources.push_back({m.theirs[i], desc, [&session, shared, i, type = desc.dtype](void* to) {
                           read_for_file(session, *shared, i, type, static_cast<std::byte*>(to));
                         }});
  }
  return sources;
}

std::vector<std::span<const SafeTensorSource>> shards_of(std::span<const SafeTensorSource> sources,
                                                         uint64_t most) {
  std::vector<std::span<const SafeTensorSource>> shards;
  size_t first = 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto here = static_cast<uint64_t>(sources[i].desc.bytes());
    if (most > 0 && i > first && bytes + here > most) {
      shards.push_back(sources.subspan(first, i - first));
      first = i;
      bytes = 0;
    }
    bytes += here;
  }
  shards.push_back(sources.subspan(first));
  return shards;
}

void copy(const fs::path& path, DurableDirectory& target) {
  const InputFile from(path);
  const auto file = target.create(path.filename().string());
  const Piece piece = make_piece();
  for (uint64_t at = 0; at < from.size(); at += kPieceBytes) {
    const uint64_t n = std::min<uint64_t>(kPieceBytes, from.size() - at);
    from.read(at, piece.get(), n);
    file->append(piece.get(), n);
  }
  file->close();
}

// What a write of the same directory that died has left: files of these names.
OwnFiles written_before() {
  return [](int directory, const fs::path& path, bool abandoned) {
    std::vector<std::string> entries = entries_of(directory, path);
    require(abandoned || entries.empty(), Code::kInvalidArgument, "cannot write a model to '", path.string(),
            "': it holds other files; name another directory");
    return entries;
  };
}

void write_directory(const fs::path& path, std::span<const SafeTensorSource> sources,
                     const ExportOptions& options) {
  const std::map<std::string, std::string> metadata = {{"format", "pt"}};
  DurableDirectory target(path, written_before());
  for (const fs::path& file : options.files) copy(file, target);
  const auto shards = shards_of(sources, options.shard_bytes);
  Json map('{');
  std::set<std::string_view> known;
  uint64_t total = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    char name[64] = {};
    std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, shards.size());
    write_safetensors(target, shards.size() == 1 ? kModelName : name, shards[i], metadata);
    for (const SafeTensorSource& tensor : shards[i]) {
      require(known.insert(tensor.name).second, Code::kInvalidArgument, "cannot write '", path.string(),
              "': two tensors are named '", tensor.name, "'");
      map.add(tensor.name, json_text(name));
      total += static_cast<uint64_t>(tensor.desc.bytes());
    }
  }
  if (shards.size() > 1) {
    const std::string index = Json('{')
                                  .add("metadata", Json('{').add("total_size", std::to_string(total)).text())
                                  .add("weight_map", map.text())
                                  .text();
    target.write(kIndexName, std::as_bytes(std::span(index)));
  }
  target.commit();
}

}  // namespace

void export_safetensors(const engine::Session& session, const std::vector<NameRow>& names,
                        const fs::path& path, const ExportOptions& options) {
  const std::vector<SafeTensorSource> sources = sources_of(session, names, options);
  options.directory ? write_directory(path, sources, options)
                    : write_safetensors(path, sources, {{"format", "pt"}});
}

}  // namespace cairn::io
