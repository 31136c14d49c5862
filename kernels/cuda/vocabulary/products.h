// The products of the fused loss, over a vocabulary or a part of one, for chunks of rows: logits, and from logits that became
// their own gradient those of the input and of the weight. A part's have the bits that they have in one piece: the input's
// gradient is summed over units of the vocabulary (exponentials.h), one after the other, and the algorithms are those of one piece.
#pragma once
#include <memory>
#include <vector>

#include "kernels/cuda/common/workspace.h"
#include "kernels/cuda/products/linear.h"
#include "kernels/cuda/products/product.h"

namespace cairn::kernels::cuda {

struct HeadSizes {
  int64_t rows, width;
  int64_t n, first,
      vocab;      // this part has n rows of the weight, from row `first` on; the vocabulary has `vocab`
  int64_t unit;   // rows of a unit (units.h); the last unit has the rest
  int64_t chunk;  // rows of logits that are computed at a time
  int64_t ld, whole_ld;  // elements from one row of logits to the next, which begin at multiples of 128 bytes
  int64_t ignore;
  DType type;  // of products, and of logits

  // x and w are operands 0 and 1; the attributes first and vocab, where they are there, say which part w is.
  explicit HeadSizes(const Signature& s);
  int64_t count(int64_t row) const { return row + chunk <= rows ? chunk : rows - row; }
  int64_t x_bytes(int64_t row) const { return row * width * dtype_bytes(type); }
  int64_t between_chunks() const { return chunk < rows ? chunk : 0; }
  // units: the first row of each unit of w. unit_sizes: the columns of a unit, and those of the last unit if they differ.
  std::vector<int64_t> units() const, unit_sizes() const;
};

class HeadProducts {
 public:
  // With gradients of x and w where has_dx and has_dw say so. narrow_dx: that of x is of the products' type, not float32.
  HeadProducts(const Signature& s, bool has_dx, bool narrow_dx, bool has_dw, Workspace* space);

  const HeadSizes z;
  char* logits(const Call& call) const { return Workspace::at<char>(call, logits_at_); }
  // For the chunk from `row` on. x, dx: of that row; before: float32, what sums over earlier parts are; may be nullptr.
  void make_logits(const Call& call, int64_t row, const void* x, const void* w) const;
  void input_gradient(const Call& call, int64_t row, const void* w, const float* before, void* dx) const;
  void weight_gradient(const Call& call, int64_t row, const void* x, float* dw, bool accumulate) const;

 private:
  struct OfChunk {
    std::shared_ptr<Product> logits, dw;
    std::vector<std::shared_ptr<Product>> dx;  // by unit
    int64_t workspace_bytes() const;
  };
  // n and ld: the vocabulary's or the part's.
  ProductShape logits_shape(int64_t m, int64_t n, int64_t ld) const,
      dx_shape(int64_t m, int64_t k, int64_t ld) const, dw_shape(int64_t m, int64_t n, int64_t ld) const;
  OfChunk make(int64_t m, bool has_dx, bool has_dw, Chooser& chooser) const;
  const OfChunk& of(int64_t row) const { return z.count(row) == z.chunk ? whole_ : rest_; }

  std::vector<int64_t> units_;
  bool sums_apart_;  // the input's gradient is summed in float32 in the workspace, then rounded
  DType dx_type_;
  OfChunk whole_, rest_;
  int64_t logits_at_ = 0, products_at_ = 0, sums_at_ = 0;
};

// Of device memory.
void copy_floats(cudaStream_t stream, const float* from, float* to, int64_t count);

}  // namespace cairn::kernels::cuda
