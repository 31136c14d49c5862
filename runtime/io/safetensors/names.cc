// Parameters of a session under other names, transposed and in another order where the other side wants it.
#include "runtime/io/safetensors/names.h"

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/exec/adapter_start.h"
#include "runtime/exec/encoded.h"
#include "runtime/formats/codecs.h"
#include "runtime/graph/adapters.h"
#include "runtime/io/convert.h"
#include "runtime/io/manifest.h"
#include "runtime/io/overwrite.h"
#include "runtime/io/safetensors/mapped.h"
#include "runtime/io/safetensors/model_files.h"
#include "runtime/io/safetensors/quantised/import.h"

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

// What a row says of how a file has a parameter, if it can be so.
void apply(const LayoutRow& row, Mapped& m) {
  m.layout = row;
  const int64_t rows = m.part.elements() / m.columns();
  const bool reorders = row.ways > 1;
  const int64_t units = int64_t{row.groups} * row.ways * row.unit;
  require(row.groups > 0 && row.ways > 0 && row.unit > 0 && (!reorders || rows % units == 0),
          Code::kInvalidArgument, "parameter '", m.ours, "' is ", to_string(m.desc), "; its rows are no ",
          row.groups, " groups of ", row.ways, " runs of units of ", row.unit);
  require(!reorders || (!m.transposed && m.theirs.size() == 1), Code::kInvalidArgument, "parameter '", m.ours,
          "' cannot be in another order and transposed or stacked");
  m.layout = row;
}

}  // namespace

namespace {

// Units of rows in runs one after the other, or in turns: where number `here` of a group is the other way.
int64_t turned(int64_t row, int64_t rows, const LayoutRow& layout, bool into_turns) {
  const int64_t unit = row / layout.unit, group = rows / layout.unit / layout.groups,
                run = group / layout.ways;
  const int64_t first = unit / group * group, here = unit % group;
  const int64_t there =
      into_turns ? here % run * layout.ways + here / run : here % layout.ways * run + here / layout.ways;
  return (first + there) * layout.unit + row % layout.unit;
}

}  // namespace

Shape Mapped::shape_there() const {
  if (!transposed) return part;
  Shape there = part;
  const int first = part.rank > 2 ? 1 : 0;
  for (int axis = first; axis < part.rank; ++axis)
    there[axis] = part[axis == first ? part.rank - 1 : axis - 1];
  return there;
}
int64_t Mapped::row_there(int64_t row) const {
  return turned(row, part.elements() / columns(), layout, true);
}
int64_t Mapped::row_here(int64_t row) const {
  return turned(row, part.elements() / columns(), layout, false);
}

std::vector<Mapped> map_parameters(const engine::Session& session, const std::vector<NameRow>& names,
                                   const std::vector<LayoutRow>& layouts) {
  const graph::JointGraph& joint = *session.plan().joint;
  const Rows rows = rows_of(names);
  struct Saved {
    int32_t value;
    graph::ValueId source;
    bool frozen;
  };
  std::vector<Saved> saved;
  for (const graph::ParameterSlot& slot : joint.parameters)
    saved.push_back({slot.value, slot.source, joint.forward->values()[slot.source].parameter.frozen});
  // Statistics, but for the norms that adapters make of the weights.
  for (const graph::Resident& resident : joint.residents) {
    const graph::JointValue& value = joint.values[static_cast<size_t>(resident.value)];
    if (value.role == graph::Role::kStatistic && !value.name.ends_with(graph::kWeightNorms))
      saved.push_back({resident.value, value.source, false});
  }
  std::set<std::string_view> parameters;
  for (const Saved& of : saved) parameters.insert(joint.forward->values()[of.source].name);
  for (const NameRow& row : names)
    require(parameters.contains(row.ours), Code::kInvalidArgument, "the table of names has a row for '",
            row.ours, "', which is no parameter of the model");
  std::map<std::string_view, const LayoutRow*> laid;
  for (const LayoutRow& row : layouts) {
    require(parameters.contains(row.ours), Code::kInvalidArgument, "the table of layouts has a row for '",
            row.ours, "', which is no parameter of the model");
    require(laid.emplace(row.ours, &row).second, Code::kInvalidArgument, "parameter '", row.ours,
            "' has two rows in the table of layouts");
  }
  std::vector<Mapped> mapped;
  for (const Saved& of : saved) {
    Mapped m;
    m.ours = joint.forward->values()[of.source].name;
    m.theirs = {m.ours};
    m.value = of.value;
    m.frozen = of.frozen;
    m.desc = m.stored = session.saved(of.value);
    m.encoded = format(m.desc.dtype).read == Read::kDequantised;
    if (m.encoded) m.desc = session.declared(of.value);
    m.part = m.desc.shape;
    if (const auto row = rows.find(m.ours); row != rows.end()) {
      if (row->second[0]->kept) continue;
      apply(row->second, m);
    }
    require(!m.transposed || m.part.rank >= 2, Code::kInvalidArgument, "parameter '", m.ours, "' is ",
            to_string(m.desc), "; only matrices and what has more axes can be transposed");
    if (const auto row = laid.find(m.ours); row != laid.end()) apply(*row->second, m);
    mapped.push_back(std::move(m));
  }
  return mapped;
}

namespace {

template <class T>
T rounded(double value) {
  if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
    return round_to<T>(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

// Writes elements first..first+n-1 of ours.
template <class T>
void write(engine::Session& session, const Mapped& m, int64_t first, int64_t n, const T* values,
           const formats::Encoder& encoder) {
  if constexpr (std::is_same_v<T, float>)
    if (!m.matrix.empty()) return void(std::copy_n(values, n, m.matrix.begin() + first));
  if constexpr (std::is_same_v<T, float>)
    if (m.encoded)
      return engine::write_part(session, m.value, first, {values, static_cast<size_t>(n)}, encoder);
  session.write_saved(m.value, first * static_cast<int64_t>(sizeof(T)), values,
                      n * static_cast<int64_t>(sizeof(T)));
}

// How many elements are converted at a time, and how many of the file are read for them. A transposed tensor is read
// completely, as each row of ours needs an element of every row in the file.
int64_t piece_of(const Mapped& m) {
  return std::min(kPieceBytes / dtype_bytes(m.desc.dtype), m.desc.shape.elements());
}
int64_t read_for(const Mapped& m) { return m.transposed ? m.part.elements() : piece_of(m); }

// Room for all imports, taken before anything is written.
struct Room {
  std::vector<std::byte> theirs;
  std::vector<float> decoded;  // theirs, of blocks
  Piece ours = make_piece();
};

// The tensors of one parameter.
using TensorParts = std::span<const ModelFiles::Found>;

bool is_stored_so(const Mapped& m, TensorParts parts) {
  const bool complete = parts.size() == 1 || m.part.elements() % format(m.stored.dtype).block == 0;
  return complete && !m.transposed && m.layout.offset == 0 &&
         std::ranges::all_of(
             parts, [&](const ModelFiles::Found& part) { return part.tensor->desc.dtype == m.stored.dtype; });
}

bool borrowed(engine::Session& session, const Mapped& m, TensorParts parts) {
  std::vector<engine::Session::FilePart> places;
  for (const ModelFiles::Found& part : parts)
    places.push_back({part.file->file(), part.tensor->offset, part.tensor->desc.bytes()});
  return session.borrow(m.value, places);
}

// Takes the files' bytes as they are, row by row where theirs are in another order.
void copy(engine::Session& session, const Mapped& m, TensorParts parts, Room& room) {
  if (!m.reordered() && borrowed(session, m, parts)) return;
  const int64_t each = format(m.stored.dtype).bytes(m.part.elements());
  const int64_t row = m.reordered() ? format(m.stored.dtype).bytes(m.columns()) : 1;
  for (size_t number = 0; number < parts.size(); ++number) {
    for (int64_t at = 0, n = 0; at < each; at += n) {
      n = std::min(kPieceBytes / row * row, each - at);
      const auto read = [&](int64_t from, int64_t to, int64_t bytes) {
        parts[number].read(static_cast<uint64_t>(from), room.ours.get() + to, static_cast<uint64_t>(bytes));
      };
      if (!m.reordered()) read(at, 0, n);
      for (int64_t to = 0; m.reordered() && to < n; to += row)
        read(m.row_there((at + to) / row) * row, to, row);
      session.write_saved(m.value, static_cast<int64_t>(number) * each + at, room.ours.get(), n);
    }
  }
}

// use(first, n, values) of the numbers in pieces.
template <class T, class Use>
void read_one(const Mapped& m, TensorParts parts, Room& room, const Use& use) {
  const int64_t elements = m.desc.shape.elements(), piece = piece_of(m), each = m.part.elements();
  const int64_t columns = m.columns();
  T* const buffer = reinterpret_cast<T*>(room.ours.get());
  int64_t complete = -1;  // the part that is in the room
  for (int64_t at = 0; at < elements; at += piece) {
    const int64_t end = std::min(at + piece, elements);
    for (int64_t from = at, to = 0; from < end; from = to) {
      const int64_t number = from / each, first = number * each;
      to = std::min(end, first + each);
      if (m.reordered()) to = std::min(to, (from / columns + 1) * columns);
      const ModelFiles::Found& part = parts[static_cast<size_t>(number)];
      const DType type = part.tensor->desc.dtype;
      const bool blocks = format(type).block > 1;
      const auto read = [&](int64_t begin, int64_t n) {
        part.read(static_cast<uint64_t>(format(type).bytes(begin)), room.theirs.data(),
                  static_cast<uint64_t>(format(type).bytes(n)));
        if (blocks) formats::codec(type).decode(room.theirs.data(), n, room.decoded.data());
      };
      if (m.transposed) {
        if (std::exchange(complete, number) != number) read(0, each);
      } else if (m.reordered()) {
        read(m.row_there(from / columns) * columns + from % columns, to - from);
      } else {
        read(from - first, to - from);
      }
      for (int64_t e = from; e < to; ++e) {
        const int64_t place = e - first;
        const int64_t there = m.transposed ? m.place_there(place) : e - from;
        double value = blocks ? static_cast<double>(room.decoded[static_cast<size_t>(there)])
                              : load_float(room.theirs.data(), type, there);
        if (m.layout.offset != 0) value = static_cast<float>(value) - m.layout.offset;
        buffer[e - at] = rounded<T>(value);
      }
    }
    use(at, end - at, buffer);
  }
}

template <class T>
void import_one(engine::Session& session, const Mapped& m, TensorParts parts, Room& room) {
  if (m.matrix.empty() && is_stored_so(m, parts)) return copy(session, m, parts, room);
  formats::Encoder encoder = engine::encoder_of(session, m.value);
  if constexpr (std::is_same_v<T, float>)
    if (m.encoded && m.matrix.empty() && encoder.measures())
      read_one<T>(m, parts, room, [&](int64_t first, int64_t n, const T* values) {
        encoder.measure(first, {values, static_cast<size_t>(n)});
      });
  read_one<T>(m, parts, room, [&](int64_t first, int64_t n, const T* values) {
    write(session, m, first, n, values, encoder);
  });
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
      const bool numbers = is_float(tensor.desc.dtype) || format(tensor.desc.dtype).block > 1;
      require(numbers, Code::kInvalidArgument, where, ": '", theirs, "' is ", dtype_name(tensor.desc.dtype),
              "; parameter '", m.ours, "' needs a float type");
      parts.push_back(it->second);
    }
  }
  return found;
}

}  // namespace

void import_safetensors(engine::Session& session, const std::vector<NameRow>& names,
                        const std::filesystem::path& path, const std::vector<LayoutRow>& layouts) {
  const ModelFiles files(path);
  std::vector<Mapped> mapped = map_parameters(session, names, layouts);
  const QuantisedTensors quantised = find_quantised(files);
  const std::vector<Mapped> matrices = take_quantised(mapped, quantised, path);
  const auto found = find_all(files, mapped, path);  // everything is checked before anything is written
  std::set<int32_t> given;
  for (const Mapped& m : mapped) given.insert(m.value);
  for (const Mapped& m : matrices) given.insert(m.value);
  engine::AdapterStarts starts(session, given);
  std::vector<float> matrix;  // the largest weight whose adapter starts with its singular values
  Room room;
  for (size_t i = 0; i < mapped.size(); ++i) {
    if (is_stored_so(mapped[i], found[i]) && !starts.wants_matrix(mapped[i].value)) continue;
    for (const ModelFiles::Found& part : found[i]) {
      const Format& theirs = format(part.tensor->desc.dtype);
      const int64_t n = read_for(mapped[i]);
      room.theirs.resize(std::max(room.theirs.size(), static_cast<size_t>(theirs.bytes(n))));
      if (theirs.block > 1) room.decoded.resize(std::max(room.decoded.size(), static_cast<size_t>(n)));
    }
  }
  overwrite(session, [&] {
    for (const Mapped& m : matrices) {
      import_quantised(session, m, quantised);
      starts.stored(m.value);
    }
    for (size_t i = 0; i < mapped.size(); ++i) {
      Mapped& m = mapped[i];
      if (m.desc.dtype == DType::kF32 && starts.wants_matrix(m.value)) {
        matrix.resize(static_cast<size_t>(m.desc.shape.elements()));
        m.matrix = matrix;
      }
      with_type(m.desc.dtype, [&](auto zero) { import_one<decltype(zero)>(session, m, found[i], room); });
      if (!m.matrix.empty()) {
        starts.take_principal(m.value, m.matrix);
        formats::Encoder encoder = engine::encoder_of(session, m.value);
        if (encoder.measures()) encoder.measure(0, m.matrix);
        engine::write_part(session, m.value, 0, m.matrix, encoder);
      }
      starts.stored(m.value);
    }
  });
}

}  // namespace cairn::io
