// Parameters of a session as safetensors, under other names and transposed where the other side wants it.
#include "runtime/io/safetensors/names.h"

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/io/convert.h"
#include "runtime/io/manifest.h"
#include "runtime/io/overwrite.h"
#include "runtime/io/safetensors/mapped.h"
#include "runtime/io/safetensors/model_files.h"

namespace cairn::io {
namespace {

using Rows = std::map<std::string_view, std::vector<const NameRow*>>;

// By parameter. kInvalidArgument: several rows of one that is not stacked.
Rows rows_of(const std::vector<NameRow>& names) {
  Rows rows;
  for (const NameRow& row : names) {
    std::vector<const NameRow*>& of = rows[row.ours];
    of.push_back(&row);
    const bool agree =
        of.size() == 1 || (row.stacked && of[0]->stacked && !row.kept && row.transposed == of[0]->transposed);
    require(agree, Code::kInvalidArgument, "parameter '", row.ours, "' has two rows in the table of names",
            row.stacked || of[0]->stacked ? ", which do not agree on how it is stacked" : "");
  }
  return rows;
}

// What the rows of a parameter say of it.
void apply(const std::vector<const NameRow*>& rows, Mapped& m) {
  m.transposed = rows[0]->transposed;
  m.theirs.clear();
  for (const NameRow* row : rows) m.theirs.push_back(row->theirs);
  if (!rows[0]->stacked) return;
  const Shape& shape = m.desc.shape;
  require(shape.rank > 0 && shape[0] == static_cast<int64_t>(rows.size()), Code::kInvalidArgument,
          "parameter '", m.ours, "' is ", to_string(m.desc), ", and ", rows.size(),
          " stacked tensors are named for it; wanted: one for each element of its first dimension");
  m.part = Shape(shape.span().subspan(1));
}

}  // namespace

std::vector<Mapped> map_parameters(const engine::Session& session, const std::vector<NameRow>& names) {
  const graph::JointGraph& joint = *session.plan().joint;
  const Rows rows = rows_of(names);
  std::set<std::string_view> parameters;
  for (const graph::ParameterSlot& slot : joint.parameters)
    parameters.insert(joint.forward->values()[slot.source].name);
  for (const NameRow& row : names)
    require(parameters.contains(row.ours), Code::kInvalidArgument, "the table of names has a row for '",
            row.ours, "', which is no parameter of the model");
  std::vector<Mapped> mapped;
  for (const graph::ParameterSlot& slot : joint.parameters) {
    Mapped m;
    m.ours = joint.forward->values()[slot.source].name;
    m.theirs = {m.ours};
    m.value = slot.value;
    m.frozen = joint.forward->values()[slot.source].parameter.frozen;
    m.desc = session.saved(slot.value);
    m.encoded = format(m.desc.dtype).read == Read::kDequantised;
    if (m.encoded) m.desc = session.declared(slot.value);
    m.part = m.desc.shape;
    if (const auto row = rows.find(m.ours); row != rows.end()) {
      if (row->second[0]->kept) continue;
      apply(row->second, m);
    }
    require(!m.transposed || m.part.rank == 2, Code::kInvalidArgument, "parameter '", m.ours, "' is ",
            to_string(m.desc), "; only matrices can be transposed");
    mapped.push_back(std::move(m));
  }
  return mapped;
}

namespace {

template <class T>
T rounded(double value) {
  if constexpr (std::is_same_v<T, bf16>)
    return to_bf16(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

// Writes elements first..first+n-1 of ours.
template <class T>
void write(engine::Session& session, const Mapped& m, int64_t first, int64_t n, const T* values) {
  if constexpr (std::is_same_v<T, float>)
    if (m.encoded) return session.write_floats(m.value, first, {values, static_cast<size_t>(n)});
  session.write_saved(m.value, first * static_cast<int64_t>(sizeof(T)), values,
                      n * static_cast<int64_t>(sizeof(T)));
}

// How many elements are converted at a time, and how many bytes of the file are read for them. A transposed tensor is read
// completely, as each row of ours needs an element of every row in the file.
int64_t piece_of(const Mapped& m) {
  return std::min(kPieceBytes / dtype_bytes(m.desc.dtype), m.desc.shape.elements());
}
int64_t bytes_for(const Mapped& m, const SafeTensor& from) {
  return (m.transposed ? m.part.elements() : piece_of(m)) * dtype_bytes(from.desc.dtype);
}

// Room for all imports, taken before anything is written.
struct Room {
  std::vector<std::byte> theirs;
  Piece ours = make_piece();
};

// The tensors of one parameter.
using TensorParts = std::span<const ModelFiles::Found>;

bool borrowed(engine::Session& session, const Mapped& m, TensorParts parts) {
  std::vector<engine::Session::FilePart> places;
  for (const ModelFiles::Found& part : parts)
    places.push_back({part.file->file(), part.tensor->offset, part.tensor->desc.bytes()});
  return session.borrow(m.value, places);
}

template <class T>
void import_one(engine::Session& session, const Mapped& m, TensorParts parts, Room& room) {
  const int64_t elements = m.desc.shape.elements(), piece = piece_of(m), each = m.part.elements();
  const int64_t columns = m.part.last(), rows = each / columns;
  const auto is_ours = [&](const ModelFiles::Found& part) { return part.tensor->desc.dtype == m.desc.dtype; };
  const bool as_it_is = !m.transposed && !m.encoded && std::ranges::all_of(parts, is_ours);
  if (as_it_is && borrowed(session, m, parts)) return;
  T* const buffer = reinterpret_cast<T*>(room.ours.get());
  int64_t complete = -1;  // the part that is in the room
  for (int64_t at = 0; at < elements; at += piece) {
    const int64_t end = std::min(at + piece, elements);
    for (int64_t from = at, to = 0; from < end; from = to) {
      const int64_t number = from / each, first = number * each;
      to = std::min(end, first + each);
      const ModelFiles::Found& part = parts[static_cast<size_t>(number)];
      const DType type = part.tensor->desc.dtype;
      const int64_t width = dtype_bytes(type);
      const auto read = [&](void* into, int64_t begin, int64_t n) {
        part.file->read(*part.tensor, static_cast<uint64_t>(begin * width), into,
                        static_cast<uint64_t>(n * width));
      };
      if (as_it_is)
        read(buffer + (from - at), from - first, to - from);
      else if (!m.transposed)
        read(room.theirs.data(), from - first, to - from);
      else if (std::exchange(complete, number) != number)
        read(room.theirs.data(), 0, each);
      for (int64_t e = as_it_is ? to : from; e < to; ++e) {
        const int64_t place = e - first;
        buffer[e - at] = rounded<T>(load_float(
            room.theirs.data(), type, m.transposed ? place % columns * rows + place / columns : e - from));
      }
    }
    write(session, m, at, end - at, buffer);
  }
}

// The tensors of a file that parameters are made of, by parameter. Throws what does not fit.
std::vector<std::vector<ModelFiles::Found>> find_all(const ModelFiles& files,
                                                     const std::vector<Mapped>& mapped,
                                                     const std::filesystem::path& path) {
  std::vector<std::vector<ModelFiles::Found>> found;
  for (const Mapped& m : mapped) {
    std::vector<ModelFiles::Found>& parts = found.emplace_back();
    const Shape wanted = m.shape_there();
    for (const std::string& theirs : m.theirs) {
      const auto it = files.tensors().find(theirs);
      require(it != files.tensors().end(), Code::kInvalidArgument, "'", path.string(), "' has no tensor '",
              theirs, "' for parameter '", m.ours, "'");
      const SafeTensor& tensor = *it->second.tensor;
      const std::string where = files.where(it->second);
      require(tensor.usable(), Code::kUnsupported, where, ": '", theirs, "' is ", tensor.unusable,
              "; parameter '", m.ours, "' needs ", to_string(wanted), " of a float type");
      require(tensor.desc.shape == wanted, Code::kInvalidArgument, where, ": '", theirs, "' is ",
              to_string(tensor.desc.shape), "; parameter '", m.ours, "' needs ", to_string(wanted));
      require(is_float(tensor.desc.dtype), Code::kInvalidArgument, where, ": '", theirs, "' is ",
              dtype_name(tensor.desc.dtype), "; parameter '", m.ours, "' needs a float type");
      parts.push_back(it->second);
    }
  }
  return found;
}

}  // namespace

void import_safetensors(engine::Session& session, const std::vector<NameRow>& names,
                        const std::filesystem::path& path) {
  const ModelFiles files(path);
  const std::vector<Mapped> mapped = map_parameters(session, names);
  const auto found = find_all(files, mapped, path);  // everything is checked before anything is written
  Room room;
  int64_t most = 0;
  for (size_t i = 0; i < mapped.size(); ++i)
    for (const ModelFiles::Found& part : found[i]) most = std::max(most, bytes_for(mapped[i], *part.tensor));
  room.theirs.resize(static_cast<size_t>(most));
  overwrite(session, [&] {
    for (size_t i = 0; i < mapped.size(); ++i)
      with_type(mapped[i].desc.dtype,
                [&](auto zero) { import_one<decltype(zero)>(session, mapped[i], found[i], room); });
  });
}

}  // namespace cairn::io
