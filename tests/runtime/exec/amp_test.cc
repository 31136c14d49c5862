// Rules of mixed precision on the devices of the processor.
#include "kernels/registry.h"
#include "tests/runtime/compile/amp_rules.h"

namespace cairn::engine {
namespace {

INSTANTIATE_TEST_SUITE_P(Devices, AmpRulesOn, ::testing::Values("reference", "cpu"),
                         [](const auto& test) { return test.param; });

// The reference device, whose softmax knows float32 alone.
class OneWideKernel : public device::Device {
 public:
  explicit OneWideKernel(std::shared_ptr<device::Device> inner) : inner_(std::move(inner)) {
    rows_.assign(inner_->kernels().rows.begin(), inner_->kernels().rows.end());
    for (kernels::KernelRow& row : rows_)
      if (row.op == "softmax")
        row.make = [](const kernels::Signature& s) -> std::unique_ptr<kernels::Kernel> {
          return s.in[0].dtype == DType::kF32 ? kernels::reference_registry().find(s) : nullptr;
        };
    registry_ = inner_->kernels();
    registry_.rows = rows_;
    registry_.gaps_filled = false;
  }
  const device::DeviceInfo& info() const override { return inner_->info(); }
  const kernels::Registry& kernels() const override { return registry_; }
  device::Ledger& ledger() override { return inner_->ledger(); }
  std::unique_ptr<device::Block> allocate(Tier tier, int64_t bytes) override {
    return inner_->allocate(tier, bytes);
  }
  std::shared_ptr<device::Group> create_group() override { return inner_->create_group(); }
  std::unique_ptr<device::Queue> create_queue(device::Lane lane,
                                              const std::shared_ptr<device::Group>& group) override {
    return inner_->create_queue(lane, group);
  }
  std::unique_ptr<device::Event> create_event() override { return inner_->create_event(); }
  bool poisoned() const override { return inner_->poisoned(); }

 private:
  std::shared_ptr<device::Device> inner_;
  std::vector<kernels::KernelRow> rows_;
  kernels::Registry registry_;
};

TEST(AmpRulesWithoutAKernel, TheRuleThatAsksForItIsNamed) {
  auto g = std::make_shared<Graph>();
  const ValueId x = g->input("x", {DType::kF32, {4, 8}}), target = g->input("target", {DType::kF32, {4, 8}});
  const ValueId y = g->op("softmax", {g->op("linear", {x, parameter(*g, "w", {8, 8})})[0]})[0];
  const auto loss = g->op("mse", {y, target});
  g->freeze(loss[0], loss[1], {});
  OneWideKernel device(device::open("reference", {}));
  EXPECT_NO_THROW(compile(g, device, options_of(AmpMode::kBf16)));
  const std::vector<AmpRule> rules = {{.op = "mse", .amp_class = "full"},
                                      {.op = "soft*", .amp_class = "half"}};
  try {
    compile(g, device, options_of(AmpMode::kBf16, rules));
    FAIL() << "there is a kernel";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnsupported);
    for (const char* word : {"softmax(bf16", "{op 'soft*', class 'half'}", "'default'"})
      EXPECT_NE(std::string_view(error.what()).find(word), std::string_view::npos) << error.what();
  }
}

}  // namespace
}  // namespace cairn::engine
