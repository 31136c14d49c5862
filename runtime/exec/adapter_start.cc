#include "runtime/exec/adapter_start.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/os/thread.h"
#include "runtime/exec/singular.h"

namespace cairn::engine {
namespace {

constexpr int64_t kPiece = 1 << 18;  // numbers that are read at a time

// Elements [first, first + to.size()) of a value of float64, or of one that is read as float32.
void read_numbers(const Session& session, int32_t value, int64_t first, std::span<double> to) {
  if (session.declared(value).dtype == DType::kF64) {
    session.read_saved(value, first * 8, to.data(), static_cast<int64_t>(to.size_bytes()));
    return;
  }
  std::vector<float> narrow(to.size());
  session.read_floats(value, first, narrow);
  std::copy(narrow.begin(), narrow.end(), to.begin());
}

void write_numbers(Session& session, int32_t value, const std::vector<double>& from) {
  if (session.declared(value).dtype == DType::kF64) return session.write_declared(value, from.data());
  const std::vector<float> narrow(from.begin(), from.end());
  session.write_declared(value, narrow.data());
}

std::vector<double> row_norms(const Session& session, int32_t weight) {
  const Shape shape = session.declared(weight).shape;
  const int64_t rows = shape[0], columns = shape.elements() / rows,
                at_once = std::max<int64_t>(1, kPiece / columns);
  std::vector<double> norms, piece;
  for (int64_t row = 0; row < rows; row += at_once) {
    const int64_t count = std::min(at_once, rows - row);
    piece.resize(static_cast<size_t>(count * columns));
    read_numbers(session, weight, row * columns, piece);
    for (int64_t r = 0; r < count; ++r) {
      double squares = 0;
      for (int64_t c = 0; c < columns; ++c) {
        const double v = piece[static_cast<size_t>(r * columns + c)];
        squares += v * v;
      }
      norms.push_back(std::sqrt(squares));
    }
  }
  return norms;
}

}  // namespace

AdapterStarts::AdapterStarts(Session& session, const std::set<int32_t>& given) : session_(session) {
  const graph::JointGraph& joint = *session.plan().joint;
  const auto value_of = [&](const std::string& name) { return joint.find(name); };
  for (const graph::ParameterSlot& slot : joint.parameters) {
    const graph::Value& source = joint.forward->values()[static_cast<size_t>(slot.source)];
    const bool norms = source.parameter.init == graph::Init::kRowNorms;
    if (!norms && source.parameter.init != graph::Init::kPrincipal) continue;
    const std::string_view suffix = norms ? graph::kMagnitude : graph::kLoraA;
    if (!source.name.ends_with(suffix)) continue;  // the second matrix, which comes with the first
    const std::string module = source.name.substr(0, source.name.size() - suffix.size());
    AdapterStart start;
    start.weight = value_of(module + ".weight");
    if (start.weight < 0) start.weight = value_of(module);
    if (start.weight < 0) continue;
    if (norms) {
      start.magnitude = given.contains(slot.value) ? -1 : slot.value;
      start.norms = value_of(cat(module, graph::kWeightNorms));
    } else {
      start.a = slot.value;
      start.b = value_of(cat(module, graph::kLoraB));
      start.scale = source.parameter.init_scale;
      if (given.contains(start.a) || given.contains(start.b)) continue;
    }
    starts_.push_back(start);
  }
}

AdapterStart* AdapterStarts::find(int32_t weight) {
  const auto found = std::ranges::find_if(starts_, [&](const AdapterStart& s) { return s.weight == weight; });
  return found == starts_.end() ? nullptr : &*found;
}

bool AdapterStarts::wants_matrix(int32_t weight) const {
  return std::ranges::any_of(starts_,
                             [&](const AdapterStart& s) { return s.weight == weight && s.principal(); });
}

void AdapterStarts::take_principal(int32_t weight, std::span<float> matrix) {
  const AdapterStart* const start = find(weight);
  if (start == nullptr || !start->principal()) return;
  const int64_t rows = session_.declared(weight).shape[0], columns = session_.declared(weight).shape.last(),
                rank = session_.declared(start->a).shape[0];
  const device::DeviceInfo& info = session_.device().info();
  const int threads = info.host_reaches ? std::max(1, info.threads) : usable_processors();
  const SingularTriples s = largest_singular(matrix, rows, columns, rank, threads);
  std::vector<double> a(static_cast<size_t>(rank * columns)), b(static_cast<size_t>(rows * rank));
  for (int64_t k = 0; k < rank; ++k) {
    const double root = std::sqrt(s.values[static_cast<size_t>(k)] / start->scale);
    // As they are stored, so that the weight and the product give the numbers that there were.
    for (int64_t c = 0; c < columns; ++c)
      a[static_cast<size_t>(k * columns + c)] =
          static_cast<float>(root * s.right[static_cast<size_t>(k * columns + c)]);
    for (int64_t r = 0; r < rows; ++r)
      b[static_cast<size_t>(r * rank + k)] =
          static_cast<float>(root * s.left[static_cast<size_t>(k * rows + r)]);
  }
  std::vector<double> row(static_cast<size_t>(columns));
  for (int64_t r = 0; r < rows; ++r) {
    std::fill(row.begin(), row.end(), 0.0);
    for (int64_t k = 0; k < rank; ++k) {
      const double factor = start->scale * b[static_cast<size_t>(r * rank + k)];
      for (int64_t c = 0; c < columns; ++c)
        row[static_cast<size_t>(c)] += factor * a[static_cast<size_t>(k * columns + c)];
    }
    for (int64_t c = 0; c < columns; ++c) {
      float& w = matrix[static_cast<size_t>(r * columns + c)];
      w = static_cast<float>(static_cast<double>(w) - row[static_cast<size_t>(c)]);
    }
  }
  write_numbers(session_, start->a, a);
  write_numbers(session_, start->b, b);
  taken_.insert(weight);
}

void AdapterStarts::stored(int32_t weight) {
  const AdapterStart* const start = find(weight);
  if (start == nullptr) return;
  if (start->principal() && !taken_.contains(weight)) {
    std::vector<double> numbers(static_cast<size_t>(session_.declared(weight).shape.elements()));
    read_numbers(session_, weight, 0, numbers);
    std::vector<float> matrix(numbers.begin(), numbers.end());
    take_principal(weight, matrix);
    write_numbers(session_, weight, {matrix.begin(), matrix.end()});
  }
  if (start->norms < 0 && start->magnitude < 0) return;
  const std::vector<double> norms = row_norms(session_, weight);
  if (start->norms >= 0) write_numbers(session_, start->norms, norms);
  if (start->magnitude >= 0) write_numbers(session_, start->magnitude, norms);
}

void AdapterStarts::written(Session& session, int32_t weight) {
  const graph::JointGraph& joint = *session.plan().joint;
  const std::string_view module = graph::module_of(joint.values[static_cast<size_t>(weight)].name);
  if (joint.find(cat(module, graph::kWeightNorms)) < 0) return;
  std::set<int32_t> all;
  for (const graph::ParameterSlot& slot : joint.parameters) all.insert(slot.value);
  AdapterStarts(session, all).stored(weight);
}

void AdapterStarts::all_stored() {
  for (const AdapterStart& start : starts_) stored(start.weight);
}

}  // namespace cairn::engine
