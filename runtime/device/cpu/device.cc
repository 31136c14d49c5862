#include "runtime/device/cpu/device.h"

#include <cstdlib>

#include "runtime/device/cpu/queue.h"

namespace cairn::device::cpu {
namespace {

class CpuDevice : public Device {
 public:
  CpuDevice(const kernels::Registry& registry, std::shared_ptr<host::State> state)
      : registry_(registry), state_(std::move(state)) {}
  const DeviceInfo& info() const override { return state_->info; }
  const kernels::Registry& kernels() const override { return registry_; }
  Ledger& ledger() override { return state_->ledger; }
  std::unique_ptr<Block> allocate(Tier tier, int64_t bytes) override {
    return std::make_unique<CpuBlock>(state_, tier, bytes);
  }
  std::shared_ptr<Group> create_group() override { return std::make_shared<host::HostGroup>(); }
  std::unique_ptr<Queue> create_queue(Lane lane, const std::shared_ptr<Group>& group) override {
    auto own = group == nullptr ? state_->shared_group : std::dynamic_pointer_cast<host::HostGroup>(group);
    require(own != nullptr, Code::kInvalidArgument, "the group belongs to another device, not to 'cpu'");
    return std::make_unique<CpuQueue>(state_, std::move(own), lane);
  }
  std::unique_ptr<Event> create_event() override { return std::make_unique<CpuEvent>(); }
  bool poisoned() const override { return false; }  // kernels of other groups are not concerned

 private:
  const kernels::Registry& registry_;
  const std::shared_ptr<host::State> state_;
};

std::string disk_directory(const DeviceOptions& options) {
  return options.disk_directory.empty() ? host::default_disk_directory() : options.disk_directory;
}

}  // namespace

DeviceInfo describe(std::string_view name, const DeviceOptions& options) {
  DeviceInfo info = describe(name, options.threads);
  info.link_bytes_per_second = options.link_bytes_per_second;
  info.disk_directory = disk_directory(options);
  return info;
}

std::shared_ptr<Device> open(std::string_view name, const kernels::Registry& registry,
                             const DeviceOptions& options) {
  require(options.threads >= 0, Code::kInvalidArgument, "threads must not be negative: ", options.threads);
  require(options.link_bytes_per_second >= 0, Code::kInvalidArgument,
          "the link's rate must not be negative: ", options.link_bytes_per_second);
  auto state = std::make_shared<host::State>(describe(name, options), options);
  state->team = std::make_unique<ThreadTeam>(state->info.threads);
  return std::make_shared<CpuDevice>(registry, std::move(state));
}

}  // namespace cairn::device::cpu
