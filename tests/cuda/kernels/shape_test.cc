// Moves over several blocks, in units of every width, and repetition.
#include "tests/cuda/kernels/direct.h"

namespace cairn::conformance {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kBF16, DType::kF64};

TensorDesc permuted(const TensorDesc& x, const List& perm) {
  TensorDesc y = x;
  for (int i = 0; i < y.shape.rank; ++i) y.shape[i] = x.shape[static_cast<int>(perm[static_cast<size_t>(i)])];
  return y;
}

TEST(CudaTranspose, TakesAnyPermutation) {
  for (const DType t : kTypes) {
    for (const List& perm :
         {List{0, 1, 2}, List{0, 2, 1}, List{1, 0, 2}, List{1, 2, 0}, List{2, 0, 1}, List{2, 1, 0}})
      for (const TensorDesc& x :
           {desc(t, {70, 9, 131}), desc(t, {3, 200, 64}), desc(t, {72, 3, 136}), desc(t, {5, 1, 300})})
        agree({"transpose", {x}, {permuted(x, perm)}, with("perm", perm)});
    for (const List& perm :
         {List{0, 2, 1, 3}, List{3, 1, 2, 0}, List{2, 3, 0, 1}, List{0, 3, 2, 1}, List{1, 0, 3, 2}})
      for (const TensorDesc& x : {desc(t, {2, 65, 3, 64}), desc(t, {9, 2, 66, 10}), desc(t, {5, 4, 3, 7})})
        agree({"transpose", {x}, {permuted(x, perm)}, with("perm", perm)});
  }
}

TEST(CudaSlice, CutsAndPadsOnEveryAxis) {
  for (const DType t : kTypes)
    for (const int64_t inner : {1, 3, 48})
      for (const int64_t begin : {0, 8, 13}) {
        const TensorDesc wide = desc(t, {6, 250, inner}), part = desc(t, {6, 96, inner});
        agree({"slice", {wide}, {part}, {{"axis", int64_t{-2}}, {"begin", begin}, {"end", begin + 96}}});
        if (is_float(t))
          agree({"slice_grad",
                 {part},
                 {wide},
                 {{"axis", int64_t{1}}, {"begin", begin}, {"size", int64_t{250}}}});
      }
}

TEST(CudaConcat, JoinsOnEveryAxis) {
  for (const DType t : kTypes)
    for (const int64_t inner : {1, 3, 48})
      agree({"concat",
             {desc(t, {60, 9, inner}), desc(t, {60, 40, inner}), desc(t, {60, 8, inner})},
             {desc(t, {60, 57, inner})},
             with("axis", int64_t{1})});
}

TEST(CudaExpand, RepeatsOverAnyAxes) {
  struct Axes {
    List axes;
    std::initializer_list<int64_t> dy;
  };
  for (const DType t : {DType::kF32, DType::kBF16})
    for (const int64_t last : {64, 7})
      for (const Axes& a : {Axes{{}, {}}, Axes{{0}, {50, last}}, Axes{{1}, {6, last}}, Axes{{-1}, {6, 50}},
                            Axes{{0, 2}, {50}}, Axes{{1, 2}, {6}}})
        agree({"expand",
               {desc(t, a.dy)},
               {desc(t, {6, 50, last})},
               {{"shape", List{6, 50, last}}, {"axes", a.axes}, {"factor", 0.7}}});
}

}  // namespace
}  // namespace cairn::conformance
