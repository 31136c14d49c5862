#include <algorithm>
#include <map>

#include "kernels/cuda/rows.h"
#include "kernels/cuda/vocabulary/products.h"
#include "kernels/cuda/vocabulary/units.h"

namespace cairn::kernels::cuda {
namespace {

// dw is read and written, and the weight read, once per chunk, so chunks are large; but no more than an
// eighth of all logits where those are many.
constexpr int64_t kMinChunkBytes = 64 << 20, kMaxChunkBytes = 256 << 20;
// A narrow dx has few tiles: its chunks are larger, so that these are about as many as a large GPU has multiprocessors.
constexpr int64_t kNarrowChunkBytes = 512 << 20, kTileRows = 128, kTileColumns = 256, kTiles = 120;

int64_t chunk_rows(int64_t rows, int64_t width, int64_t row_bytes) {
  const int64_t wanted = checked_mul(rows, row_bytes) / 8,
                columns = (width + kTileColumns - 1) / kTileColumns;
  const int64_t for_tiles = (kTiles + columns - 1) / columns * kTileRows * row_bytes;
  const int64_t most_bytes = std::clamp(for_tiles, kMaxChunkBytes, kNarrowChunkBytes);
  const int64_t limit = std::min(std::max(wanted, kMinChunkBytes), most_bytes);
  const int64_t most = std::max(kTileRows, limit / row_bytes / kTileRows * kTileRows);
  const int64_t chunks = (rows + most - 1) / most;
  return align_up((rows + chunks - 1) / chunks, kTileRows);
}

int64_t attribute(const Signature& s, std::string_view name, int64_t otherwise) {
  return s.attrs != nullptr ? s.attrs->integer(name, otherwise) : otherwise;
}

}  // namespace

HeadSizes::HeadSizes(const Signature& s)
    : rows(s.in[0].shape.rows()),
      width(s.in[0].shape.last()),
      n(s.in[1].shape[0]),
      first(attribute(s, "first", 0)),
      vocab(attribute(s, "vocab", n)),
      unit(unit_columns(vocab)),
      ignore(attribute(s, "ignore_index", -100)),
      type(s.in[0].dtype) {
  const int64_t bytes = dtype_bytes(type);
  ld = align_up(n, 128 / bytes);
  whole_ld = align_up(vocab, 128 / bytes);
  chunk = attribute(s, "chunk", 0);
  if (chunk <= 0) chunk = chunk_rows(rows, width, whole_ld * bytes);
  chunk = std::min(chunk, rows);
}

std::vector<int64_t> HeadSizes::units() const {
  std::vector<int64_t> list = {0};
  // The vocabulary's last unit takes all rows after which no full unit would fit.
  for (int64_t at = unit - first % unit; at < n && first + at + unit <= vocab; at += unit) list.push_back(at);
  return list;
}

std::vector<int64_t> HeadSizes::unit_sizes() const {
  const int64_t last = vocab - (units_of(vocab) - 1) * unit;
  return units_of(vocab) == 1 || last == unit ? std::vector{last} : std::vector{unit, last};
}

int64_t HeadProducts::OfChunk::workspace_bytes() const {
  int64_t most = 0;
  for (const auto& p : {logits, dw})
    if (p != nullptr) most = std::max(most, p->workspace_bytes());
  for (const auto& p : dx) most = std::max(most, p->workspace_bytes());
  return most;
}

HeadProducts::HeadProducts(const Signature& s, bool has_dx, bool narrow_dx, bool has_dw, Workspace* space)
    : z(s), units_(z.units()), dx_type_(narrow_dx ? z.type : DType::kF32) {
  sums_apart_ = dx_type_ != DType::kF32 && units_.size() > 1;
  Chooser chooser(s);
  whole_ = rest_ = make(z.chunk, has_dx, has_dw, chooser);
  if (const int64_t left = z.rows % z.chunk; left != 0) rest_ = make(left, has_dx, has_dw, chooser);
  logits_at_ = space->add(z.chunk * z.ld * dtype_bytes(z.type));
  if (has_dx && sums_apart_) sums_at_ = space->add(z.chunk * z.width * 4);
  products_at_ = space->add(std::max(whole_.workspace_bytes(), rest_.workspace_bytes()));
}

ProductShape HeadProducts::logits_shape(int64_t m, int64_t n, int64_t ld) const {
  ProductShape s;
  s.in = s.out = z.type;
  s.m = m, s.n = n, s.k = z.width;
  s.transpose_b = true;
  s.ldc = ld;
  s.alignment_a = alignment_of(z.x_bytes(z.between_chunks()));
  return s;
}

ProductShape HeadProducts::dx_shape(int64_t m, int64_t k, int64_t ld) const {
  ProductShape s;
  s.in = z.type, s.out = sums_apart_ ? DType::kF32 : dx_type_;
  s.m = m, s.n = z.width, s.k = k;
  s.lda = ld;
  for (const int64_t at : units_) {
    s.alignment_a = std::min(s.alignment_a, alignment_of(at * dtype_bytes(z.type)));
    s.alignment_b = std::min(s.alignment_b, alignment_of(z.x_bytes(at)));
  }
  s.alignment_c = alignment_of(z.x_bytes(z.between_chunks()));  // of float32 it is no less
  return s;
}

ProductShape HeadProducts::dw_shape(int64_t m, int64_t n, int64_t ld) const {
  ProductShape s;
  s.in = z.type;
  s.m = n, s.n = z.width, s.k = m;
  s.transpose_a = true;
  s.lda = ld;
  s.alignment_b = alignment_of(z.x_bytes(z.between_chunks()));
  return s;
}

// Choices name the products in the same order, whichever there are: logits, dx of a unit, dx of the last one, dw.
HeadProducts::OfChunk HeadProducts::make(int64_t m, bool has_dx, bool has_dw, Chooser& chooser) const {
  const auto product = [&](const ProductShape& whole, const ProductShape& own) {
    return std::shared_ptr(z.n < z.vocab ? make_product_like(whole, own, chooser)
                                         : make_product(own, chooser));
  };
  OfChunk made;
  made.logits = product(logits_shape(m, z.vocab, z.whole_ld), logits_shape(m, z.n, z.ld));
  std::map<int64_t, std::shared_ptr<Product>> dx;  // by columns of a unit
  for (size_t u = 0; u < units_.size(); ++u)
    dx[(u + 1 < units_.size() ? units_[u + 1] : z.n) - units_[u]] = nullptr;
  for (const int64_t k : z.unit_sizes())
    if (has_dx && dx.contains(k))
      dx[k] = product(dx_shape(m, k, z.whole_ld), dx_shape(m, k, z.ld));
    else
      chooser.made({});
  for (size_t u = 0; has_dx && u < units_.size(); ++u) {
    const int64_t k = (u + 1 < units_.size() ? units_[u + 1] : z.n) - units_[u];
    if (dx[k] == nullptr) dx[k] = make_product(dx_shape(m, k, z.ld));  // a part ends within a unit
    made.dx.push_back(dx[k]);
  }
  if (has_dw)
    made.dw = product(dw_shape(m, z.vocab, z.whole_ld), dw_shape(m, z.n, z.ld));
  else
    chooser.made({});
  return made;
}

void HeadProducts::make_logits(const Call& call, int64_t row, const void* x, const void* w) const {
  of(row).logits->run({.stream = stream_of(call),
                       .a = x,
                       .b = w,
                       .c = logits(call),
                       .workspace = Workspace::at(call, products_at_)});
}

void HeadProducts::weight_gradient(const Call& call, int64_t row, const void* x, float* dw,
                                   bool accumulate) const {
  of(row).dw->run({.stream = stream_of(call),
                   .a = logits(call),
                   .b = x,
                   .c = dw,
                   .workspace = Workspace::at(call, products_at_),
                   .accumulate = accumulate});
}

void HeadProducts::input_gradient(const Call& call, int64_t row, const void* w, const float* before,
                                  void* dx) const {
  const int64_t count = z.count(row) * z.width, bytes = dtype_bytes(z.type);
  void* const sums = sums_apart_ ? Workspace::at(call, sums_at_) : dx;
  if (before != nullptr) copy_floats(stream_of(call), before, static_cast<float*>(sums), count);
  for (size_t u = 0; u < units_.size(); ++u)
    of(row).dx[u]->run({.stream = stream_of(call),
                        .a = logits(call) + units_[u] * bytes,
                        .b = static_cast<const char*>(w) + z.x_bytes(units_[u]),
                        .c = sums,
                        .workspace = Workspace::at(call, products_at_),
                        .accumulate = u > 0 || before != nullptr});
  if (sums_apart_) round_copy(stream_of(call), static_cast<const float*>(sums), z.type, dx, count);
}

int64_t head_unit(const Signature& whole) {
  const HeadSizes z(whole);
  if (!fast_float(whole.in[0]) || units_of(z.vocab) < 2) return 0;
  return z.unit;
}

}  // namespace cairn::kernels::cuda
