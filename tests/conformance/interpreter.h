// Runs a joint graph's ops in order on plain buffers, with no plan and no engine: what the rules alone say.
// Used as the ground truth of gradients, and to hand real operands to other backends' kernels.
#pragma once
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "kernels/registry.h"
#include "runtime/base/kernel.h"
#include "runtime/formats/dynamic8.h"
#include "runtime/graph/joint.h"

namespace cairn::conformance {

// Bytes at a 64-byte boundary, filled with NaN patterns, with a guard behind them that shows overruns.
class Buffer {
 public:
  static constexpr int64_t kGuardBytes = 64;  // at least
  explicit Buffer(int64_t bytes = 0) : bytes_(bytes), lines_(static_cast<size_t>((bytes + 63) / 64 + 1)) {
    std::memset(lines_.data(), 0xff, lines_.size() * sizeof(Line));
  }
  void* data() { return lines_.data(); }
  bool guard_intact() const {
    const auto* bytes = reinterpret_cast<const unsigned char*>(lines_.data());
    for (size_t i = static_cast<size_t>(bytes_); i < lines_.size() * sizeof(Line); ++i)
      if (bytes[i] != 0xff) return false;
    return true;
  }

 private:
  struct alignas(64) Line {
    unsigned char bytes[64];
  };
  int64_t bytes_;
  std::vector<Line> lines_;
};

inline double get(const Tensor& t, int64_t i) {
  switch (t.desc.dtype) {
    case DType::kDynamic8:
    case DType::kUDynamic8: {
      const DynamicBlock& block = t.as<DynamicBlock>()[i / kDynamicBlock];
      return static_cast<double>(dynamic_map_of(t.desc.dtype).values[block.codes[i % kDynamicBlock]]) *
             block.scale;
    }
    case DType::kF32:
      return t.as<float>()[i];
    case DType::kBF16:
      return to_float(t.as<bf16>()[i]);
    case DType::kF16:
      return to_float(t.as<f16>()[i]);
    case DType::kF64:
      return t.as<double>()[i];
    default:
      return t.as<int32_t>()[i];
  }
}
inline void set(const Tensor& t, int64_t i, double v) {
  switch (t.desc.dtype) {
    case DType::kF32:
      t.as<float>()[i] = static_cast<float>(v);
      break;
    case DType::kBF16:
      t.as<bf16>()[i] = to_bf16(static_cast<float>(v));
      break;
    case DType::kF16:
      t.as<f16>()[i] = to_f16(static_cast<float>(v));
      break;
    case DType::kF64:
      t.as<double>()[i] = v;
      break;
    case DType::kSplit:  // any bits
      t.as<uint16_t>()[i] = static_cast<uint16_t>(static_cast<int32_t>(v * 65536));
      break;
    default:
      t.as<int32_t>()[i] = static_cast<int32_t>(v);
      break;
  }
}

class Interpreter {
 public:
  // One op that is about to run, with everything a kernel needs; the reference kernel runs after it returns.
  using Watch = std::function<void(const graph::JointOp&, const kernels::Signature&, const kernels::Call&)>;

  explicit Interpreter(std::shared_ptr<const graph::JointGraph> joint) : joint_(std::move(joint)) {
    for (const graph::JointValue& v : joint_->values)
      buffers_.emplace_back(v.alias_of >= 0 ? 0 : v.desc.bytes());
    for (const graph::JointOp& op : joint_->ops()) prepare(op);
  }

  const graph::JointGraph& joint() const { return *joint_; }
  Tensor tensor(int32_t value) {
    if (value < 0) return {};
    for (const graph::Slices& slices : joint_->slices) {  // parts lie in the whole, one behind the other
      auto* at = static_cast<char*>(buffers_[static_cast<size_t>(slices.whole)].data());
      for (const int32_t part : slices.parts) {
        const TensorDesc& desc = joint_->values[static_cast<size_t>(part)].desc;
        if (part == value) return {desc, at};
        at += desc.bytes();
      }
    }
    return {joint_->values[static_cast<size_t>(value)].desc,
            buffers_[static_cast<size_t>(joint_->storage(value))].data()};
  }
  double loss() { return get(tensor(joint_->loss), 0); }
  double weight() { return get(tensor(joint_->weight), 0); }

  // One micro-batch. `first`: gradients are written instead of added to.
  void run(bool first, const RandomKey& key, const Watch& watch = {}) {
    for (size_t i = 0; i < steps_.size(); ++i) {
      Step& step = *steps_[i];
      const graph::JointOp& op = joint_->ops()[i];
      kernels::Call call{step.in, step.out, step.workspace.data(), op.accumulates, key};
      if (first) call.accumulate &= ~op.first_writer;
      if (step.alias) continue;
      if (watch && step.kernel) watch(op, step.signature, call);
      if (step.kernel)
        step.kernel->run(call);
      else
        run_custom(op, call);
    }
  }

 private:
  struct Step {
    std::vector<TensorDesc> in_desc, out_desc;
    std::vector<Tensor> in, out;
    kernels::Signature signature;
    std::unique_ptr<kernels::Kernel> kernel;
    Buffer workspace;
    bool alias = false;
  };

  void prepare(const graph::JointOp& op) {
    auto step = std::make_unique<Step>();
    uint32_t in_present = 0, out_present = 0;
    const auto collect = [&](const std::vector<int32_t>& ids, auto& descs, auto& tensors, uint32_t& present) {
      for (size_t i = 0; i < ids.size(); ++i) {
        tensors.push_back(tensor(ids[i]));
        descs.push_back(tensors.back().desc);
        if (ids[i] >= 0) present |= 1u << i;
      }
    };
    collect(op.in, step->in_desc, step->in, in_present);
    collect(op.out, step->out_desc, step->out, out_present);
    const ops::OpRow& row = ops::row(op.code);
    step->alias = row.is(ops::ALIAS);
    step->signature = {row.name, step->in_desc, step->out_desc, in_present, out_present, &op.attrs, 1};
    if (op.code != ops::OpCode::k_custom && op.code != ops::OpCode::k_custom_grad && !step->alias) {
      step->kernel = kernels::select(kernels::reference_registry(), step->signature);
      step->workspace = Buffer(step->kernel->workspace_bytes());
    }
    steps_.push_back(std::move(step));
  }

  void run_custom(const graph::JointOp& op, const kernels::Call& call) const {
    const graph::CustomOp& custom =
        joint_->forward->customs()[static_cast<size_t>(op.attrs.integer("custom"))];
    const auto inputs = static_cast<size_t>(custom.inputs), outputs = static_cast<size_t>(custom.outputs);
    bool ok = false;
    if (op.code == ops::OpCode::k_custom) {
      ok = custom.forward(call.in.first(inputs), call.out.first(outputs), nullptr);
    } else {
      std::vector<Tensor> in;  // x..., y..., dy... without the gaps of the row
      for (size_t i = 0; i < inputs; ++i) in.push_back(call.in[i]);
      for (size_t i = 0; i < outputs; ++i) in.push_back(call.in[4 + i]);
      for (size_t i = 0; i < outputs; ++i) in.push_back(call.in[8 + i]);
      ok = custom.backward(in, call.out.first(inputs), nullptr);
    }
    require(ok, Code::kInternal, custom.name, " failed");
  }

  std::shared_ptr<const graph::JointGraph> joint_;
  std::vector<Buffer> buffers_;
  std::vector<std::unique_ptr<Step>> steps_;
};

}  // namespace cairn::conformance
