#include "runtime/compile/custom.h"

#include <array>

namespace cairn::engine {
namespace {

constexpr size_t kOperandSlots = 4;  // x0 to x3, and so on: as many as the rows of ops.def have

class CustomKernel : public kernels::Kernel {
 public:
  CustomKernel(std::shared_ptr<const graph::Graph> graph, const graph::CustomOp& op, bool backward,
               const kernels::Signature& signature)
      : graph_(std::move(graph)), op_(op), backward_(backward) {
    if (!op_.workspace_bytes) return;
    workspace_ = op_.workspace_bytes(signature.in.first(static_cast<size_t>(op_.inputs)));
    require(workspace_ >= 0, Code::kInvalidArgument, "custom op '", op_.name, "' asks for a workspace of ",
            workspace_, " bytes");
  }
  int64_t workspace_bytes() const override { return workspace_; }
  void run(const kernels::Call& call) const override {
    const auto inputs = static_cast<size_t>(op_.inputs), outputs = static_cast<size_t>(op_.outputs);
    bool done;
    if (backward_) {  // the row's operands are x0..x3 y0..y3 dy0..dy3; the callback gets those that the op has
      std::array<Tensor, 3 * kOperandSlots> in;
      size_t n = 0;
      const auto take = [&](size_t first, size_t count) {
        for (size_t i = 0; i < count; ++i) in[n++] = call.in[first + i];
      };
      take(0, inputs);
      take(kOperandSlots, outputs);
      take(2 * kOperandSlots, outputs);
      done = op_.backward({in.data(), n}, call.out.first(inputs), call.workspace);
    } else {
      done = op_.forward(call.in.first(inputs), call.out.first(outputs), call.workspace);
    }
    require(done, Code::kInvalidArgument, "custom op '", op_.name, "': its ",
            backward_ ? "backward" : "forward", " callback reported failure");
  }

 private:
  const std::shared_ptr<const graph::Graph> graph_;  // owns op_
  const graph::CustomOp& op_;
  const bool backward_;
  int64_t workspace_ = 0;
};

}  // namespace

std::unique_ptr<kernels::Kernel> make_custom_kernel(std::shared_ptr<const graph::Graph> graph,
                                                    ops::OpCode code, const kernels::Signature& signature) {
  const auto& customs = graph->customs();
  const int64_t index = signature.attrs->integer("custom", -1);
  require(index >= 0 && index < static_cast<int64_t>(customs.size()), Code::kInternal, "no custom op ",
          index);
  const graph::CustomOp& op = customs[static_cast<size_t>(index)];
  const bool backward = code == ops::OpCode::k_custom_grad;
  require(backward ? static_cast<bool>(op.backward) : static_cast<bool>(op.forward), Code::kUnsupported,
          "custom op '", op.name, "' has no ", backward ? "backward" : "forward", " callback");
  return std::make_unique<CustomKernel>(std::move(graph), op, backward, signature);
}

}  // namespace cairn::engine
