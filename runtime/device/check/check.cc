// The wrapper: every call is checked by the Checker, then passed on.
#include <deque>

#include "runtime/device/check/checker.h"

namespace cairn::device {
namespace check {
namespace {

class CheckedBlock : public Block {
 public:
  CheckedBlock(std::shared_ptr<Checker> checker, std::unique_ptr<Block> inner)
      : checker_(std::move(checker)), inner_(std::move(inner)) {
    std::lock_guard lock(checker_->mutex);
    region_ = checker_->add_region(inner_->tier(), inner_->bytes(), inner_->address());
  }
  ~CheckedBlock() override {
    std::lock_guard lock(checker_->mutex);
    checker_->remove_region(region_, std::move(inner_));
  }
  Tier tier() const override { return inner_->tier(); }
  int64_t bytes() const override { return inner_->bytes(); }
  void* address() const override { return inner_->address(); }
  int64_t pinned_bytes() const override { return inner_->pinned_bytes(); }
  int64_t staging_bytes() const override { return inner_->staging_bytes(); }
  void write(int64_t offset, const void* from, int64_t bytes) override { inner_->write(offset, from, bytes); }
  void read(int64_t offset, void* to, int64_t bytes) const override { inner_->read(offset, to, bytes); }
  bool borrow(int64_t offset, int64_t bytes, std::shared_ptr<const InputFile> file, uint64_t at) override {
    return inner_->borrow(offset, bytes, std::move(file), at);
  }
  void own(int64_t offset, int64_t bytes) override { inner_->own(offset, bytes); }
  Block* inner() const { return inner_.get(); }
  Region* region() const { return region_; }
  const Checker* checker() const { return checker_.get(); }

 private:
  const std::shared_ptr<Checker> checker_;
  std::unique_ptr<Block> inner_;
  Region* region_;
};

class CheckedEvent : public Event {
 public:
  CheckedEvent(std::shared_ptr<Checker> checker, std::unique_ptr<Event> inner)
      : checker_(std::move(checker)), inner_(std::move(inner)) {}
  const Checker* checker() const { return checker_.get(); }
  Event& inner() const { return *inner_; }
  std::optional<VectorClock> recorded;  // guarded by the checker's mutex

 private:
  const std::shared_ptr<Checker> checker_;
  const std::unique_ptr<Event> inner_;
};

class CheckedQueue : public Queue {
 public:
  CheckedQueue(std::shared_ptr<Checker> checker, Lane lane, std::unique_ptr<Queue> inner)
      : checker_(std::move(checker)), lane_(lane), inner_(std::move(inner)) {
    std::lock_guard lock(checker_->mutex);
    id_ = checker_->add_queue();
  }
  // As with the device inside, work submitted is finished before the queue goes.
  ~CheckedQueue() override {
    inner_.reset();
    std::lock_guard lock(checker_->mutex);
    checker_->synchronised(checker_->clock(id_));
  }
  void reserve(size_t works, size_t parts) override { inner_->reserve(works, parts); }
  void launch(const kernels::Kernel& kernel, const kernels::Call& call) override {
    std::lock_guard lock(checker_->mutex);
    if (!checker_->poisoned() && launch_holds(kernel, call)) inner_->launch(kernel, call);
  }
  void copy(Location to, Location from, int64_t bytes) override {
    std::lock_guard lock(checker_->mutex);
    if (checker_->poisoned()) return;
    const std::string name = work_name("copy");
    const auto* target = own_block(to, bytes, name, "target");
    const auto* source = target != nullptr ? own_block(from, bytes, name, "source") : nullptr;
    if (source == nullptr) return;
    const Epoch now = checker_->start(id_);
    if (checker_->access(*source->region(), from.offset, bytes, false, {now, name}) &&
        checker_->access(*target->region(), to.offset, bytes, true, {now, name}))
      inner_->copy({target->inner(), to.offset}, {source->inner(), from.offset}, bytes);
  }
  void copy(std::span<const Copy> parts) override {
    std::lock_guard lock(checker_->mutex);
    if (checker_->poisoned()) return;
    const std::string name = work_name("copy");
    const Epoch now = checker_->start(id_);
    auto& inner = batches_.emplace_back();
    for (const Copy& part : parts) {
      const auto* target = own_block(part.to, part.bytes, name, "target");
      const auto* source = target != nullptr ? own_block(part.from, part.bytes, name, "source") : nullptr;
      if (source == nullptr ||
          !checker_->access(*source->region(), part.from.offset, part.bytes, false, {now, name}) ||
          !checker_->access(*target->region(), part.to.offset, part.bytes, true, {now, name}))
        return;
      inner.push_back({{target->inner(), part.to.offset}, {source->inner(), part.from.offset}, part.bytes});
    }
    inner_->copy(inner);
  }
  void record(Event& event) override {
    std::lock_guard lock(checker_->mutex);
    if (checker_->poisoned()) return;
    if (CheckedEvent* own = own_event(event)) {
      checker_->clock(id_).join(checker_->host());
      own->recorded = checker_->clock(id_);
      inner_->record(own->inner());
    }
  }
  void wait(Event& event) override {
    std::lock_guard lock(checker_->mutex);
    if (checker_->poisoned()) return;
    CheckedEvent* const own = own_event(event);
    if (own == nullptr) return;
    if (!own->recorded)
      return checker_->violation(cat(work_name("wait"), " is for an event that was never recorded"));
    checker_->clock(id_).join(*own->recorded);
    inner_->wait(own->inner());
  }
  void synchronize() override {
    VectorClock reached;
    size_t batches;
    {
      std::lock_guard lock(checker_->mutex);
      batches = batches_.size();
      reached = checker_->clock(id_);
    }
    const auto note = [&] {
      std::lock_guard lock(checker_->mutex);
      checker_->synchronised(reached);
      if (batches == batches_.size()) batches_.clear();
      checker_->raise();
    };
    try {
      inner_->synchronize();
    } catch (const Error&) {  // poisoned: everything is done or skipped nevertheless
      note();
      throw;
    }
    note();
  }
  double take_stall_seconds() override { return inner_->take_stall_seconds(); }
  double take_busy_seconds() override { return inner_->take_busy_seconds(); }
  std::array<Traffic, kTierCount> take_traffic() override { return inner_->take_traffic(); }
  void trace(bool on) override { inner_->trace(on); }
  std::vector<Busy> take_trace() override { return inner_->take_trace(); }
  void skip_copies_while(const std::atomic<bool>* flag) override { inner_->skip_copies_while(flag); }

 private:
  std::string work_name(std::string_view what) {
    return cat(what, " (work ", checker_->clock(id_).at(id_) + 1, " of the ", row(lane_).name, " queue)");
  }
  const CheckedBlock* own_block(const Location& at, int64_t bytes, const std::string& work,
                                std::string_view role) {
    const auto* block = dynamic_cast<const CheckedBlock*>(at.block);
    if (block == nullptr || block->checker() != checker_.get()) {
      checker_->violation(cat(work, ": its ", role, " is no block of this device"));
      return nullptr;
    }
    if (bytes <= 0 || at.offset < 0 || at.offset > block->bytes() - bytes) {
      checker_->violation(cat(work, ": its ", role, " [", at.offset, ", ", at.offset + bytes,
                              ") lies outside the block of ", block->bytes(), " bytes"));
      return nullptr;
    }
    return block;
  }
  CheckedEvent* own_event(Event& event) {
    auto* own = dynamic_cast<CheckedEvent*>(&event);
    if (own != nullptr && own->checker() == checker_.get()) return own;
    checker_->violation(cat(work_name("record or wait"), " is for an event of another device"));
    return nullptr;
  }
  bool touch(const void* data, int64_t bytes, bool write, Epoch now, std::string_view work,
             std::string_view role, size_t i) {
    if (data == nullptr || bytes == 0) return true;
    const std::string what = cat(work, ", ", role, " ", i);
    Region* const region = checker_->find(data, bytes);
    if (region == nullptr) {
      checker_->violation(cat(what, ": ", bytes, " bytes outside every living block of this device"));
      return false;
    }
    const int64_t offset = static_cast<int64_t>(reinterpret_cast<uintptr_t>(data) - region->address);
    return checker_->access(*region, offset, bytes, write, {now, what});
  }
  // Operands lie apart, but for inputs that the call says output 0 replaces.
  bool apart(const Tensor& a, const Tensor& b, bool replaces, std::string_view work, std::string_view role_a,
             size_t i, std::string_view role_b, size_t j) {
    if (a.data == nullptr || b.data == nullptr) return true;
    const auto at_a = reinterpret_cast<uintptr_t>(a.data), at_b = reinterpret_cast<uintptr_t>(b.data);
    const auto bytes_a = static_cast<uintptr_t>(a.desc.bytes()),
               bytes_b = static_cast<uintptr_t>(b.desc.bytes());
    if (replaces ? at_a == at_b && bytes_a == bytes_b : at_a + bytes_a <= at_b || at_b + bytes_b <= at_a)
      return true;
    checker_->violation(cat(work, ", ", role_a, " ", i, replaces ? " is said to lie on " : " overlaps ",
                            role_b, " ", j,
                            replaces ? " and does not" : ", which the launch does not declare"));
    return false;
  }
  bool operands_apart(const kernels::Kernel& kernel, const kernels::Call& call, std::string_view work) {
    const Tensor workspace{{DType::kU8, {std::max<int64_t>(1, kernel.workspace_bytes())}, 0},
                           kernel.workspace_bytes() > 0 ? call.workspace : nullptr};
    for (size_t o = 0; o < call.out.size(); ++o) {
      for (size_t i = 0; i < call.in.size(); ++i)
        if (!apart(call.out[o], call.in[i], o == 0 && i < 32 && (call.in_place >> i & 1u) != 0, work,
                   "output", o, "input", i))
          return false;
      for (size_t p = 0; p < o; ++p)
        if (!apart(call.out[o], call.out[p], false, work, "output", o, "output", p)) return false;
      if (!apart(workspace, call.out[o], false, work, "workspace", 0, "output", o)) return false;
    }
    for (size_t i = 0; i < call.in.size(); ++i)
      if (!apart(workspace, call.in[i], false, work, "workspace", 0, "input", i)) return false;
    return true;
  }
  bool launch_holds(const kernels::Kernel& kernel, const kernels::Call& call) {
    const std::string work = work_name("launch");
    const Epoch now = checker_->start(id_);
    if (!operands_apart(kernel, call, work)) return false;
    for (size_t i = 0; i < call.in.size(); ++i)
      if (!touch(call.in[i].data, call.in[i].data ? call.in[i].desc.bytes() : 0, false, now, work, "input",
                 i))
        return false;
    for (size_t i = 0; i < call.out.size(); ++i)
      if (!touch(call.out[i].data, call.out[i].data ? call.out[i].desc.bytes() : 0, true, now, work, "output",
                 i))
        return false;
    const int64_t workspace = kernel.workspace_bytes();
    if (workspace > 0 && call.workspace == nullptr) {
      checker_->violation(cat(work, " has no workspace, its kernel needs ", workspace, " bytes"));
      return false;
    }
    return touch(call.workspace, workspace, true, now, work, "workspace", 0);
  }

  const std::shared_ptr<Checker> checker_;
  const Lane lane_;
  std::deque<std::vector<Copy>> batches_;  // copies given to the wrapped queue, until it has done them
  std::unique_ptr<Queue> inner_;
  size_t id_ = 0;
};

class CheckedDevice : public Device {
 public:
  explicit CheckedDevice(std::shared_ptr<Device> inner)
      : checker_(std::make_shared<Checker>(std::move(inner))) {}
  const DeviceInfo& info() const override { return inner().info(); }
  const kernels::Registry& kernels() const override { return inner().kernels(); }
  Ledger& ledger() override { return inner().ledger(); }
  std::unique_ptr<Block> allocate(Tier tier, int64_t bytes) override {
    return std::make_unique<CheckedBlock>(checker_, inner().allocate(tier, bytes));
  }
  std::shared_ptr<Group> create_group() override { return inner().create_group(); }
  std::unique_ptr<Queue> create_queue(Lane lane, const std::shared_ptr<Group>& group) override {
    return std::make_unique<CheckedQueue>(checker_, lane, inner().create_queue(lane, group));
  }
  std::unique_ptr<Event> create_event() override {
    return std::make_unique<CheckedEvent>(checker_, inner().create_event());
  }
  bool poisoned() const override { return checker_->poisoned() || inner().poisoned(); }
  int64_t taken_bytes() const override { return inner().taken_bytes(); }

 private:
  Device& inner() const { return *checker_->device; }
  const std::shared_ptr<Checker> checker_;
};

}  // namespace
}  // namespace check

std::shared_ptr<Device> checked(std::shared_ptr<Device> inner) {
  require(inner != nullptr, Code::kInvalidArgument, "checked() needs a device");
  return std::make_shared<check::CheckedDevice>(std::move(inner));
}

}  // namespace cairn::device
