// pair_loss and its gradient. The N x N products exist for a tile of rows and columns at a time; they become their own gradient
// there and are multiplied into da and db.
#include <algorithm>
#include <cmath>
#include <optional>

#include "kernels/cpu/gemm/float_product.h"
#include "kernels/cpu/pictures/pair_rows.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/widened.h"
#include "kernels/cpu/workspace.h"

namespace cairn::kernels::cpu {
namespace {

constexpr int64_t kTileRows = 256, kTileColumns = 1024;

// N in tiles of one size, and a smaller one that is left.
struct Cut {
  int64_t n, size;
  Cut(int64_t all, int64_t most) : n(all), size(std::min(all, most)) {}
  int64_t count(int64_t first) const { return std::min(size, n - first); }
  int64_t of(bool rest) const { return rest ? n % size : size; }
};

struct TileProducts {
  FloatProduct products, da, add_da, db, add_db;
  TileProducts(int64_t m, int64_t n, int64_t width, int parts, int threads)
      : products({.m = m, .n = n, .k = width, .transpose_b = true, .parts_a = parts, .parts_b = parts},
                 threads),
        da({.m = m, .n = width, .k = n, .parts_b = parts}, threads),
        add_da({.m = m, .n = width, .k = n, .add = true, .parts_b = parts}, threads),
        db({.m = n, .n = width, .k = m, .transpose_a = true, .parts_b = parts}, threads),
        add_db({.m = n, .n = width, .k = m, .transpose_a = true, .add = true, .parts_b = parts}, threads) {}
  int64_t scratch_bytes() const {
    return std::max({products.scratch_bytes(), da.scratch_bytes(), add_da.scratch_bytes(), db.scratch_bytes(),
                     add_db.scratch_bytes()});
  }
};

class PairKernel final : public Kernel {
 public:
  PairKernel(const Signature& s, bool gradient)
      : type_(s.in[0].dtype),
        n_(s.in[0].shape[0]),
        width_(s.in[0].shape[1]),
        rows_(n_, kTileRows),
        columns_(n_, kTileColumns),
        gradient_(gradient),
        triplet_(s.attrs->word("kind") == "triplet"),
        margin_(static_cast<float>(s.attrs->real("margin", 0.2))) {
    int64_t scratch = 0;
    for (const bool r : {false, true})
      for (const bool c : {false, true}) {
        if (rows_.of(r) == 0 || columns_.of(c) == 0) continue;
        auto& tile = tiles_[r ? 1 : 0][c ? 1 : 0];
        tile.emplace(rows_.of(r), columns_.of(c), width_, float_parts(type_), s.threads);
        scratch = std::max(scratch, tile->scratch_bytes());
      }
    scratch_at_ = space_.add(scratch);
    tile_at_ = space_.add(rows_.size * columns_.size * 4);
    sums_at_ = space_.add(rows_.size * static_cast<int64_t>(sizeof(PairSums)));
    own_at_ = space_.add(triplet_ ? rows_.size * 4 : 0);
    if (type_ == DType::kF32) return;
    a_at_ = space_.add(rows_.size * width_ * 4);
    b_at_ = space_.add(columns_.size * width_ * 4);
    if (!gradient) return;
    da_at_ = space_.add(rows_.size * width_ * 4);
    db_at_ = space_.add(n_ * width_ * 4);
  }
  int64_t workspace_bytes() const override { return space_.bytes(); }

  void run(const Call& call) const override {
    const double dloss =
        gradient_ && input<const double>(call, 4) != nullptr ? *input<const double>(call, 4) : 1.0;
    const float* const bias = input<const float>(call, 3);
    PairLoss loss{.triplet = triplet_,
                  .scale = *input<const float>(call, 2),
                  .bias = bias != nullptr ? *bias : 0.0f,
                  .margin = margin_,
                  .gradient = gradient_};
    loss.factor = static_cast<float>(loss.scale * dloss);
    PairSums total;
    for (int64_t i = 0; i < n_; i += rows_.size) add_rows(call, loss, i, &total);
    if (gradient_) narrow(at(call, db_at_), output<char>(call, 3), n_);
    if (double* const to = output<double>(call, 0)) *to = total.loss;
    if (double* const to = output<double>(call, 1))
      *to = static_cast<double>(n_) * static_cast<double>(triplet_ ? n_ - 1 : 1);
    if (!gradient_) return;
    write(call, 4, dloss * total.ds_product);
    write(call, 5, dloss * total.ds);
  }

 private:
  // Rows [i, i + rows_.count(i)): their losses, their part of da, and what they add to db.
  void add_rows(const Call& call, const PairLoss& loss, int64_t i, PairSums* total) const {
    const int64_t rows = rows_.count(i), bytes = width_ * dtype_bytes(type_);
    const float* const a = widened(call, input<const char>(call, 0) + i * bytes, rows, a_at_);
    float *const tile = at(call, tile_at_), *const own = at(call, own_at_);
    auto* const sums = Workspace::at<PairSums>(call.workspace, sums_at_);
    char* const scratch = Workspace::at<char>(call.workspace, scratch_at_);
    char* const to_da = gradient_ ? output<char>(call, 2) : nullptr;
    float* const da = to_da == nullptr ? nullptr : target(call, to_da + i * bytes, da_at_);
    float* const db =
        gradient_ && output<char>(call, 3) != nullptr ? target(call, output<char>(call, 3), db_at_) : nullptr;
    for (int64_t j = 0; j < n_; j += columns_.size) {
      const int64_t columns = columns_.count(j);
      const TileProducts& products = *tiles_[rows < rows_.size ? 1 : 0][columns < columns_.size ? 1 : 0];
      const float* const b = widened(call, input<const char>(call, 1) + j * bytes, columns, b_at_);
      products.products.run(a, b, tile, scratch);
      parallel_for(rows, row_grain(4 * columns), [&](int64_t begin, int64_t end, int) {
        for (int64_t r = begin; r < end; ++r) {
          if (j == 0) {
            sums[r] = {};
            if (triplet_) own[r] = product_of_row(call, i + r);
          }
          sums[r].add(row_losses(loss, tile + r * columns, columns, i + r - j, triplet_ ? own[r] : 0.0f));
        }
      });
      if (da != nullptr) (j == 0 ? products.da : products.add_da).run(tile, b, da, scratch);
      if (db != nullptr) (i == 0 ? products.db : products.add_db).run(tile, a, db + j * width_, scratch);
    }
    for (int64_t r = 0; r < rows; ++r) {
      if (triplet_)
        finish_row(call, loss, i + r, own[r], &sums[r], da == nullptr ? nullptr : da + r * width_, db);
      total->add(sums[r]);
    }
    if (da != nullptr) narrow(da, to_da + i * bytes, rows);
  }

  // Of a row's products in a tile; `own`: where the pair that belongs together is, if it is there.
  static PairSums row_losses(const PairLoss& loss, float* row, int64_t columns, int64_t own,
                             float own_product) {
    if (own < 0 || own >= columns) return other_pairs(loss, row, columns, own_product);
    PairSums sums = other_pairs(loss, row, own, own_product);
    sums.add(other_pairs(loss, row + own + 1, columns - own - 1, own_product));
    double ds = 0;
    if (!loss.triplet) {
      const double p = row[own], s = loss.scale * p + loss.bias;
      ds = -1 / (1 + std::exp(s));
      sums.add({std::max(-s, 0.0) + std::log1p(std::exp(-std::fabs(s))), ds, ds * p});
    }
    if (loss.gradient) row[own] = static_cast<float>(ds * loss.factor);
    return sums;
  }

  // Every pair with a loss of row i has taken away from the pair that belongs together.
  void finish_row(const Call& call, const PairLoss& loss, int64_t i, float own, PairSums* sums, float* da,
                  float* db) const {
    const auto less = static_cast<float>(sums->ds * loss.factor);
    sums->ds_product -= sums->ds * own;
    sums->ds = 0;
    if (less == 0) return;
    with_float(type_, [&](auto zero) {
      using T = decltype(zero);
      const T *const a = input<const T>(call, 0) + i * width_, *const b =
                                                                   input<const T>(call, 1) + i * width_;
      for (int64_t k = 0; k < width_ && da != nullptr; ++k) da[k] -= less * to_float(b[k]);
      for (int64_t k = 0; k < width_ && db != nullptr; ++k) db[i * width_ + k] -= less * to_float(a[k]);
    });
  }

  float product_of_row(const Call& call, int64_t i) const {
    return with_float(type_, [&](auto zero) {
      using T = decltype(zero);
      const T *const a = input<const T>(call, 0) + i * width_, *const b =
                                                                   input<const T>(call, 1) + i * width_;
      double sum = 0;
      for (int64_t k = 0; k < width_; ++k) sum += static_cast<double>(to_float(a[k])) * to_float(b[k]);
      return static_cast<float>(sum);
    });
  }

  float* at(const Call& call, int64_t offset) const { return Workspace::at<float>(call.workspace, offset); }
  // Rows of a or b as float32: themselves, or a copy.
  const float* widened(const Call& call, const char* from, int64_t rows, int64_t copy) const {
    if (type_ == DType::kF32) return reinterpret_cast<const float*>(from);
    float* const to = at(call, copy);
    parallel_for(rows * width_, kGrain, [&](int64_t b, int64_t e, int) {
      convert(type_, DType::kF32, false, from + b * dtype_bytes(type_), to + b, e - b);
    });
    return to;
  }
  // Where rows of da or db are summed.
  float* target(const Call& call, char* to, int64_t copy) const {
    return type_ == DType::kF32 ? reinterpret_cast<float*>(to) : at(call, copy);
  }
  void narrow(const float* from, char* to, int64_t rows) const {
    if (type_ == DType::kF32 || to == nullptr) return;
    parallel_for(rows * width_, kGrain, [&](int64_t b, int64_t e, int) {
      convert(DType::kF32, type_, false, from + b, to + b * dtype_bytes(type_), e - b);
    });
  }
  static void write(const Call& call, size_t i, double value) {
    if (float* const to = output<float>(call, i))
      *to = static_cast<float>(accumulates(call, i) ? *to + value : value);
  }

  DType type_;
  int64_t n_, width_;
  Cut rows_, columns_;
  bool gradient_, triplet_;
  float margin_;
  std::optional<TileProducts> tiles_[2][2];  // by whether rows, columns are those that are left
  Workspace space_;
  int64_t scratch_at_ = 0, tile_at_ = 0, sums_at_ = 0, own_at_ = 0, a_at_ = 0, b_at_ = 0, da_at_ = 0,
          db_at_ = 0;
};

std::unique_ptr<Kernel> make_pairs(const Signature& s, bool gradient) {
  const DType type = s.in[0].dtype;
  if (!fast_float(s.in[0]) || s.in[1].dtype != type) return nullptr;
  for (const size_t i : {2, 3})
    if (s.has_in(i) && !plain_f32(s.in[i])) return nullptr;
  for (const size_t o : {2, 3})
    if (gradient && s.has_out(o) && s.out[o].dtype != type) return nullptr;
  return std::make_unique<PairKernel>(s, gradient);
}

}  // namespace

std::unique_ptr<Kernel> make_pair_loss(const Signature& s) { return make_pairs(s, false); }
std::unique_ptr<Kernel> make_pair_loss_grad(const Signature& s) { return make_pairs(s, true); }

}  // namespace cairn::kernels::cpu
