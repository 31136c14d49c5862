// Rules of mixed precision on an (emulated) GPU.
#include "tests/runtime/compile/amp_rules.h"

namespace cairn::engine {
namespace {

INSTANTIATE_TEST_SUITE_P(Gpu, AmpRulesOn, ::testing::Values("cuda:0"), [](const auto&) { return "cuda"; });

}  // namespace
}  // namespace cairn::engine
