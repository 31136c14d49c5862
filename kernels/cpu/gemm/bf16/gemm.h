// Matrix products of bfloat16 with float32 sums, on the AMX tiles, by AVX512_BF16's dot products or by AArch64's BFMMLA: C[M, N]
// (+)= A[M, K] B[K, N].
//
// A is row-major with K a multiple of 32, or in blocks. B is in panels of 32 columns: panel
// p holds, for every 32 steps of k, two tiles of 16 columns; a tile has rows of 16 groups of kTileGroup steps: of 16 pairs (k
// even, k odd), which TDPBF16PS reads tile by tile and VDPBF16PS row by row, or of 16 times four, of which BFMMLA reads two at
// a time. Missing columns and steps are zero. Bytes: packed_b_bytes(N, K).
//
// These functions run on the calling thread; callers share out panels or rows. Each product is a sum over k
// in fixed order, whatever the share, so results do not depend on the number of threads.
#pragma once
#include <cstdint>

#include "runtime/base/tensor.h"

namespace cairn::kernels::cpu {

inline constexpr int64_t kTileK = 32, kPanel = 32;
#if defined(__aarch64__)
inline constexpr int64_t kTileGroup = 4;
#else
inline constexpr int64_t kTileGroup = 2;
#endif

inline int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }
inline int64_t panels(int64_t n) { return (n + kPanel - 1) / kPanel; }
inline int64_t packed_b_bytes(int64_t n, int64_t k) { return panels(n) * kPanel * round_up(k, kTileK) * 2; }

// Panels [p0, p1) of B from w[N, K] row-major (B = w^T) ...
void pack_b_transposed(const float* w, int64_t ld, int64_t n, int64_t k, bf16* packed, int64_t p0,
                       int64_t p1);
void pack_b_transposed(const bf16* w, int64_t ld, int64_t n, int64_t k, bf16* packed, int64_t p0, int64_t p1);
// ... or from w[K, N] row-major (B = w).
void pack_b(const float* w, int64_t ld, int64_t n, int64_t k, bf16* packed, int64_t p0, int64_t p1);
void pack_b(const bf16* w, int64_t ld, int64_t n, int64_t k, bf16* packed, int64_t p0, int64_t p1);

// Blocks of 16 rows [g0, g1) of A^T, where a[K, M] is row-major, into A in blocks: block g holds, for every
// 32 steps of k, one tile: 16 rows of 32 steps, or, for dot products, 16 pairs of steps for each of 16 rows, which needs no
// transposition. Missing rows and steps are zero. Bytes: packed_a_bytes(M, K).
inline int64_t blocks_of_a(int64_t m) { return (m + 15) / 16; }
inline int64_t packed_a_bytes(int64_t m, int64_t k) { return blocks_of_a(m) * 16 * round_up(k, kTileK) * 2; }
void pack_a_transposed(const bf16* a, int64_t ld, int64_t m, int64_t k, bf16* packed, int64_t g0, int64_t g1);

// Prefetches the next slice of a weight that is not packed while this slice is multiplied. While panel i of this slice is
// multiplied by a block of 8 rows of A, each 32 steps of k fetch one row (or one cache line of it) of panel i of the next slice.
struct Ahead {
  const char* at = nullptr;
  int64_t panel = 0, row = 0,
          step = 0;  // bytes from a panel to the next one, to its next row, over 32 steps of k
  int64_t first_panel = 0, panels = 0;  // this slice's first one; how many the next slice has
  int shift = 0;                        // 1: a row has two cache lines, and a block fetches one of them
};

struct GemmOperands {
  const void* a;
  int64_t a_row, a_step, a_block;  // bytes between rows, between steps of 32 in k, between blocks of 16 rows
  bool pairs;  // A's tiles hold pairs of steps, as pack_a_transposed makes them for dot products
  const bf16* b;
  int64_t k;        // a multiple of kTileK
  int64_t b_panel;  // elements from one panel of B to the next: kPanel times the steps that were packed
  // Where what is made of the sums will be stored, for fetching meanwhile: C(0, the panel's first column), and bytes
  // between rows. nullptr: nowhere yet.
  const char* target = nullptr;
  int64_t target_row = 0;
  Ahead ahead = {};
};
inline GemmOperands row_major(const bf16* a, int64_t lda, const bf16* b, int64_t k) {
  return {a, lda * 2, 64, lda * 32, false, b, k, kPanel * k};
}
GemmOperands in_blocks(const bf16* a, const bf16* b, int64_t k);  // as pack_a_transposed made it

// Panels, a thread, of a weight that are packed at once for a product of m rows which fetches the next ones meanwhile
// (Ahead). 0: nothing is fetched.
int64_t fetched_panels(int64_t m, int64_t k);

inline constexpr int64_t kGemmNearRows =
    512;  // the most rows of A that are kept in cache while panels of B are multiplied

// What becomes of a finished block of sums: rows x 32 floats, c[r * 32 + j] is C(m + r, n + j).
class Epilogue {
 public:
  virtual ~Epilogue() = default;
  // Where C(0, 0) goes, in bfloat16, and bytes between rows; or nothing.
  struct Target {
    const char* at = nullptr;
    int64_t row = 0;
  };
  virtual Target target() const { return {}; }
  // Rows that may be done before `finished` is called for them.
  virtual int64_t most_rows() const { return kGemmNearRows; }
  virtual void block(const float* c, int64_t m, int64_t rows, int64_t n, int64_t columns) const = 0;
  // All blocks of these rows and columns [n0, n1) are done, and what was stored is still near.
  virtual void finished(int64_t /*m*/, int64_t /*rows*/, int64_t /*n0*/, int64_t /*n1*/) const {}
};

// Rows [m0, m1) x panels [p0, p1) of C through `scratch` (kGemmScratch bytes, of this thread) into an
// epilogue.
inline constexpr int64_t kGemmRows = 128;  // rows of a block of sums
inline constexpr int64_t kGemmScratch = kGemmRows * kPanel * 4;
void bf16_gemm(const GemmOperands& g, int64_t m0, int64_t m1, int64_t n, int64_t p0, int64_t p1,
               float* scratch, const Epilogue& epilogue);
// The same into float32 C[M, ldc], added to what is there or not. scratch: for the last columns when N is no
// multiple of 32; kSumRows or as many rows as there are, whichever is less, of 32 floats.
inline constexpr int64_t kSumRows = 256;
void bf16_gemm_f32(const GemmOperands& g, int64_t m0, int64_t m1, int64_t n, int64_t p0, int64_t p1,
                   float* scratch, float* c, int64_t ldc, bool add, int64_t whole_k = 0);
// Steps of k that such a product adds up before it adds to C, where C ends within a panel. Whoever adds up a longer product in shares
// of k, whole_k in all, has its bits where shares begin at multiples of that; where panels are full, any step of 32 will do.
int64_t bf16_block_depth(int64_t whole_k, int64_t n);

// dw[n0..n1, k] (+)= dy^T x: dy[rows, ld_dy] row-major, x packed by pack_b(x, k, k, rows). n0 is a multiple
// of 32. Blocks of dy are transposed in `space` (grad_weight_space(rows) bytes, of this thread) just before
// they are used. whole_rows: of the sum that this is a share of; 0: rows.
inline constexpr int64_t kGradRows = 64;  // of dw at a time
inline int64_t grad_weight_space(int64_t rows) {
  return packed_a_bytes(kGradRows, rows) + kGradRows * kPanel * 4;
}
void bf16_grad_weight(const bf16* dy, int64_t ld_dy, const bf16* x, int64_t rows, int64_t n0, int64_t n1,
                      int64_t k, float* dw, bool add, void* space, int64_t whole_rows = 0);

}  // namespace cairn::kernels::cpu
