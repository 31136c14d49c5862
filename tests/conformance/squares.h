// The sum of squares of a tensor that comes in pieces of whole chunks against that of the whole, to the bit; for every backend.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/kernel.h"
#include "runtime/base/parallel.h"
#include "tests/conformance/cases.h"

namespace cairn::conformance {

inline void run_on(const kernels::Registry& registry, std::string_view op, const Attrs& attrs,
                   const Tensor& in, const Tensor& out, int threads, uint32_t accumulate) {
  const auto kernel = registry.find({op, {&in.desc, 1}, {&out.desc, 1}, 1, 1, &attrs, threads});
  ASSERT_NE(kernel, nullptr) << op;
  Buffer workspace(kernel->workspace_bytes());
  set_thread_count(threads);
  kernel->run({{&in, 1}, {&out, 1}, workspace.data(), accumulate, {}});
  set_thread_count(1);
  EXPECT_TRUE(workspace.guard_intact()) << op;
}

inline void expect_squares_in_pieces(const kernels::Registry& registry, DType type, int64_t count,
                                     int64_t chunks_at_once, int threads) {
  SCOPED_TRACE(
      cat(dtype_name(type), '[', count, "] in pieces of ", chunks_at_once, " chunks, ", threads, " threads"));
  ASSERT_NE(registry.squares_chunk, nullptr);
  const int64_t chunk = registry.squares_chunk(count), chunks = (count + chunk - 1) / chunk,
                piece = chunk * chunks_at_once, bytes = dtype_bytes(type);
  EXPECT_EQ(chunk % 8, 0);
  const Attrs none, of_chunk{{"chunk", chunk}};
  const TensorDesc scalar{DType::kF64, Shape{}, 0};
  Buffer x(count * bytes), sums(chunks * 8), whole(8), pieced(8);
  fill({{type, Shape{count}, 0}, x.data()}, 5, {'T', {}, -2, 2});
  for (int64_t begin = 0; begin < count; begin += piece) {
    const int64_t here = std::min(piece, count - begin);
    const Tensor in{{type, Shape{here}, 0}, static_cast<char*>(x.data()) + begin * bytes};
    const Tensor out{{DType::kF64, Shape{(here + chunk - 1) / chunk}, 0},
                     static_cast<double*>(sums.data()) + begin / chunk};
    run_on(registry, "squares_of_chunks", of_chunk, in, out, threads, 0);
  }
  EXPECT_TRUE(sums.guard_intact());
  for (const uint32_t accumulate : {0u, 1u}) {
    for (Buffer* total : {&whole, &pieced}) fill({scalar, total->data()}, 7, {'T', {}, 0.1, 1});
    run_on(registry, "sum_squares", none, {{type, Shape{count}, 0}, x.data()}, {scalar, whole.data()},
           threads, accumulate);
    run_on(registry, "sum_of_chunks", none, {{DType::kF64, Shape{chunks}, 0}, sums.data()},
           {scalar, pieced.data()}, threads, accumulate);
    EXPECT_EQ(std::memcmp(whole.data(), pieced.data(), 8), 0) << "accumulate " << accumulate;
    EXPECT_TRUE(pieced.guard_intact());
  }
}

// Counts around chunks, several pieces of one or more chunks with a rest, all at once; where the size of a chunk may follow the
// tensor's.
inline void check_squares_in_chunks(const kernels::Registry& registry, int threads = 1) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16})
    for (const int64_t count : {1, 8191, 8192, 8197, 65537, 100003, 300001})
      for (const int64_t chunks_at_once : {1, 3, 100})
        expect_squares_in_pieces(registry, type, count, chunks_at_once, threads);
  expect_squares_in_pieces(registry, DType::kF32, 9000001, 300, threads);
}

}  // namespace cairn::conformance
