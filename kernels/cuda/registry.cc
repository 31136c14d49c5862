#include "kernels/registry.h"

#include "kernels/cuda/attention/library.h"
#include "kernels/cuda/rows.h"
#include "runtime/base/optimizers/squares.h"

namespace cairn::kernels {

const Registry& cuda_registry() {
  static constexpr KernelRow kRows[] = {
#define KERNEL(op, name, isa, make) {#op, name, Isa::isa, cuda::make},
#include "kernels/cuda/kernels.def"
#undef KERNEL
  };
  static constexpr Registry kRegistry{.backend = "cuda",
                                      .rows = kRows,
                                      .packed_bytes = cuda::packed_bytes,
                                      .one_packed_form = true,
                                      .packed_is_copy = true,
                                      .gaps_filled = false,
                                      .choices = true,
                                      .batch = cuda::make_batch,
                                      .part_rows = cuda::head_unit,
                                      .squares_chunk = squares_chunk,
                                      .squares_threads = kSquaresThreads,
                                      .facts = [] { return BackendFacts{.note = cuda::attention_row()}; }};
  return kRegistry;
}

}  // namespace cairn::kernels
