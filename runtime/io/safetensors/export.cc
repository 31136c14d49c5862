// Parameters of a session into a safetensors file, into the directory of a model, or into a GGUF file.
#include <algorithm>
#include <cstdio>
#include <set>

#include "runtime/base/checked.h"
#include "runtime/formats/codecs.h"
#include "runtime/io/convert.h"
#include "runtime/io/gguf/write.h"
#include "runtime/io/json.h"
#include "runtime/io/manifest.h"
#include "runtime/io/safetensors/mapped.h"
#include "runtime/io/safetensors/merge.h"
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
      store(to, type, m.transposed ? m.place_there(e) : e, load_float(ours, m.desc.dtype, i));
    }
  }
}

std::vector<SafeTensorSource> sources_of(const engine::Session& session, const std::vector<NameRow>& names,
                                         const ExportOptions& options) {
  std::vector<SafeTensorSource> sources;
  const auto merger = options.merges.empty() ? nullptr : std::make_shared<Merger>(session, options);
  for (const Mapped& m : map_parameters(session, names)) {
    TensorDesc desc{m.desc.dtype, m.shape_there()};
    if (options.dtype) desc.dtype = *options.dtype;
    if (m.frozen && !m.encoded && options.frozen_dtype) desc.dtype = *options.frozen_dtype;
    const auto shared = std::make_shared<const Mapped>(m);
    if (merger != nullptr && merger->takes(m.ours)) {
      for (size_t i = 0; i < m.theirs.size(); ++i)
        sources.push_back({m.theirs[i], desc, [merger, shared, i, type = desc.dtype](void* to) {
                             const Mapped& of = *shared;
                             const std::vector<float> values = merger->values(of, i);
                             for (int64_t e = 0; e < of.part.elements(); ++e)
                               store(static_cast<std::byte*>(to), type, of.transposed ? of.place_there(e) : e,
                                     values[static_cast<size_t>(e)]);
                           }});
      continue;
    }
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
                     const ExportOptions& options, const std::map<std::string, std::string>& metadata) {
  DurableDirectory target(path, written_before());
  for (const fs::path& file : options.files) copy(file, target);
  const auto shards = shards_of(sources, options.shard_bytes);
  Json map('{');
  std::set<std::string_view> known;
  uint64_t total = 0;
  const std::string whole = options.file_name.empty() ? kModelName : options.file_name;
  for (size_t i = 0; i < shards.size(); ++i) {
    char name[64] = {};
    std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, shards.size());
    write_safetensors(target, shards.size() > 1 ? name : whole.c_str(), shards[i], metadata);
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

// The tensor number `number` of a parameter as blocks of `type`, in pieces of complete rows as the file has them. merged: its
// values with an adapter's; empty: those that the session has.
void append_blocks(const engine::Session& session, const Mapped& m, size_t number, DType type,
                   const std::vector<float>& merged,
                   const std::function<void(const void*, uint64_t)>& append) {
  const int64_t elements = m.part.elements(), columns = m.columns();
  const int64_t first = static_cast<int64_t>(number) * elements,
                fit = std::max(kPieceBytes / 4 / columns, int64_t{1});
  const int64_t most = fit > formats::kMostBlock ? fit / formats::kMostBlock * formats::kMostBlock : fit;
  const bool as_it_is = merged.empty() && m.stored.dtype == type && m.layout.offset == 0;
  std::vector<float> values(as_it_is ? 0 : static_cast<size_t>(most * columns));
  std::vector<std::byte> blocks(static_cast<size_t>(format(type).bytes(most * columns)));
  for (int64_t row = 0; row < elements / columns; row += most) {
    const int64_t rows = std::min(most, elements / columns - row);
    for (int64_t r = 0, n = 0; r < rows; r += n) {
      n = m.reordered() ? 1 : rows;
      const int64_t from = first + (m.reordered() ? m.row_here(row + r) : row) * columns;
      if (!merged.empty())
        std::copy_n(merged.begin() + (from - first), n * columns, values.begin() + r * columns);
      else if (as_it_is)
        session.read_saved(m.value, format(type).bytes(from), blocks.data() + format(type).bytes(r * columns),
                           format(type).bytes(n * columns));
      else
        session.read_floats(
            m.value, from,
            std::span(values).subspan(static_cast<size_t>(r * columns), static_cast<size_t>(n * columns)));
    }
    const auto count = static_cast<size_t>(rows * columns);
    if (!as_it_is) {
      if (m.layout.offset != 0)
        for (size_t i = 0; i < count; ++i) values[i] += m.layout.offset;
      require(formats::codec(type).encode(values.data(), rows * columns, blocks.data()),
              Code::kInvalidArgument, "parameter '", m.ours, "' has a number that ", dtype_name(type),
              " cannot store");
    }
    append(blocks.data(), static_cast<uint64_t>(format(type).bytes(rows * columns)));
  }
}

void export_gguf(const engine::Session& session, const std::vector<NameRow>& names, const fs::path& path,
                 const ExportOptions& options) {
  std::vector<GgufSource> sources;
  const auto merger = options.merges.empty() ? nullptr : std::make_shared<Merger>(session, options);
  for (const Mapped& m : map_parameters(session, names, options.layouts)) {
    const bool takes = merger != nullptr && merger->takes(m.ours);
    // Blocks have no room for what an adapter adds: encoding the sum again would round it away.
    const DType stored = options.dtype.value_or(takes ? m.desc.dtype : m.stored.dtype);
    const GgufBlock* const wanted = gguf_block(stored);
    require(wanted != nullptr, Code::kUnsupported, "GGUF has no block type for ", dtype_name(stored),
            ", as which '", m.ours, "' is stored; name another type");
    const auto shared = std::make_shared<const Mapped>(m);
    require(!m.transposed, Code::kUnsupported, "parameter '", m.ours,
            "' cannot be transposed into a GGUF file");
    for (size_t i = 0; i < m.theirs.size(); ++i) {
      const GgufBlock& block = gguf_block_for(m.theirs[i], m.part, *wanted);
      sources.push_back({m.theirs[i], m.part, &block,
                         [&session, merger, shared, i, takes, type = *gguf_dtype(block)](const auto& append) {
                           append_blocks(session, *shared, i, type,
                                         takes ? merger->values(*shared, i) : std::vector<float>(), append);
                         }});
    }
  }
  write_gguf(path, options.gguf, std::move(sources));
}

}  // namespace

void export_safetensors(const engine::Session& session, const std::vector<NameRow>& names,
                        const fs::path& path, const ExportOptions& options) {
  if (!options.gguf.empty()) return export_gguf(session, names, path, options);
  const std::vector<SafeTensorSource> sources = sources_of(session, names, options);
  std::map<std::string, std::string> metadata = options.metadata;
  metadata["format"] = "pt";
  options.directory ? write_directory(path, sources, options, metadata)
                    : write_safetensors(path, sources, metadata);
}

}  // namespace cairn::io
