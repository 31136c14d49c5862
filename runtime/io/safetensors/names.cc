// Parameters of a session as safetensors, under other names and transposed where the other side wants it.
#include "runtime/io/safetensors/names.h"

#include <algorithm>
#include <set>

#include "runtime/io/convert.h"
#include "runtime/io/manifest.h"
#include "runtime/io/overwrite.h"
#include "runtime/io/safetensors/mapped.h"
#include "runtime/io/safetensors/model_files.h"

namespace cairn::io {
std::vector<Mapped> map_parameters(const engine::Session& session, const std::vector<NameRow>& names) {
  const graph::JointGraph& joint = *session.plan().joint;
  std::map<std::string_view, const NameRow*> rows;
  for (const NameRow& row : names)
    require(rows.emplace(row.ours, &row).second, Code::kInvalidArgument, "parameter '", row.ours,
            "' has two rows in the table of names");
  std::set<std::string_view> parameters;
  for (const graph::ParameterSlot& slot : joint.parameters)
    parameters.insert(joint.forward->values()[slot.source].name);
  for (const NameRow& row : names)
    require(parameters.contains(row.ours), Code::kInvalidArgument, "the table of names has a row for '",
            row.ours, "', which is no parameter of the model");
  std::vector<Mapped> mapped;
  for (const graph::ParameterSlot& slot : joint.parameters) {
    Mapped m;
    m.ours = m.theirs = joint.forward->values()[slot.source].name;
    m.value = slot.value;
    m.frozen = joint.forward->values()[slot.source].parameter.frozen;
    m.desc = session.saved(slot.value);
    m.encoded = format(m.desc.dtype).read == Read::kDequantised;
    if (m.encoded) m.desc = session.declared(slot.value);
    if (const auto row = rows.find(m.ours); row != rows.end()) {
      m.theirs = row->second->theirs;
      m.transposed = row->second->transposed;
      if (row->second->kept) continue;
    }
    require(!m.transposed || m.desc.shape.rank == 2, Code::kInvalidArgument, "parameter '", m.ours, "' is ",
            to_string(m.desc), "; only matrices can be transposed");
    mapped.push_back(std::move(m));
  }
  return mapped;
}

namespace {

// Writes elements first..first+n-1 of ours, where from(element) gives theirs.
template <class T, class From>
void convert(engine::Session& session, const Mapped& m, int64_t first, int64_t n, T* buffer,
             const From& from) {
  for (int64_t i = 0; i < n; ++i)
    if constexpr (std::is_same_v<T, bf16>)
      buffer[i] = to_bf16(static_cast<float>(from(first + i)));
    else
      buffer[i] = static_cast<T>(from(first + i));
  if constexpr (std::is_same_v<T, float>)
    if (m.encoded) return session.write_floats(m.value, first, {buffer, static_cast<size_t>(n)});
  session.write_saved(m.value, first * static_cast<int64_t>(sizeof(T)), buffer,
                      n * static_cast<int64_t>(sizeof(T)));
}

// How many elements are converted at a time, and how many bytes of the file are read for them. A transposed tensor is read
// completely, as each row of ours needs an element of every row in the file.
int64_t piece_of(const Mapped& m) {
  return std::min(kPieceBytes / dtype_bytes(m.desc.dtype), m.desc.shape.elements());
}
int64_t bytes_for(const Mapped& m, const SafeTensor& from) {
  return (m.transposed ? m.desc.shape.elements() : piece_of(m)) * dtype_bytes(from.desc.dtype);
}

// Room for all imports, taken before anything is written.
struct Room {
  std::vector<std::byte> theirs;
  Piece ours = make_piece();
};

template <class T>
void import_one(engine::Session& session, const Mapped& m, const ModelFiles::Found& found, Room& room) {
  const SafeTensors& file = *found.file;
  const SafeTensor& from = *found.tensor;
  const int64_t elements = m.desc.shape.elements(), columns = m.desc.shape.last();
  const int64_t rows = elements / columns, width = dtype_bytes(from.desc.dtype), piece = piece_of(m);
  std::vector<std::byte>& theirs = room.theirs;
  if (m.transposed) file.read(from, 0, theirs.data(), static_cast<uint64_t>(bytes_for(m, from)));
  const bool as_it_is = !m.transposed && !m.encoded && from.desc.dtype == m.desc.dtype;
  if (as_it_is && session.borrow(m.value, file.file(), from.offset)) return;
  T* const buffer = reinterpret_cast<T*>(room.ours.get());
  for (int64_t at = 0; at < elements; at += piece) {
    const int64_t n = std::min(piece, elements - at);
    if (!m.transposed)
      file.read(from, static_cast<uint64_t>(at * width), theirs.data(), static_cast<uint64_t>(n * width));
    if (as_it_is) {
      session.write_saved(m.value, at * width, theirs.data(), n * width);
      continue;
    }
    convert<T>(session, m, at, n, buffer, [&](int64_t e) {
      return load_float(theirs.data(), from.desc.dtype,
                        m.transposed ? e % columns * rows + e / columns : e - at);
    });
  }
}

}  // namespace

void import_safetensors(engine::Session& session, const std::vector<NameRow>& names,
                        const std::filesystem::path& path) {
  const ModelFiles files(path);
  const std::vector<Mapped> mapped = map_parameters(session, names);
  std::vector<ModelFiles::Found> found;
  for (const Mapped& m : mapped) {  // everything is checked before anything is written
    const auto it = files.tensors().find(m.theirs);
    require(it != files.tensors().end(), Code::kInvalidArgument, "'", path.string(), "' has no tensor '",
            m.theirs, "' for parameter '", m.ours, "'");
    const SafeTensor& tensor = *it->second.tensor;
    const std::string where = files.where(it->second);
    const Shape wanted = m.transposed ? turned(m.desc.shape) : m.desc.shape;
    require(tensor.usable(), Code::kUnsupported, where, ": '", m.theirs, "' is ", tensor.unusable,
            "; parameter '", m.ours, "' needs ", to_string(wanted), " of a float type");
    require(tensor.desc.shape == wanted, Code::kInvalidArgument, where, ": '", m.theirs, "' is ",
            to_string(tensor.desc.shape), "; parameter '", m.ours, "' needs ", to_string(wanted));
    require(is_float(tensor.desc.dtype), Code::kInvalidArgument, where, ": '", m.theirs, "' is ",
            dtype_name(tensor.desc.dtype), "; parameter '", m.ours, "' needs a float type");
    found.push_back(it->second);
  }
  Room room;
  int64_t most = 0;
  for (size_t i = 0; i < mapped.size(); ++i) most = std::max(most, bytes_for(mapped[i], *found[i].tensor));
  room.theirs.resize(static_cast<size_t>(most));
  overwrite(session, [&] {
    for (size_t i = 0; i < mapped.size(); ++i)
      with_type(mapped[i].desc.dtype,
                [&](auto zero) { import_one<decltype(zero)>(session, mapped[i], found[i], room); });
  });
}

}  // namespace cairn::io
