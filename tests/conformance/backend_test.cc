#include "tests/conformance/backend.h"

#include "kernels/registry.h"

namespace cairn::conformance {
namespace {

TEST(Backend, GatesOfUpdates) {
  check_grad_scales(kernels::reference_registry());
  check_grad_scales(kernels::cpu_registry());
}

TEST(Backend, UpdatesRoundByTheBitsOfTheElement) {
  check_rounding(kernels::reference_registry());
  check_rounding(kernels::cpu_registry());
}

TEST(Backend, HalvesOfAParameterAreWhatIsMadeOfAWholeOne) {
  check_splitting(kernels::reference_registry());
  check_splitting(kernels::cpu_registry());
}

TEST(Backend, UpdatesWritePackedWeights) {
  EXPECT_EQ(check_packing(kernels::reference_registry()), 0);
  EXPECT_GT(check_packing(kernels::cpu_registry()), 0);
}

TEST(Backend, UpdatesThatNoKernelTakes) {
  check_refusals(kernels::reference_registry());
  check_refusals(kernels::cpu_registry());
}

// Sums go over whole tensors: in parts that the shape alone decides. Large enough for tiles and for several parts.
TEST(Backend, UpdatesOfWholeTensorsHaveTheSameBitsAtAnyNumberOfThreads) {
  for (const UpdateKind& kind : update_kinds()) {
    std::vector<TensorDesc> tensors = update_tensors(kind);
    if (tensors.empty()) continue;
    SCOPED_TRACE(kind.name());
    for (const Shape& shape : {Shape{300, 520}, Shape{520, 300}}) tensors.push_back({DType::kF32, shape, 0});
    if (!kind.row->is(ops::UPDATE_MATRICES)) tensors.push_back({DType::kF32, Shape{70001}, 0});
    for (const TensorDesc& x : tensors) {
      const Direct d = update_call(kind, x, false);
      std::vector<std::string> expected;
      for (const int threads : {1, 2, 3}) {
        SCOPED_TRACE(cat(to_string(x), ", ", threads, " threads"));
        set_thread_count(threads);
        Drawn drawn(d);
        drawn.run(kernels::cpu_registry(), d, {}, threads);
        for (size_t o = 0; o < 1 + kind.states(x).size(); ++o) {
          if (threads == 1) expected.push_back(drawn.bytes(o));
          EXPECT_TRUE(drawn.bytes(o) == expected[o]) << "output " << o;
        }
      }
      set_thread_count(1);
    }
  }
}

TEST(Backend, CpuKernelsAgreeWithTheReference) { check_backend(kernels::cpu_registry()); }

}  // namespace
}  // namespace cairn::conformance
