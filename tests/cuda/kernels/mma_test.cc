// The matrix instructions, and products of tiles made of them, against plain loops.
#include "kernels/cuda/attention/mma.h"

#include <gtest/gtest.h>

#include <numeric>

namespace cairn::kernels::cuda {
namespace {

// Small whole numbers: products and sums are exact.
float number(int i, int j) { return static_cast<float>((i * 7 + j * 3 + i * j) % 11 - 5); }

// One product from fragments laid out by hand, element by element, as the instruction's documentation has
// them.
__global__ void multiply_by_hand(float* to) {
  const int lane = own_lane(), g = lane >> 2, t = lane & 3;
  unsigned a[4], b[2];
  for (int i = 0; i < 8; i += 2) {
    const int row = i < 2 || (i >= 4 && i < 6) ? g : g + 8, column = 2 * t + (i >= 4 ? 8 : 0);
    a[i / 2] = pack_pair<bf16>(number(row, column), number(row, column + 1));
  }
  for (int i = 0; i < 4; i += 2) {
    const int row = 2 * t + (i >= 2 ? 8 : 0);
    b[i / 2] = pack_pair<bf16>(number(row, g + 20), number(row + 1, g + 20));
  }
  float c[4] = {1, 1, 1, 1};
  mma_16x8x16<bf16>(c, a, b[0], b[1]);
  mma_16x8x16<bf16>(c, a, b[0], b[1]);
  for (int i = 0; i < 4; ++i) to[(i < 2 ? g : g + 8) * 8 + 2 * t + (i & 1)] = c[i];
}

TEST(CudaMma, MultipliesFragments) {
  std::vector<float> c(16 * 8);
  launch(nullptr, multiply_by_hand, {}, c.data());
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      float sum = 1;
      for (int k = 0; k < 16; ++k) sum += 2 * number(i, k) * number(k, j + 20);
      EXPECT_EQ(c[static_cast<size_t>(i * 8 + j)], sum) << i << ' ' << j;
    }
}

__global__ void load_matrices(const uint16_t* from, unsigned* plain, unsigned* transposed) {
  CAIRN_SHARED uint4 rows[32];
  const int lane = own_lane();
  uint16_t* own = reinterpret_cast<uint16_t*>(&rows[lane]);
  for (int i = 0; i < 8; ++i) own[i] = from[lane * 8 + i];
  __syncwarp();
  unsigned to[4];
  ldmatrix(to, shared_address(own));
  for (int i = 0; i < 4; ++i) plain[i * 32 + lane] = to[i];
  ldmatrix_transposed(to, shared_address(own));
  for (int i = 0; i < 4; ++i) transposed[i * 32 + lane] = to[i];
}

TEST(CudaMma, LoadsMatrices) {
  std::vector<uint16_t> from(32 * 8);
  std::iota(from.begin(), from.end(), uint16_t{0});
  std::vector<unsigned> plain(128), transposed(128);
  launch(nullptr, load_matrices, {}, from.data(), plain.data(), transposed.data());
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned g = lane / 4, t = lane % 4, matrix = i * 64;
      const auto at = [&](unsigned row, unsigned column) { return matrix + row * 8 + column; };
      EXPECT_EQ(plain[i * 32 + lane], at(g, 2 * t) | at(g, 2 * t + 1) << 16);
      EXPECT_EQ(transposed[i * 32 + lane], at(2 * t, g) | at(2 * t + 1, g) << 16);
    }
}

// rows = x y^T, product = rounded rows * y, of 32 rows x and 16 rows y.
template <int kD>
__global__ void multiply_tiles(const bf16* x, const bf16* y, int ld, int rows, int dim, float* to_rows,
                               bf16* to) {
  CAIRN_DYNAMIC_SHARED(char, shared);
  const Shared tile_x = shared_address(shared), tile_y = tile_x + Tile<kD>::bytes(32);
  copy_rows<kD, 32>(tile_x, x, ld, rows, dim);
  copy_rows<kD, 16>(tile_y, y, ld, 16, dim);
  cp_async_commit();
  cp_async_wait<0>();
  __syncthreads();
  float s[2][2][4], out[2][kD / 8][4];
  unsigned weights[2][1][4];
  dot_rows<bf16, kD>(s, tile_x, tile_y);
  round_pairs<bf16>(weights, s);
  clear(out);
  add_product<bf16, kD>(out, weights, tile_y);
  __syncthreads();
  if (own_warp() != 0) return;
  const int g = own_lane() / 4, t = own_lane() % 4;
  for (int m = 0; m < 2; ++m)
    for (int n = 0; n < 2; ++n)
      for (int i = 0; i < 4; ++i) to_rows[(16 * m + i / 2 * 8 + g) * 16 + 8 * n + 2 * t + i % 2] = s[m][n][i];
  const float half[2][2] = {{0.5f, 0.5f}, {0.5f, 0.5f}};
  store_rows<kD>(out, half, tile_x, to, ld, rows, dim);
}

template <int kD>
void check_tiles(int rows, int dim) {
  constexpr int kLd = kD + 8;
  std::vector<bf16> x(32 * kLd), y(16 * kLd), product(32 * kLd, bf16{0x1234});
  std::vector<float> dots(32 * 16);
  for (int i = 0; i < 32; ++i)
    for (int j = 0; j < kLd; ++j) {
      x[static_cast<size_t>(i * kLd + j)] = to_bf16(number(i, j) / 5);
      if (i < 16) y[static_cast<size_t>(i * kLd + j)] = to_bf16(number(j, i + 3) / 5);
    }
  launch(nullptr, multiply_tiles<kD>, {.threads = kMmaThreads, .shared_bytes = Tile<kD>::bytes(48)}, x.data(),
         y.data(), kLd, rows, dim, dots.data(), product.data());
  const auto at = [&](const std::vector<bf16>& v, int i, int j) {
    return to_float(v[static_cast<size_t>(i * kLd + j)]);
  };
  for (int i = 0; i < 32; ++i) {
    for (int j = 0; j < 16; ++j) {
      float sum = 0;
      for (int k = 0; k < dim && i < rows; ++k) sum += at(x, i, k) * at(y, j, k);
      EXPECT_NEAR(dots[static_cast<size_t>(i * 16 + j)], sum, 1e-4) << i << ' ' << j;
    }
    for (int j = 0; j < kLd; ++j) {
      float sum = 0;
      for (int k = 0; k < 16; ++k)
        sum += 0.5f * to_float(to_bf16(dots[static_cast<size_t>(i * 16 + k)])) * at(y, k, j);
      if (i < rows && j < dim) {
        EXPECT_NEAR(at(product, i, j), sum, 0.01 * std::fabs(sum) + 1e-4) << i << ' ' << j;
      } else {
        EXPECT_EQ(product[static_cast<size_t>(i * kLd + j)].bits, 0x1234) << i << ' ' << j;
      }
    }
  }
}

TEST(CudaMma, MultipliesTiles) {
  check_tiles<64>(32, 64);
  check_tiles<128>(32, 128);
  check_tiles<64>(27, 40);
  check_tiles<128>(5, 96);
}

__global__ void copy_late(const uint4* from, uint4* sooner, uint4* later) {
  CAIRN_SHARED uint4 to[2];
  if (threadIdx.x != 0) return;
  to[0] = to[1] = make_uint4(9, 9, 9, 9);
  cp_async(shared_address(to), from, true);
  cp_async_commit();
  cp_async(shared_address(to + 1), from, false);
  cp_async_commit();
  cp_async_wait<1>();
  sooner[0] = to[0];
  sooner[1] = to[1];
  cp_async_wait<0>();
  later[0] = to[0];
  later[1] = to[1];
}

// What is waited for is there; what is not may be there or not (emulated_test.cc).
TEST(CudaMma, CopiesWhenWaitedFor) {
  const uint4 from = make_uint4(1, 2, 3, 4);
  uint4 sooner[2], later[2];
  launch(nullptr, copy_late, {}, &from, sooner, later);
  EXPECT_EQ(sooner[0].w, 4u);
  EXPECT_TRUE(sooner[1].w == 9 || sooner[1].w == 0) << sooner[1].w;
  EXPECT_EQ(later[0].w, 4u);
  EXPECT_EQ(later[1].w, 0u);
}

TEST(CudaMma, Packs) {
  EXPECT_EQ(pack_pair<bf16>(1.0f, -2.0f), 0xc0003f80u);
  EXPECT_EQ(pack_pair<bf16>(1.00390625f, 1.01171875f), 0x3f823f80u);  // halfway: to even
}

}  // namespace
}  // namespace cairn::kernels::cuda
