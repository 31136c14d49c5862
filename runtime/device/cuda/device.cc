#include "runtime/device/cuda/device.h"

#include <charconv>
#include <cstdlib>

#include "kernels/registry.h"
#include "runtime/device/cuda/numa.h"
#include "runtime/device/cuda/recording.h"

namespace cairn::device::cuda {
namespace {

class CudaDevice : public Device {
 public:
  explicit CudaDevice(std::shared_ptr<State> state)
      : state_(std::move(state)), shared_group_(std::make_shared<CudaGroup>(state_)) {}
  const DeviceInfo& info() const override { return state_->info; }
  const kernels::Registry& kernels() const override {
    cudaSetDevice(state_->ordinal);  // what is made from them asks libraries about the present device
    return kernels::cuda_registry();
  }
  Ledger& ledger() override { return state_->ledger(); }
  std::unique_ptr<Block> allocate(Tier tier, int64_t bytes) override {
    return std::make_unique<CudaBlock>(state_, tier, bytes);
  }
  std::shared_ptr<Group> create_group() override {
    state_->enter();
    return std::make_shared<CudaGroup>(state_);
  }
  std::unique_ptr<Queue> create_queue(Lane lane, const std::shared_ptr<Group>& group) override {
    return std::make_unique<CudaQueue>(state_, group == nullptr ? shared_group_ : own(group), lane);
  }
  std::unique_ptr<Event> create_event() override { return std::make_unique<CudaEvent>(state_); }
  bool poisoned() const override { return state_->lost.set(); }
  int64_t taken_bytes() const override {
    size_t free_bytes = 0, total_bytes = 0;
    state_->enter();
    state_->must(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
    return static_cast<int64_t>(total_bytes - free_bytes);
  }
  bool begin_recording(const std::shared_ptr<Group>& group, const Recording* measured) override {
    cuda::begin_recording(*own(group), measured);
    return true;
  }
  std::unique_ptr<Recording> end_recording(const std::shared_ptr<Group>& group) override {
    return cuda::end_recording(own(group));
  }

 private:
  static std::shared_ptr<CudaGroup> own(const std::shared_ptr<Group>& group) {
    auto mine = std::dynamic_pointer_cast<CudaGroup>(group);
    require(mine != nullptr, Code::kInvalidArgument, "the group belongs to another device, not to a GPU");
    return mine;
  }

  const std::shared_ptr<State> state_;
  const std::shared_ptr<CudaGroup> shared_group_;
};

int ordinal_of(std::string_view name) {
  const size_t colon = name.find(':');
  int ordinal = 0;
  if (colon != std::string_view::npos)
    std::from_chars(name.data() + colon + 1, name.data() + name.size(), ordinal);
  return ordinal;
}

}  // namespace

std::shared_ptr<Device> open(std::string_view name, const DeviceOptions& options) {
  require(options.link_bytes_per_second == 0, Code::kInvalidArgument,
          "the host link of a GPU cannot be throttled; its rate is measured (`cairn profile`)");
  const int ordinal = ordinal_of(name);
  DeviceInfo info = describe(cat("cuda:", ordinal), ordinal);
  const char* const temporary = std::getenv("TMPDIR");
  info.disk_directory = !options.disk_directory.empty()              ? options.disk_directory
                        : temporary != nullptr && *temporary != '\0' ? temporary
                                                                     : "/tmp";
  cudaDeviceProp p;
  check(cudaGetDeviceProperties(&p, ordinal), info.name);
  const int node = numa_node(p.pciDomainID, p.pciBusID, p.pciDeviceID);
  return std::make_shared<CudaDevice>(std::make_shared<State>(std::move(info), ordinal, node, options));
}

}  // namespace cairn::device::cuda
