// What the fused losses make of products of x and the weight before the loss: logits = softcap tanh(scale product / softcap).
#pragma once
#include "kernels/cuda/vocabulary/products.h"

namespace cairn::kernels::cuda {

class LogitRows {
 public:
  // gradients: slope() is called, too.
  LogitRows(const Signature& s, const HeadSizes& z, bool gradients, Workspace* space);
  // Logits of `count` rows of products: in their place, or, where gradients need the products, in one of their own.
  char* make(const Call& call, const HeadSizes& z, int64_t count, char* products) const;
  // Gradients of logits, where make() put these, become those of the products, in the place of the products.
  void slope(const Call& call, const HeadSizes& z, int64_t count, const char* gradients,
             char* products) const;

 private:
  bool plain() const { return scale_ == 1 && cap_ == 0; }

  float scale_, cap_;  // cap: 0 where there is none
  int64_t own_at_ = -1;
};

}  // namespace cairn::kernels::cuda
