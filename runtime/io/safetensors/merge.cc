#include "runtime/io/safetensors/merge.h"

#include <algorithm>
#include <cmath>

#include "runtime/formats/codecs.h"
#include "runtime/io/convert.h"
#include "runtime/io/manifest.h"

namespace cairn::io {
namespace {

// Elements of a parameter as numbers, whatever it is stored as. `first` begins a block of its format.
std::vector<float> numbers(const engine::Session& session, int32_t value, int64_t first, int64_t count) {
  std::vector<float> to(static_cast<size_t>(count));
  const DType type = session.saved(value).dtype;
  if (format(type).read == Read::kDequantised || type == DType::kF32) {
    session.read_floats(value, first, to);
    return to;
  }
  const int64_t width = dtype_bytes(type), most = kPieceBytes / width;
  const Piece piece = make_piece();
  for (int64_t at = 0; at < count; at += most) {
    const int64_t n = std::min(most, count - at);
    session.read_saved(value, (first + at) * width, piece.get(), n * width);
    for (int64_t i = 0; i < n; ++i)
      to[static_cast<size_t>(at + i)] = static_cast<float>(load_float(piece.get(), type, i));
  }
  return to;
}

std::vector<float> through(DType type, const std::vector<float>& from, const std::string& name) {
  const formats::Codec codec = formats::codec(type);
  const auto count = static_cast<int64_t>(from.size());
  std::vector<std::byte> blocks(static_cast<size_t>(format(type).bytes(count)));
  require(codec && codec.encode(from.data(), count, blocks.data()), Code::kInvalidArgument, "parameter '",
          name, "' cannot be stored as ", dtype_name(type));
  std::vector<float> to(from.size());
  codec.decode(blocks.data(), count, to.data());
  return to;
}

struct Factors {
  std::vector<float> a, b, magnitude;
  int64_t rank;
};

// w [rows, columns], the matrix or table.
void add(const Factors& f, double scale, bool table, int64_t rows, int64_t columns, std::vector<float>& w) {
  std::vector<double> row(static_cast<size_t>(columns));
  const auto at = [](const std::vector<float>& v, int64_t i) {
    return static_cast<double>(v[static_cast<size_t>(i)]);
  };
  for (int64_t o = 0; o < rows; ++o) {
    float* const ours = w.data() + o * columns;
    std::fill(row.begin(), row.end(), 0.0);
    for (int64_t k = 0; k < f.rank; ++k) {
      const double by = scale * at(table ? f.a : f.b, o * f.rank + k);
      for (int64_t i = 0; i < columns; ++i)
        row[static_cast<size_t>(i)] += by * (table ? at(f.b, i * f.rank + k) : at(f.a, k * columns + i));
    }
    double length = 0;
    for (int64_t i = 0; i < columns; ++i) {
      double& value = row[static_cast<size_t>(i)];
      value += static_cast<double>(ours[i]);
      length += value * value;
    }
    const double by = f.magnitude.empty() ? 1.0 : at(f.magnitude, o) / std::sqrt(length);
    for (int64_t i = 0; i < columns; ++i) ours[i] = static_cast<float>(by * row[static_cast<size_t>(i)]);
  }
}

}  // namespace

Merger::Merger(const engine::Session& session, const ExportOptions& options)
    : session_(session), dequantise_(options.dequantise), difference_(options.difference) {
  if (difference_ != nullptr) difference_[0] = difference_[1] = 0;
  for (const MergeRow& row : options.merges) {
    Adapter made{&row};
    find(row.weight);
    if (!row.a.empty()) {
      made.a = find(row.a), made.b = find(row.b);
      if (!row.magnitude.empty()) made.magnitude = find(row.magnitude);
      check(made);
    }
    require(rows_.emplace(row.weight, made).second, Code::kInvalidArgument, "two adapters are merged into '",
            row.weight, "'");
  }
}

int32_t Merger::find(const std::string& name) const {
  for (const graph::Resident& resident : session_.plan().joint->residents)
    if (resident.role == graph::Role::kParameter && resident.name == name) return resident.value;
  fail(Code::kInvalidArgument, "an adapter is to be merged, and '", name, "' is no parameter of the model");
}

void Merger::check(const Adapter& adapter) const {
  const MergeRow& row = *adapter.row;
  const Shape w = session_.declared(find(row.weight)).shape, a = session_.declared(adapter.a).shape,
              b = session_.declared(adapter.b).shape;
  const int n = w.rank;
  bool fits = n >= 2 && a.rank == n && b.rank == n && b[-2] == (row.table ? w[-1] : w[-2]) &&
              (row.table ? a[-2] == w[-2] && a[-1] == b[-1] : a[-1] == w[-1] && a[-2] == b[-1]);
  for (int i = 0; fits && i < n - 2; ++i) fits = a[i] == w[i] && b[i] == w[i];
  if (adapter.magnitude >= 0)
    fits = fits && session_.declared(adapter.magnitude).shape.elements() * w[-1] == w.elements();
  require(fits, Code::kInvalidArgument, "adapters '", row.a, "' ", to_string(a), " and '", row.b, "' ",
          to_string(b), " do not go with '", row.weight, "' ", to_string(w));
}

void Merger::note(const std::vector<float>& values, const std::vector<float>& rounded) {
  for (size_t i = 0; i < values.size(); ++i) {
    const double d = std::abs(static_cast<double>(values[i]) - static_cast<double>(rounded[i]));
    largest_ = std::max(largest_, d);
    sum_ += d;
  }
  count_ += static_cast<double>(values.size());
  if (difference_ != nullptr) difference_[0] = largest_, difference_[1] = sum_ / count_;
}

std::vector<float> Merger::values(const Mapped& m, size_t number) {
  const Adapter& adapter = rows_.find(m.ours)->second;
  const MergeRow& row = *adapter.row;
  const int64_t all = m.part.elements(), begin = static_cast<int64_t>(number) * all;
  const int64_t columns = m.desc.shape.last();
  const int64_t rows = m.desc.shape.rank >= 2 ? m.desc.shape[-2] : 1, matrix = rows * columns;
  std::vector<float> made;
  made.reserve(static_cast<size_t>(all));
  for (int64_t first = begin; first < begin + all; first += matrix) {
    std::vector<float> full = numbers(session_, m.value, first, std::min(matrix, begin + all - first)),
                       rounded;
    if (row.format) rounded = through(*row.format, full, m.ours);
    if (adapter.a >= 0) {
      const auto part = [&](int32_t value) {
        const int64_t count = session_.declared(value).shape.elements() / (m.desc.shape.elements() / matrix);
        return numbers(session_, value, first / matrix * count, count);
      };
      Factors f{part(adapter.a), part(adapter.b), {}, session_.declared(adapter.b).shape.last()};
      if (adapter.magnitude >= 0) f.magnitude = part(adapter.magnitude);
      add(f, row.scale, row.table, rows, columns, full);
      if (row.format) add(f, row.scale, row.table, rows, columns, rounded);
    }
    if (row.format) note(full, rounded);
    const std::vector<float>& written = row.format && dequantise_ ? rounded : full;
    made.insert(made.end(), written.begin(), written.end());
  }
  return made;
}

}  // namespace cairn::io
