// Checkpoints without their frozen parameters: what goes with them is known by its digest.
#include <gtest/gtest.h>

#include "runtime/io/checkpoint.h"
#include "runtime/io/inspect.h"
#include "runtime/io/manifest.h"
#include "tests/runtime/io/rig.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::io {
namespace {

constexpr const char* kFrozen = "h0.mlp";  // of the sample, one

Extras without() { return {{}, {}, true}; }

std::vector<float> frozen_of(const test::Rig& rig) {
  const int32_t id = rig.session->plan().joint->find(kFrozen);
  std::vector<float> values(static_cast<size_t>(rig.session->declared(id).shape.elements()));
  rig.session->read_declared(id, values.data());
  return values;
}

void put_frozen(test::Rig& rig, const std::vector<float>& values) {
  rig.session->write_declared(rig.session->plan().joint->find(kFrozen), values.data());
}

// Saved after `cut` micro-batches of three a step.
class Base : public testing::TestWithParam<uint64_t> {};

TEST_P(Base, GoesOnBitForBitWithTheSameOne) {
  const uint64_t cut = GetParam(), end = 9;
  const test::Scratch scratch;
  test::Rig whole, first;
  const std::vector<double> expected = whole.train(0, end);
  first.train(0, cut);
  save(*first.stepper, scratch / "saved", without());
  save(*first.stepper, scratch / "all", {});
  const Checkpoint checkpoint(scratch / "saved");
  ASSERT_NE(checkpoint.base(), nullptr);
  EXPECT_EQ(checkpoint.base()->hex(), first.session->base_digest().hex());
  EXPECT_EQ(Checkpoint(scratch / "all").base(), nullptr);
  EXPECT_EQ(checkpoint.tensors().size() + 1, Checkpoint(scratch / "all").tensors().size());
  for (const auto& tensor : checkpoint.tensors()) EXPECT_NE(tensor.name, kFrozen);
  EXPECT_NE(inspect(scratch / "saved").find("\"base\": {\"digest\": \"" + checkpoint.base()->hex()),
            std::string::npos);

  test::Rig resumed(test::sample_graph(), 99);
  const std::string before = resumed.digest();
  const auto other = test::failure([&] { checkpoint.restore(*resumed.stepper); });
  EXPECT_EQ(other.code, Code::kInvalidArgument);
  for (const std::string& word :
       {std::string("'h0.mlp' has other values"), checkpoint.base()->hex(), std::string("load the base")})
    EXPECT_NE(other.message.find(word), std::string::npos) << other.message;
  EXPECT_EQ(resumed.digest(), before);
  EXPECT_EQ(test::failure([&] { checkpoint.load_parameters(*resumed.session); }).code,
            Code::kInvalidArgument);
  EXPECT_EQ(resumed.digest(), before);

  put_frozen(resumed, frozen_of(first));
  checkpoint.restore(*resumed.stepper);
  EXPECT_EQ(resumed.train(cut, end),
            std::vector<double>(expected.begin() + static_cast<ptrdiff_t>(cut), expected.end()));
  EXPECT_EQ(resumed.digest(), whole.digest());
  EXPECT_EQ(resumed.session->base_digest().hex(), checkpoint.base()->hex());  // nothing has trained it

  test::Rig loaded(test::sample_graph(), 98);
  put_frozen(loaded, frozen_of(first));
  EXPECT_TRUE(checkpoint.load_parameters(*loaded.session).empty());
  test::Rig complete(test::sample_graph(), 97);
  Checkpoint(scratch / "all").load_parameters(*complete.session);
  EXPECT_EQ(loaded.digest(), complete.digest());
}
INSTANTIATE_TEST_SUITE_P(Cuts, Base, testing::Values(0, 3, 4));

// It is read once, and again after the host has written a part of it or has its address.
TEST(BaseDigest, KnowsWhatTheHostWrites) {
  test::Rig rig;
  const engine::BaseDigest* first = &rig.session->base_digest();
  const std::string before = first->hex();
  rig.train(0, 3);
  EXPECT_EQ(&rig.session->base_digest(), first);
  const int32_t id = rig.session->plan().joint->find(kFrozen);
  const float one = 1;
  rig.session->write_at(id, 8, &one, 4);
  const std::string after = rig.session->base_digest().hex();
  EXPECT_NE(after, before);
  if (!rig.session->device().info().host_reaches) return;
  static_cast<float*>(rig.session->address(id))[3] = 5;
  EXPECT_NE(rig.session->base_digest().hex(), after);
}

// Wherever it lives, the digest is that of the values.
TEST(BaseDigest, DoesNotDependOnTheTier) {
  test::Rig resident;
  engine::PlanOptions disk = test::Rig::two_tiers();
  disk.tiers = {Tier::kDisk};
  disk.budget_bytes = 1;
  try {
    test::Rig refused(test::sample_graph(), 7, disk);
  } catch (const Error& error) {
    disk.budget_bytes = static_cast<int64_t>(error.fault()->smallest_budget_bytes);
  }
  const test::Rig away(test::sample_graph(), 7, disk);
  EXPECT_EQ(away.session->base_digest().hex(), resident.session->base_digest().hex());
}

// Rows that a format by blocks can store.
std::shared_ptr<graph::Graph> wide_graph() {
  auto g = std::make_shared<graph::Graph>();
  const auto ids = g->input("ids", {DType::kI32, {2, 4}}),
             targets = g->input("targets", {DType::kI32, {2, 4}});
  const auto table = g->parameter("wte", {DType::kF32, {11, 64}}, {.init = graph::Init::kNormal});
  const auto w = g->parameter(kFrozen, {DType::kF32, {64, 64}},
                              {.frozen = true, .init = graph::Init::kNormal, .init_scale = 0.3});
  const auto x = g->op("linear", {g->op("embedding", {table, ids})[0], w})[0];
  const auto loss = g->op("linear_cross_entropy", {x, table, targets});
  g->freeze(loss[0], loss[1], {});
  return g;
}

TEST(Base, OfAnotherFormatIsAnotherOne) {
  const test::Scratch scratch;
  engine::PlanOptions rounded = test::Rig::two_tiers();
  rounded.formats = {{kFrozen, "int8"}};
  test::Rig plain(wide_graph()), first(wide_graph(), 7, rounded);
  save(*first.stepper, scratch / "saved", without());
  const Checkpoint checkpoint(scratch / "saved");
  const auto other = test::failure([&] { checkpoint.restore(*plain.stepper); });
  EXPECT_EQ(other.code, Code::kInvalidArgument);
  EXPECT_NE(other.message.find("'h0.mlp' is f32[64, 64], and was int8"), std::string::npos) << other.message;
  // Parameters alone are taken: the session has the base in full, which that format makes the checkpoint's of.
  EXPECT_TRUE(checkpoint.load_parameters(*plain.session).empty());
  test::Rig stranger(wide_graph(), 99);
  EXPECT_EQ(test::failure([&] { checkpoint.load_parameters(*stranger.session); }).code,
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace cairn::io
