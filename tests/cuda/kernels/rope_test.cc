// Positions and sequences shared among blocks, groups and single elements.
#include "tests/cuda/kernels/direct.h"

namespace cairn::conformance {
namespace {

TEST(CudaRope, AgreesWhereverBlocksAreCut) {
  struct Size {
    int64_t batch, time, heads, dim;
  };
  for (const DType t : {DType::kF32, DType::kBF16})
    for (const Size& s : {Size{2, 40, 3, 128}, Size{3, 17, 5, 16}, Size{2, 33, 3, 6}, Size{1100, 1, 1, 8},
                          Size{1, 3000, 2, 8}, Size{2, 3, 1, 1100}, Size{1, 2, 1, 14000}})
      for (const int64_t inverse : {0, 1}) {
        const TensorDesc x = desc(t, {s.batch, s.time, s.heads * s.dim});
        agree({"rope", {x}, {x}, {{"heads", s.heads}, {"inverse", inverse}, {"base", 5e5}}});
      }
}

TEST(CudaRope, AgreesWhereverPairsLieAndWhateverTheirPositionsAre) {
  struct Size {
    int64_t batch, time, heads, dim, columns;
  };
  for (const DType t : {DType::kF32, DType::kBF16})
    for (const Size& s : {Size{2, 5, 3, 128, 128}, Size{1, 3, 5, 80, 20}, Size{2, 4, 2, 96, 64},
                          Size{1, 2, 1, 7, 6}, Size{1, 2, 1, 2048, 2048}})
      for (const int64_t interleaved : {0, 1}) {
        const TensorDesc x = desc(t, {s.batch, s.time, s.heads * s.dim}),
                         positions = desc(DType::kI32, {s.batch, s.time});
        const std::vector<double> frequencies(static_cast<size_t>(s.columns / 2), 0.37);
        agree({"rope",
               {x, positions},
               {x},
               {{"heads", s.heads},
                {"columns", s.columns},
                {"interleaved", interleaved},
                {"frequencies", frequencies},
                {"inverse", interleaved},
                {"factor", 1.5}}});
      }
}

}  // namespace
}  // namespace cairn::conformance
