// Gradients that come in pieces for their norm: the bits of the whole, whatever the threads.
#include "tests/conformance/squares.h"

#include "kernels/registry.h"

namespace cairn::conformance {
namespace {

TEST(SquaresOfChunks, AddUpToTheBitsOfTheWhole) {
  for (const int threads : {1, 3}) check_squares_in_chunks(kernels::cpu_registry(), threads);
}
TEST(SquaresOfChunks, AddUpToTheBitsOfTheWholeInPlansForAnyMachine) {
  ASSERT_NE(kernels::cpu_registry().any_machine, nullptr);
  check_squares_in_chunks(*kernels::cpu_registry().any_machine);
}

}  // namespace
}  // namespace cairn::conformance
