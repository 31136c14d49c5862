#include "runtime/exec/kernel_choices.h"

#include <algorithm>
#include <limits>
#include <set>

#include "kernels/registry.h"
#include "runtime/base/checked.h"
#include "runtime/compile/cost_query.h"

namespace cairn::engine {
namespace {

constexpr int64_t kPackedAlignment = 256;
constexpr int64_t kNoiseBytes = int64_t{4} << 20;
constexpr int kSamples = 7;      // timed runs per choice, after a first run, which may load code
constexpr double kWorth = 0.02;  // a smaller share of the seconds is noise, and not worth any memory

// The operands of one op in a block of the device, and a queue that measures kernels.
class Stand {
 public:
  Stand(device::Device& device, const kernels::Signature& s, int64_t workspace) : device_(device) {
    new_queue();
    const int64_t operands = bytes_of(s.in, s.in_present) + bytes_of(s.out, s.out_present);
    block_ = device.allocate(Tier::kDevice, checked_add(operands, std::max(workspace, kPackedAlignment)));
    place(s.in, s.in_present, true, in_);
    place(s.out, s.out_present, false, out_);
    call_.in = in_;
    call_.out = out_;
    call_.workspace = at(used_);
    queue_->synchronize();
  }

  // Infinite if the kernel cannot be started: a library may refuse a way that it offered.
  double seconds(const kernels::Kernel& kernel) {
    try {
      return measured(kernel);
    } catch (const Error& error) {
      if (error.code() == Code::kDeviceLost) throw;
      new_queue();  // the old one repeats its error
      return std::numeric_limits<double>::infinity();
    }
  }

 private:
  void new_queue() { queue_ = device_.create_queue(device::Lane::kCompute, device_.create_group()); }

  double measured(const kernels::Kernel& kernel) {
    queue_->trace(true);
    for (int i = 0; i <= kSamples; ++i) queue_->launch(kernel, call_);
    queue_->synchronize();
    std::vector<double> list;
    for (const device::Queue::Busy& busy : queue_->take_trace()) list.push_back(busy.end - busy.begin);
    queue_->trace(false);
    require(list.size() == kSamples + 1, Code::kUnsupported, "this device does not time its work");
    list.erase(list.begin());
    std::nth_element(list.begin(), list.begin() + kSamples / 2, list.end());
    return list[kSamples / 2];
  }

  static int64_t bytes_of(std::span<const TensorDesc> list, uint32_t present) {
    int64_t sum = 0;
    for (size_t i = 0; i < list.size(); ++i)
      if (present >> i & 1u) sum = checked_add(sum, align_up(list[i].bytes(), kPackedAlignment));
    return sum;
  }
  void* at(int64_t offset) const { return static_cast<char*>(block_->address()) + offset; }

  // Floats get numbers in (-0.5, 0.5), as products of zeros take less power and less time. Everything else is 0,
  // which is a valid token and row of every table.
  void place(std::span<const TensorDesc> list, uint32_t present, bool read, std::vector<Tensor>& to) {
    for (size_t i = 0; i < list.size(); ++i) {
      to.push_back({list[i], nullptr});
      if (!(present >> i & 1u)) continue;
      const int64_t bytes = list[i].bytes();
      to.back().data = at(used_);
      if (read && (is_float(list[i].dtype) && list[i].dtype != DType::kF64)) fill(used_, bytes);
      used_ += align_up(bytes, kPackedAlignment);
    }
  }
  void fill(int64_t offset, int64_t bytes) {
    const int64_t first = std::min(bytes, kNoiseBytes);
    std::vector<uint32_t> words(static_cast<size_t>(first + 3) / 4);
    uint32_t state = 12345;
    for (uint32_t& word : words) {  // as float32, and as a pair of bfloat16
      state = state * 1664525u + 1013904223u;
      const auto bits = __builtin_bit_cast(uint32_t, static_cast<float>(state >> 8) * 0x1p-24f - 0.5f);
      word = bits >> 16 | (bits & 0xffff0000u);
    }
    block_->write(offset, words.data(), first);
    for (int64_t done = first; done < bytes; done += std::min(done, bytes - done))
      queue_->copy({block_.get(), offset + done}, {block_.get(), offset}, std::min(done, bytes - done));
  }

  device::Device& device_;
  std::unique_ptr<device::Block> block_;
  std::unique_ptr<device::Queue> queue_;  // ends before the block
  std::vector<Tensor> in_, out_;
  kernels::Call call_;
  int64_t used_ = 0;
};

// The ways to compute one op: rows of the backend's table, and the words of each part of a row.
class Contest {
 public:
  Contest(device::Device& device, const kernels::Signature& s) : device_(device), s_(s) {
    for (const kernels::KernelRow& row : device.kernels().rows) {
      if (row.op != s.op) continue;
      kernels::Options options;
      kernels::Signature asked = s;
      asked.choice = row.name;
      asked.options = &options;
      const auto kernel = row.make(asked);
      if (kernel == nullptr) continue;
      rows_.push_back({std::string(row.name), std::move(options)});
      max_workspace_ = std::max(max_workspace_, kernel->workspace_bytes());
    }
  }
  bool open() const {
    if (rows_.size() > 1) return true;
    for (const Row& row : rows_)
      for (const auto& part : row.parts)
        if (part.size() > 1) return true;
    return false;
  }

  struct Result {
    std::string choice;
    double seconds = 0;
    int64_t workspace_bytes = 0;
  };
  // Times the backend's own choice and finds the best one.
  std::pair<Result, Result> run() {
    for (const Row& row : rows_)
      for (size_t part = 0; part < row.parts.size(); ++part)
        for (const std::string& word : row.parts[part])
          max_workspace_ = std::max(max_workspace_, make(with(row, part, word))->workspace_bytes());
    Stand stand(device_, s_, max_workspace_);
    const auto timed = [&](const std::string& choice) {
      const auto kernel = make(choice);
      return Result{choice, stand.seconds(*kernel), kernel->workspace_bytes()};
    };
    const Result own = timed("");
    Result best = own;
    for (const Row& row : rows_) {
      std::string all = row.name;  // the best word of each part
      for (size_t part = 0; part < row.parts.size(); ++part) {
        if (row.parts[part].empty()) {  // there is nothing to time
          all += '|';
          continue;
        }
        Result winner = timed(with(row, part, ""));
        std::string chosen;
        for (const std::string& word : row.parts[part])
          if (const Result r = timed(with(row, part, word)); better(r, winner)) winner = r, chosen = word;
        all += '|' + chosen;
      }
      if (const Result r = timed(all); better(r, best)) best = r;
    }
    return {own, best};
  }

 private:
  struct Row {
    std::string name;
    kernels::Options parts;
  };
  static std::string with(const Row& row, size_t part, const std::string& word) {
    return row.name + std::string(part + 1, '|') + word;
  }
  // a is clearly faster, or as fast with less workspace.
  static bool better(const Result& a, const Result& b) {
    if (a.seconds < b.seconds * (1 - kWorth)) return true;
    return a.seconds < b.seconds * (1 + kWorth) && a.workspace_bytes < b.workspace_bytes;
  }
  std::unique_ptr<kernels::Kernel> make(const std::string& choice) const {
    kernels::Signature s = s_;
    s.choice = choice;
    return kernels::select(device_.kernels(), s);
  }

  device::Device& device_;
  const kernels::Signature s_;
  std::vector<Row> rows_;
  int64_t max_workspace_ = 0;
};

}  // namespace

int64_t measure_kernels(costs::Profile& profile, const CompiledPlan& plan, device::Device& device) {
  if (!device.kernels().choices) return 0;
  int64_t count = 0;
  std::set<std::string> met;
  for (const graph::JointOp& op : plan.joint->ops()) {
    if (ops::row(op.code).is(ops::ALIAS)) continue;
    const Operands operands(*plan.joint, op);
    const std::string signature = query_of(*plan.joint, op, operands).signature;
    if (!met.insert(signature).second) continue;
    try {
      Contest contest(device, signature_of(op, operands, plan.threads));
      if (!contest.open()) continue;
      const auto [own, best] = contest.run();
      ++count;
      profile.choices.erase(signature);
      if (best.choice != own.choice)
        profile.choices[signature] = {.choice = best.choice,
                                      .seconds = best.seconds,
                                      .own_seconds = own.seconds,
                                      .workspace_bytes = best.workspace_bytes};
    } catch (const Error& error) {
      if (error.code() != Code::kOutOfMemory) throw;
    }
  }
  return count;
}

}  // namespace cairn::engine
