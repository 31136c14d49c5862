// Every shape of a pass, chunks, several runs of axes.
#include "tests/cuda/kernels/direct.h"

namespace cairn::conformance {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kBF16};

void check(std::initializer_list<int64_t> shape, const List& axes, const char* op = "reduce_sum",
           std::span<const DType> types = kTypes) {
  for (const DType t : types) {
    const TensorDesc x = desc(t, shape);
    List kept;
    for (int i = 0; i < x.shape.rank; ++i)
      if (!axes.empty() && std::find(axes.begin(), axes.end(), i) == axes.end()) kept.push_back(x.shape[i]);
    agree({op, {x}, {{t, Shape(std::span<const int64_t>(kept)), 0}}, with("axes", axes)});
  }
}

TEST(CudaReduce, Rows) {
  check({100, 64}, {1});
  check({9, 4099}, {1});
  check({3, 20000}, {1});  // in chunks
  check({3, 20001}, {1});
  check({50, 2056}, {1});
  check({100000}, {}, "reduce_mean");
}

TEST(CudaReduce, Columns) {
  check({1000, 256}, {0});  // in chunks
  check({1000, 33}, {0});
  check({30001, 3}, {0});
  check({3, 300, 264}, {1}, "reduce_mean");
  check({40, 5, 8}, {1});
}

// Enough for a thread each.
TEST(CudaReduce, ManyOutputs) {
  check({2, 3, 262144}, {1}, "reduce_sum", {&kTypes[1], 1});
  check({2, 524289}, {0}, "reduce_sum", {&kTypes[0], 1});
  check({524289, 2}, {1}, "reduce_mean", {&kTypes[1], 1});
}

TEST(CudaReduce, SeveralRunsOfAxes) {
  check({60, 5, 30, 8}, {0, 2});
  check({6, 200, 3, 16}, {1, 3}, "reduce_mean");
  check({6, 1, 7, 1, 3, 2}, {0, 2, 4});
  check({5, 1, 7}, {1});
}

TEST(CudaReduce, LeadingAxesWrittenOrAdded) {
  for (const DType t : kTypes)
    for (const int64_t n : {1, 3, 64, 768}) {
      agree({"reduce_leading", {desc(t, {25, 10, n})}, {desc(DType::kF32, {n})}, with("rank", int64_t{1})});
      agree({"reduce_leading", {desc(t, {50, 7, n})}, {desc(DType::kF32, {7, n})}, with("rank", int64_t{2})});
      agree({"reduce_leading", {desc(t, {25, 10, n})}, {desc(DType::kF32, {})}, with("rank", int64_t{0})});
    }
}

}  // namespace
}  // namespace cairn::conformance
