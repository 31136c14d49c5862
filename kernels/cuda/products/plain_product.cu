// Products that the library has no algorithm for: tiles of 32 x 32 in shared memory, a sum in order of k.
// Slow; for odd strides and sizes of one.
#include "kernels/cuda/common/support.h"
#include "kernels/cuda/products/product.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kTile = 32, kThreads = 256, kRows = kTile * kTile / kThreads;

// From one row to the next, from one column to the next, and from one matrix of the batch to the next.
struct Strides {
  int64_t row, column, matrix;
};

template <class In, class Out>
__global__ void __launch_bounds__(kThreads)
    plain_product(const In* a, const In* b, Out* c, int64_t m, int64_t n, int64_t k, Strides sa, Strides sb,
                  Strides sc, bool accumulate) {
  CAIRN_SHARED float tile_a[kTile][kTile + 1];
  CAIRN_SHARED float tile_b[kTile][kTile + 1];
  const int x = static_cast<int>(threadIdx.x) % kTile, y = static_cast<int>(threadIdx.x) / kTile * kRows;
  const int64_t tiles = (n + kTile - 1) / kTile;
  const int64_t row = blockIdx.x / tiles * kTile, column = blockIdx.x % tiles * kTile;
  a += blockIdx.z * sa.matrix;
  b += blockIdx.z * sb.matrix;
  c += blockIdx.z * sc.matrix;
  float sums[kRows] = {};
  for (int64_t from = 0; from < k; from += kTile) {
    for (int i = 0; i < kRows; ++i) {
      tile_a[y + i][x] =
          row + y + i < m && from + x < k ? load(a + (row + y + i) * sa.row + (from + x) * sa.column) : 0;
      tile_b[y + i][x] = from + y + i < k && column + x < n
                             ? load(b + (from + y + i) * sb.row + (column + x) * sb.column)
                             : 0;
    }
    __syncthreads();
    for (int j = 0; j < kTile; ++j)
      for (int i = 0; i < kRows; ++i) sums[i] += tile_a[y + i][j] * tile_b[j][x];
    __syncthreads();
  }
  for (int i = 0; i < kRows; ++i) {
    if (row + y + i >= m || column + x >= n) continue;
    Out* to = c + (row + y + i) * sc.row + column + x;
    store(to, accumulate ? load(to) + sums[i] : sums[i]);
  }
}

class PlainProduct final : public Product {
 public:
  explicit PlainProduct(const ProductShape& s)
      : shape_(s),
        a_{s.transpose_a ? 1 : s.row_of_a(), s.transpose_a ? s.row_of_a() : 1, s.stride_a},
        b_{s.transpose_b ? 1 : s.row_of_b(), s.transpose_b ? s.row_of_b() : 1, s.stride_b},
        c_{s.row_of_c(), 1, s.stride_c} {}
  int64_t workspace_bytes() const override { return 0; }

  void run(const ProductCall& call) const override {
    const int64_t blocks = (shape_.m + kTile - 1) / kTile * ((shape_.n + kTile - 1) / kTile);
    with_float(shape_.in, [&](auto in) {
      with_float(shape_.out, [&](auto out) {
        using In = decltype(in);
        using Out = decltype(out);
        launch(static_cast<cudaStream_t>(call.stream), plain_product<In, Out>,
               {.blocks = blocks, .threads = kThreads, .blocks_z = shape_.batch},
               static_cast<const In*>(call.a), static_cast<const In*>(call.b), static_cast<Out*>(call.c),
               shape_.m, shape_.n, shape_.k, a_, b_, c_, call.accumulate);
      });
    });
  }

 private:
  ProductShape shape_;
  Strides a_, b_, c_;
};

}  // namespace

std::unique_ptr<Product> make_plain_product(const ProductShape& shape) {
  require(shape.epilogue == Epilogue::kNone && shape.batch < 65536, Code::kUnsupported,
          "cuBLASLt has no algorithm for the product ", to_string(shape));
  return std::make_unique<PlainProduct>(shape);
}

std::unique_ptr<Product> make_product(const ProductShape& shape) {
  auto product = try_product(shape);
  return product != nullptr ? std::move(product) : make_plain_product(shape);
}

}  // namespace cairn::kernels::cuda
