// Sums over the rows of a matrix in two passes, for gradients of biases and norm parameters: blocks of rows
// to partial sums, then those. How rows are cut into blocks depends on the shape alone, so the bits do.
#pragma once
#include "kernels/cuda/common/support.h"

namespace cairn::kernels::cuda {

// Where sums go, in place of what is there or added to it; to nullptr: not wanted.
struct Total {
  float* to = nullptr;
  bool add = false;
};

// first[columns] (+)= sum over `parts` rows of partial, `stride` elements apart; second: over the `columns`
// elements that follow those of each row. partial is a multiple of 16 bytes.
void sum_partials(cudaStream_t stream, const float* partial, int64_t parts, int64_t columns, int64_t stride,
                  Total first, Total second = {});

// out[columns] (+)= sums over the rows of x[rows, columns] of a float dtype.
class ColumnSums {
 public:
  ColumnSums(int64_t rows, int64_t columns, DType dtype);
  int64_t workspace_bytes() const { return parts_ * columns_ * 4; }
  void run(cudaStream_t stream, const void* x, float* out, bool accumulate, void* workspace) const;

 private:
  int64_t rows_, columns_;
  DType dtype_;
  bool vectors_;
  int64_t tiles_, parts_;
};

// Into how many blocks of rows a matrix is cut that `tiles` blocks are wide: enough for a large GPU, and at
// least `least` rows each.
inline int64_t row_parts(int64_t rows, int64_t tiles, int64_t least) {
  constexpr int64_t kBlocks = 1056;  // 8 for each of 132 multiprocessors
  const int64_t most = (rows + least - 1) / least, wanted = (kBlocks + tiles - 1) / tiles;
  return wanted < most ? wanted : most;
}

}  // namespace cairn::kernels::cuda
