// A vocabulary in parts on an (emulated) GPU: the bits of one in one piece, in less memory.
#include "runtime/compile/cost_query.h"
#include "tests/runtime/compile/parts_check.h"

namespace cairn::engine {
namespace {

std::shared_ptr<device::Device> gpu(bool checked = false) {
  const auto device = device::open("cuda:0", {});
  return checked ? device::checked(device) : device;
}

// Large enough for three units of a row, the last one with a rest.
constexpr int64_t kVocab = 26005;

TEST(CudaVocabularyParts, HaveTheBitsOfOnePiece) {
  for (const graph::AmpMode amp : {graph::AmpMode::kOff, graph::AmpMode::kBf16, graph::AmpMode::kFp16})
    for (const PartsModel& m :
         {PartsModel{.vocab = kVocab, .width = 8, .rows = 5},
          PartsModel{.vocab = kVocab, .width = 12, .rows = 7, .tied = false, .chunk = 3},
          PartsModel{.vocab = 20000, .width = 8, .rows = 6, .weights = true, .accuracy = true},
          PartsModel{.vocab = kVocab, .width = 8, .rows = 3, .chunk = 2, .scale = 1.5, .softcap = 2},
          PartsModel{.vocab = 16384, .width = 16, .rows = 3, .frozen = true}})
      for (const int64_t parts : {2, 3}) {
        if (parts == 3 && m.vocab != kVocab) continue;
        if (amp != graph::AmpMode::kBf16 && (m.chunk == 0 || parts == 2)) continue;
        SCOPED_TRACE(cat(m.vocab, " x ", m.width, ", ", m.rows, " rows, ", parts, " parts, amp ",
                         static_cast<int>(amp)));
        PlanOptions whole = in_parts(1), split = in_parts(parts);
        whole.amp = split.amp = amp;
        expect_same_steps(m, whole, split, gpu(parts == 3));
      }
}

TEST(CudaVocabularyParts, AccumulateOverMicroBatches) {
  expect_same_steps({.vocab = 16384, .width = 8, .rows = 5, .tied = false}, in_parts(1, 3), in_parts(2, 3),
                    gpu(true));
}

// What a profile chose for the whole loss is the parts' as well.
TEST(CudaVocabularyParts, FollowAProfilesChoice) {
  const auto device = gpu();
  const PartsModel m{.vocab = kVocab, .width = 12, .rows = 7, .tied = false, .chunk = 3};
  for (const graph::AmpMode amp : {graph::AmpMode::kOff, graph::AmpMode::kBf16}) {
    PlanOptions whole = in_parts(1), split = in_parts(3);
    whole.amp = split.amp = amp;
    costs::Table table;
    costs::Profile& profile = table.profile.emplace();
    const auto plan = compile(graph_of(m), *device, whole);
    for (const graph::JointOp& op : plan->joint->ops())
      if (op.code == ops::OpCode::k_linear_cross_entropy_grad)
        profile.choices[query_of(*plan->joint, op).signature] = {
            .choice = "cublaslt|loops2|loops0|loops2|loops2|loops0|loops1|loops2|loops0"};
    ASSERT_EQ(profile.choices.size(), 1u);
    whole.costs = split.costs = std::make_shared<const costs::Table>(table);
    whole.force_costs = split.force_costs = true;
    expect_same_steps(m, whole, split, device);
  }
}

TEST(CudaVocabularyParts, AreWhatMeetsABudgetBelowTheHead) {
  expect_parts_below_the_head({.vocab = 60000, .width = 16, .rows = 8}, gpu());
}

// Weights with fewer rows than two units stay whole.
TEST(CudaVocabularyParts, SmallVocabulariesGoInOnePiece) {
  const auto device = gpu();
  const auto joint = compile(graph_of({.vocab = 16383}), *device, {})->joint;
  EXPECT_TRUE(part_units({&joint, 1}, device->kernels(), 1).empty());
  for (const int64_t vocab : {16384, 50257, 128256, 256000}) {
    const auto large = compile(graph_of({.vocab = vocab, .width = 8, .rows = 2}), *device, {})->joint;
    const PartUnits units = part_units({&large, 1}, device->kernels(), 1);
    ASSERT_EQ(units.size(), 1u) << vocab;
    EXPECT_LE(units.begin()->second, std::max<int64_t>(8192, vocab / 5)) << vocab;
  }
}

}  // namespace
}  // namespace cairn::engine
