// What the fused losses make of a product of x and the weight before the loss: logits = softcap tanh(scale product / softcap).
#pragma once
#include "kernels/cpu/vocabulary/products.h"

namespace cairn::kernels::cpu {

class LogitRows {
 public:
  // gradients: slope() is called, too. Rows are z.n numbers of type z.logits.
  LogitRows(const Signature& s, const HeadSizes& z, bool gradients, Workspace* space);
  // A row of products becomes logits.
  void make(const Call& call, char* row, int thread) const;
  // Of the row that the thread made last: gradients of its logits become those of its products.
  void slope(const Call& call, char* row, int thread) const;

 private:
  char* kept(const Call& call, int thread) const {
    return Workspace::at<char>(call.workspace, kept_at_) + thread * bytes_;
  }

  DType type_;
  int64_t n_, bytes_, kept_at_ = -1;  // a thread's copy of the products
  float scale_, cap_;                 // cap: 0 where there is none
};

}  // namespace cairn::kernels::cpu
