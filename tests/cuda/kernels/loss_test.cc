// The losses: long rows, chunks of every size, targets that do not count or do not exist, infinite logits.
#include "kernels/registry.h"
#include "tests/cuda/kernels/rows_check.h"

namespace cairn::conformance {
namespace {

Argument weights(int64_t rows) { return floats(DType::kF32, {rows}, 0, 2); }

TEST(CudaLosses, CrossEntropy) {
  for (const DType t : kTypes)
    for (const int64_t classes : {40, 1001, 4104, 9000}) {
      const int64_t rows = 5;
      const Argument x = floats(t, {rows, classes}, -9, 9),
                     targets = integers({rows}, -1, static_cast<double>(classes));
      for (const Argument& w : {weights(rows), kLeftOut}) {
        const Attrs attrs{{"ignore_index", int64_t{-1}}};
        check_rows({"cross_entropy", {x, targets, w}, {scalar(), scalar()}, attrs});
        check_rows({"cross_entropy_grad", {x, targets, w}, {scalar(), scalar(), like(x)}, attrs});
      }
    }
}

// Blocks take several rows each, whose vectors begin at other columns, and rows are longer than shared memory.
TEST(CudaLosses, CrossEntropyOfManyAndOfLongRows) {
  for (const DType t : kTypes)
    for (const auto& [rows, classes] : {std::pair<int64_t, int64_t>{70, 4104}, {70, 4107}, {5, 70003}}) {
      const Argument x = floats(t, {rows, classes}, -9, 9),
                     targets = integers({rows}, -1, static_cast<double>(classes));
      for (const Argument& w : {weights(rows), kLeftOut}) {
        const Attrs attrs{{"ignore_index", int64_t{-1}}};
        RowCase c{"cross_entropy_grad", {x, targets, w}, {scalar(), scalar(), like(x)}, attrs};
        c.edit = [&, rows = rows](auto in) {
          for (int64_t row = 0; row < rows; row += 3) set(in[1], row, -1);
          set(in[1], 1, 0);
          set(in[1], 2, static_cast<double>(classes - 1));
        };
        check_rows(c);
        check_rows({"cross_entropy", {x, targets, w}, {scalar(), scalar()}, attrs});
      }
    }
}

TEST(CudaLosses, TargetsOutsideAndStrangeLogits) {
  for (const DType t : kTypes)
    for (const int64_t classes : {48, 33}) {
      const Argument x = floats(t, {6, classes}, -9, 9);
      RowCase c{"cross_entropy_grad",
                {x, integers({6}, 0, static_cast<double>(classes)), kLeftOut},
                {scalar(), scalar(), like(x)}};
      const auto with = [&](auto edit) {
        c.edit = edit;
        check_rows(c);
      };
      with([&](auto in) { set(in[1], 2, static_cast<double>(classes)); });
      with([&](auto in) { set(in[1], 2, -5); });
      with([&](auto in) { set(in[1], 2, -100); });
      with([&](auto in) { set(in[0], 3 * classes + 1, std::nan("")); });
      with([&](auto in) { set(in[0], 3 * classes + 1, HUGE_VAL); });
      with([&](auto in) {  // masked classes, but not the target
        set(in[1], 4, 0);
        for (int64_t v = 1; v < classes - 3; ++v) set(in[0], 4 * classes + v, -HUGE_VAL);
      });
      with([&](auto in) {
        for (int64_t v = 0; v < classes; ++v) set(in[0], 4 * classes + v, -HUGE_VAL);
      });
    }
}

TEST(CudaLosses, AccuracyOfEqualAndStrangeLogits) {
  for (const DType t : {DType::kF32, DType::kBF16, DType::kF16})
    for (const int64_t classes : {1, 3, 33, 1001, 9000})
      for (const Argument& w : {weights(40), kLeftOut}) {
        RowCase c{"accuracy",
                  {floats(t, {40, classes}, -9, 9), integers({40}, -1, static_cast<double>(classes)), w},
                  {scalar(), scalar()},
                  {{"ignore_index", int64_t{-1}}}};
        check_rows(c);
        const int64_t middle = classes / 2;
        c.edit = [&](auto in) {
          for (int64_t row = 0; row < 40; ++row) {
            set(in[0], row * classes + middle, 10);
            set(in[1], row, static_cast<double>(middle));
          }
          set(in[0], 1 * classes, 10);                // an equal one before the target,
          set(in[0], 2 * classes + classes - 1, 10);  // behind it
          set(in[0], 3 * classes, std::nan(""));
          set(in[0], 4 * classes + classes - 1, std::nan(""));
          set(in[0], 5 * classes + middle, std::nan(""));
          set(in[0], 6 * classes + middle, HUGE_VAL);
          set(in[0], 7 * classes, HUGE_VAL);
          set(in[1], 8, -1);
          set(in[1], 9, static_cast<double>(classes));
          if (in[2]) set(in[2], 10, 0);
        };
        check_rows(c);
      }
}

TEST(CudaLosses, MeanSquaresOfMixedTypes) {
  for (const DType tx : kTypes)
    for (const DType ty : kTypes)
      for (const int64_t columns : {12, 7}) {
        const Argument x = floats(tx, {300, columns}), y = floats(ty, {300, columns});
        for (const Argument& w : {weights(300), kLeftOut})
          for (const uint32_t present : {7u, 11u, 15u})
            check_rows({"mse_grad", {x, y, w}, {scalar(), scalar(), like(x), like(y)}, {}, present});
      }
}

TEST(CudaFusedLoss, ChunksOfAllSizes) {
  for (const DType t : kTypes)
    for (const int64_t chunk : {0, 1, 7, 32, 100}) {
      const int64_t rows = 45, width = 20, vocab = 131;
      const Argument x = floats(t, {rows, width}), w = floats(DType::kF32, {vocab, width}),
                     targets = integers({rows}, -1, static_cast<double>(vocab));
      const Attrs attrs{{"ignore_index", int64_t{-1}}, {"chunk", chunk}};
      check_rows({"linear_cross_entropy", {x, w, targets, weights(rows)}, {scalar(), scalar()}, attrs});
      for (const uint32_t present : {3u, 7u, 11u, 15u})
        check_rows({"linear_cross_entropy_grad",
                    {x, w, targets, kLeftOut, kLeftOut},
                    {scalar(), scalar(), like(x), like(w)},
                    attrs,
                    present});
      // Few classes, so that some rows are hits, and exact logits, of which many are equal.
      const Argument of = exact(t, {rows, width}), few = exact(DType::kF32, {3, width}),
                     of_few = integers({rows}, -1, 3);
      const Attrs counts{{"ignore_index", int64_t{-1}}, {"chunk", chunk}, {"accuracy", int64_t{1}}};
      check_rows({"linear_cross_entropy",
                  {of, few, of_few, weights(rows)},
                  {scalar(), scalar(), scalar(), scalar()},
                  counts});
      for (const uint32_t present : {51u, 63u})
        check_rows({"linear_cross_entropy_grad",
                    {of, few, of_few, kLeftOut, kLeftOut},
                    {scalar(), scalar(), like(x), like(few), scalar(), scalar()},
                    counts,
                    present});
    }
}

// Rows of several units, some longer than what a block keeps of them.
TEST(CudaFusedLoss, OfLargeVocabularies) {
  for (const DType t : kTypes)
    for (const auto& [vocab, chunk] : {std::pair<int64_t, int64_t>{16384, 0}, {20001, 2}, {70003, 3}}) {
      const int64_t rows = 5, width = 8;
      const Argument x = floats(t, {rows, width}, -2, 2), w = floats(DType::kF32, {vocab, width}, -2, 2),
                     targets = integers({rows}, -1, static_cast<double>(vocab));
      RowCase c{"linear_cross_entropy_grad",
                {x, w, targets, weights(rows), kLeftOut},
                {scalar(), scalar(), like(x), like(w)},
                {{"ignore_index", int64_t{-1}}, {"chunk", chunk}}};
      c.edit = [](std::span<const Tensor> in) {  // a unit whose logits are far below the others'
        for (int64_t i = 0; i < 8192 * width; ++i) set(in[1], i, 0);
      };
      check_rows(c);
    }
}

TEST(CudaFusedLoss, ATargetOutsideIsNotANumber) {
  RowCase c{
      "linear_cross_entropy_grad",
      {floats(DType::kF32, {9, 8}), floats(DType::kF32, {12, 8}), integers({9}, 0, 12), kLeftOut, kLeftOut},
      {scalar(), scalar(), f32({9, 8}), f32({12, 8})},
      {{"chunk", int64_t{4}}}};
  c.edit = [](std::span<const Tensor> in) { set(in[2], 5, 12); };
  check_rows(c);
}

// Logits take an eighth of what they would whole, between 64 and 256 MiB. Beside them are as many rows of the input's gradient in
// float32, which is summed unit by unit.
TEST(CudaFusedLoss, WorkspaceOfLargeVocabularies) {
  const auto bytes = [](int64_t rows, int64_t width = 768) {
    const TensorDesc x{DType::kBF16, Shape{rows, width}, 0}, w = f32({50257, width}),
                                                             targets{DType::kI32, Shape{rows}, 0};
    const std::vector<TensorDesc> in{x, w, targets}, out{scalar(), scalar(), x, w};
    const Attrs attrs;
    const kernels::Signature s{"linear_cross_entropy_grad", in, out, 7, 15, &attrs, 1};
    const auto kernel = kernels::select(kernels::cuda_registry(), s);
    return kernel->workspace_bytes() - 50257 * width * 2 -
           rows * 8;  // without the weight's copy and the losses
  };
  const int64_t mib = 1 << 20;
  const auto with_sums = [](int64_t logits, int64_t width = 768) {
    return logits + logits / (50257 * 2) * width * 4 + 4096;
  };
  EXPECT_LE(bytes(65536, 4096), with_sums(256 * mib, 4096));
  EXPECT_GE(bytes(65536, 4096), 200 * mib);
  EXPECT_LE(bytes(65536), with_sums(512 * mib)) << "narrow: more rows, so that dx has tiles for a GPU";
  EXPECT_GE(bytes(65536), 400 * mib);
  EXPECT_LE(bytes(4096), with_sums(65 * mib));
  EXPECT_LE(bytes(256), with_sums(25 * mib));
}

TEST(CudaAccuracy, AmongTheLargest) {
  for (const DType t : kTypes)
    for (const int64_t classes : {7, 1030})
      for (const int64_t top : {2, 5, 2000}) {
        RowCase c{"accuracy",
                  {exact(t, {40, classes}), integers({40}, -1, static_cast<double>(classes))},
                  {scalar(), scalar()},
                  with("top", top)};
        c.edit = [](std::span<const Tensor> in) { set(in[0], 3, std::nan("")); };
        check_rows(c);
        c.in[0] = floats(t, {40, classes});
        check_rows(c);
      }
}

// Tiles of rows of which the last is not full; the loss alone, and a part of the gradients.
TEST(CudaPairs, TilesAndPartsOfGradients) {
  for (const DType t : kTypes)
    for (const int64_t rows : {2, 21, 265})
      for (const char* kind : {"sigmoid", "triplet"}) {
        const Argument a = floats(t, {rows, 8}, -0.5, 0.5), one = floats(DType::kF32, {1}, 1, 2),
                       dloss = floats(DType::kF64, {}, 0.5, 2);
        const Attrs attrs{{"kind", std::string(kind)}, {"margin", 0.3}};
        check_rows({"pair_loss", {a, a, one, kLeftOut}, {scalar(), scalar()}, attrs});
        for (const uint32_t present : {0x3fu, 0x05u, 0x0au, 0x33u})
          check_rows({"pair_loss_grad",
                      {a, a, one, one, dloss},
                      {scalar(), scalar(), like(a), like(a), f32({1}), f32({1})},
                      attrs,
                      present});
      }
}

}  // namespace
}  // namespace cairn::conformance
