// Rows of products of pairs: their losses, and the gradients that they become.
#pragma once
#include <cstdint>

namespace cairn::kernels::cpu {

// s = scale p + bias, of product p.
struct PairLoss {
  bool triplet = false;
  float scale = 1, bias = 0, margin = 0;
  bool gradient = false;  // products are overwritten: by `factor` times the loss's derivative by s
  float factor = 1;
};

// Sums over pairs, or over those of a row.
struct PairSums {
  double loss = 0, ds = 0, ds_product = 0;  // ds: derivatives by s
  void add(const PairSums& o) { loss += o.loss, ds += o.ds, ds_product += o.ds_product; }
};

// Of pairs that do not belong together: n products of one row. own: the product of the pair that does (triplet).
PairSums other_pairs(const PairLoss&, float* products, int64_t n, float own);

}  // namespace cairn::kernels::cpu
