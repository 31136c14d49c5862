// pair_loss and its gradients, in tiles of rows of a: the numbers of a tile and all of b are a product, a kernel makes the loss and
// its derivatives of them, and two products the gradients. Sums over tiles and rows are in order.
#include "kernels/cuda/common/activations.h"
#include "kernels/cuda/common/workspace.h"
#include "kernels/cuda/products/linear.h"
#include "kernels/cuda/products/product.h"
#include "kernels/cuda/rows.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kThreads = 256, kSumThreads = 256;
constexpr int64_t kMostRows = 256;  // of a tile

struct Pairs {
  int64_t rows, width, tile, ld,
      ld_narrow;  // rows of a tile; from row to row of its numbers, and of its derivatives
  bool triplet;
  float margin;
};

// Of a row of a: the loss, and its derivatives by scale and bias.
struct RowSums {
  double loss, scale, bias;
};

__device__ __forceinline__ float softplus_of(float x) { return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))); }

// products: a b^T of the tile's rows, from row `first` on. derivatives, by them, times dloss; nullptr: not wanted.
template <class T>
__global__ void __launch_bounds__(kThreads)
    pair_rows(Pairs z, int64_t first, const float* products, const float* scale_at, const float* bias_at,
              const double* dloss, T* derivatives, RowSums* sums) {
  CAIRN_SHARED double scratch[kWarp];
  const int64_t row = first + blockIdx.x;
  const float* const p = products + blockIdx.x * z.ld;
  const float scale = scale_at != nullptr ? *scale_at : 1.0f, bias = bias_at != nullptr ? *bias_at : 0.0f,
              factor = dloss != nullptr ? static_cast<float>(*dloss) * scale : scale;
  const float own = fmaf(scale, p[row], bias);
  RowSums all = {0, 0, 0};
  int active = 0;
  for (int64_t j = threadIdx.x; j < z.rows; j += kThreads) {
    const float s = fmaf(scale, p[j], bias);
    float loss = 0, by = 0;
    if (!z.triplet) {
      const float sign = j == row ? -1.0f : 1.0f;
      loss = softplus_of(sign * s);
      by = sign * sigmoid(sign * s);
    } else if (j != row) {
      loss = z.margin + s - own;
      by = loss > 0 || loss != loss ? 1.0f : 0.0f;
      loss = by != 0 ? loss : 0.0f;
      active += by != 0 ? 1 : 0;
    }
    all.loss += static_cast<double>(loss);
    all.scale += static_cast<double>(by) * static_cast<double>(p[j]);
    all.bias += static_cast<double>(by);
    if (derivatives != nullptr && !(z.triplet && j == row))
      store(derivatives + blockIdx.x * z.ld_narrow + j, by * factor);
  }
  all.loss = block_sum(all.loss, scratch);
  all.scale = block_sum(all.scale, scratch);
  all.bias = block_sum(all.bias, scratch);
  if (z.triplet) {
    const double count = block_sum(static_cast<double>(active), scratch);
    all.scale -= count * static_cast<double>(p[row]);
    all.bias -= count;
    if (threadIdx.x == 0 && derivatives != nullptr)
      store(derivatives + blockIdx.x * z.ld_narrow + row, -static_cast<float>(count) * factor);
  }
  if (threadIdx.x == 0) sums[row] = all;
}

struct PairOutputs {
  double *loss, *weight;
  float *dscale, *dbias;
  bool add_scale, add_bias;
};

__global__ void __launch_bounds__(kSumThreads)
    pair_sums(Pairs z, const RowSums* rows, const double* dloss, PairOutputs out) {
  CAIRN_SHARED double scratch[kWarp];
  RowSums all = {0, 0, 0};
  for (int64_t r = threadIdx.x; r < z.rows; r += kSumThreads) {
    all.loss += rows[r].loss;
    all.scale += rows[r].scale;
    all.bias += rows[r].bias;
  }
  all.loss = block_sum(all.loss, scratch);
  all.scale = block_sum(all.scale, scratch);
  all.bias = block_sum(all.bias, scratch);
  if (threadIdx.x != 0) return;
  const double factor = dloss != nullptr ? *dloss : 1.0, count = static_cast<double>(z.rows);
  const auto give = [&](float* to, bool add, double v) {
    if (to != nullptr) *to = static_cast<float>(add ? static_cast<double>(*to) + v : v);
  };
  if (out.loss != nullptr) *out.loss = all.loss;
  if (out.weight != nullptr) *out.weight = z.triplet ? count * (count - 1) : count;
  give(out.dscale, out.add_scale, all.scale * factor);
  give(out.dbias, out.add_bias, all.bias * factor);
}

// The products of a tile of `rows` rows: its numbers, da, and what it adds to db.
struct TileProducts {
  std::shared_ptr<Product> numbers, da, db;

  TileProducts(const Pairs& z, DType type, int64_t rows, bool has_da, bool has_db) {
    const int64_t of_row = alignment_of(z.tile * z.width * dtype_bytes(type));
    ProductShape shape;
    shape.in = type;
    shape.m = rows, shape.n = z.rows, shape.k = z.width;
    shape.transpose_b = true;
    shape.ldc = z.ld;
    shape.alignment_a = of_row;
    numbers = make_product(shape);
    if (has_da) {
      ProductShape s;
      s.in = s.out = type;
      s.m = rows, s.n = z.width, s.k = z.rows;
      s.lda = z.ld_narrow;
      s.alignment_c = of_row;
      da = make_product(s);
    }
    if (has_db) {
      ProductShape s;
      s.in = type;
      s.m = z.rows, s.n = z.width, s.k = rows;
      s.transpose_a = true;
      s.lda = z.ld_narrow;
      s.alignment_b = of_row;
      db = make_product(s);
    }
  }
  int64_t workspace_bytes() const {
    int64_t most = 0;
    for (const auto& p : {numbers, da, db})
      if (p != nullptr) most = std::max(most, p->workspace_bytes());
    return most;
  }
};

// Forward too: it has no outputs behind the first two. dloss: operand 4 of the gradient.
std::unique_ptr<Kernel> make_pairs(const Signature& s) {
  const DType type = s.in[0].dtype;
  if (!fast_float(s.in[0]) || s.in[1].dtype != type || s.in[1].packed_bytes != 0) return nullptr;
  for (const size_t i : {2, 3})
    if (s.has_in(i) && !plain_f32(s.in[i])) return nullptr;
  for (const size_t i : {2, 3})
    if (s.has_out(i) && s.out[i].dtype != type) return nullptr;
  const bool has_da = s.has_out(2), has_db = s.has_out(3);
  Pairs z{};
  z.rows = s.in[0].shape[0], z.width = s.in[0].shape[1];
  z.tile = std::min(kMostRows, (z.rows + 1) / 2);
  z.ld = align_up(z.rows, 32), z.ld_narrow = align_up(z.rows, 128 / dtype_bytes(type));
  z.triplet = s.attrs->word("kind") == "triplet";
  z.margin = static_cast<float>(s.attrs->real("margin", 0.2));
  const TileProducts of_tile(z, type, z.tile, has_da, has_db);
  const int64_t left = z.rows % z.tile;
  const TileProducts of_rest = left == 0 ? of_tile : TileProducts(z, type, left, has_da, has_db);
  Workspace space;
  const int64_t numbers_at = space.add(z.tile * z.ld * 4),
                sums_at = space.add(z.rows * static_cast<int64_t>(sizeof(RowSums))),
                narrow_at = has_da || has_db ? space.add(z.tile * z.ld_narrow * dtype_bytes(type)) : -1,
                db_at = has_db && type != DType::kF32 ? space.add(z.rows * z.width * 4) : -1,
                product_at = space.add(std::max(of_tile.workspace_bytes(), of_rest.workspace_bytes()));
  return with_float(type, [&](auto zero) {
    using T = decltype(zero);
    return make_kernel(
        [=](const Call& call) {
          const cudaStream_t stream = stream_of(call);
          const auto *a = input<const T>(call, 0), *b = input<const T>(call, 1);
          const auto* dloss = input<const double>(call, 4);
          auto* const numbers = Workspace::at<float>(call, numbers_at);
          auto* const sums = Workspace::at<RowSums>(call, sums_at);
          T* const narrow = narrow_at < 0 ? nullptr : Workspace::at<T>(call, narrow_at);
          void* const db = db_at < 0 ? data_of(call.out, 3) : Workspace::at(call, db_at);
          for (int64_t first = 0; first < z.rows; first += z.tile) {
            const bool full = first + z.tile <= z.rows;
            const TileProducts& products = full ? of_tile : of_rest;
            const T* const rows = a + first * z.width;
            ProductCall product{.stream = stream,
                                .a = rows,
                                .b = b,
                                .c = numbers,
                                .workspace = Workspace::at(call, product_at)};
            products.numbers->run(product);
            launch(stream, pair_rows<T>, {.blocks = full ? z.tile : left, .threads = kThreads}, z, first,
                   numbers, input<const float>(call, 2), input<const float>(call, 3), dloss, narrow, sums);
            product.a = narrow;
            product.c = output<T>(call, 2) + first * z.width;
            if (has_da) products.da->run(product);
            product.b = rows, product.c = db, product.accumulate = first > 0;
            if (has_db) products.db->run(product);
          }
          if (db_at >= 0)
            round_copy(stream, static_cast<const float*>(db), type, data_of(call.out, 3), z.rows * z.width);
          launch(stream, pair_sums, {.blocks = 1, .threads = kSumThreads}, z, sums, dloss,
                 PairOutputs{output<double>(call, 0), output<double>(call, 1), output<float>(call, 4),
                             output<float>(call, 5), accumulates(call, 4), accumulates(call, 5)});
        },
        space.bytes());
  });
}

}  // namespace

std::unique_ptr<Kernel> make_pair_loss(const Signature& s) { return make_pairs(s); }
std::unique_ptr<Kernel> make_pair_loss_grad(const Signature& s) { return make_pairs(s); }

}  // namespace cairn::kernels::cuda
