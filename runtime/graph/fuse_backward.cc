// Backward ops whose result one elementwise op alone reads, where the op can do that on the way: one pass
// over memory less. Decided here, for every backend and before there is a plan: such an op may round once
// where the two round twice, and bits are not to depend on a plan.
#include "runtime/graph/joint_builder.h"

namespace cairn::graph {
namespace {

using ops::OpCode;

Attrs gelu_of(const JointOp& reader) {
  return {{"activation", "gelu_" + reader.attrs.word("approximate", "tanh")}};
}
Attrs silu_of(const JointOp&) { return {{"activation", std::string("silu")}}; }
Attrs relu_of(const JointOp&) { return {{"activation", std::string("relu")}}; }

// `reader` reads output 0 of `maker` as operand `reads`; its operand `other` becomes the maker's operand
// `into`, which is free.
constexpr struct {
  OpCode maker, reader;
  size_t reads, other, into;
  Attrs (*attrs)(const JointOp& reader);  // the maker's from then on; nullptr: as they are
} kPairs[] = {
    {OpCode::k_linear_grad_input, OpCode::k_gelu_grad, 0, 1, 2, gelu_of},
    {OpCode::k_linear_grad_input, OpCode::k_silu_grad, 0, 1, 2, silu_of},
    {OpCode::k_linear_grad_input, OpCode::k_relu_grad, 0, 1, 2, relu_of},
    {OpCode::k_layernorm_grad, OpCode::k_add, 0, 1, 5, nullptr},
    {OpCode::k_layernorm_grad, OpCode::k_add, 1, 0, 5, nullptr},
    {OpCode::k_rmsnorm_grad, OpCode::k_add, 0, 1, 4, nullptr},
    {OpCode::k_rmsnorm_grad, OpCode::k_add, 1, 0, 4, nullptr},
};

class Fuser {
 public:
  explicit Fuser(JointBuilder& builder) : b_(builder), joint_(builder.joint) {}

  void run() {
    const size_t values = joint_.values.size();
    now_.resize(values);
    for (size_t v = 0; v < values; ++v) now_[v] = static_cast<int32_t>(v);
    maker_.assign(values, -1);
    readers_.assign(values, 0);
    for (size_t i = 0; i < joint_.ops.size(); ++i) {
      for (const int32_t v : joint_.ops[i].out)
        if (v >= 0) maker_[v] = static_cast<int32_t>(i);
      for (const int32_t v : joint_.ops[i].in)
        if (v >= 0) ++readers_[v];
    }
    std::vector<bool> gone(values);
    for (JointOp& op : joint_.ops) {
      for (int32_t& v : op.in)
        if (v >= 0) v = now_[v];
      place_.push_back(kept_.size());
      if (op.phase == Phase::kBackward && fuse(op))
        gone[op.out[0]] = true;
      else
        kept_.push_back(std::move(op));
    }
    joint_.ops = std::move(kept_);
    for (JointValue& value : joint_.values)
      if (value.alias_of >= 0) value.alias_of = now_[value.alias_of];
    b_.drop_values(gone);
  }

 private:
  // Into the op that makes what `reader` reads; that value stands for the reader's from then on.
  bool fuse(const JointOp& reader) {
    for (const auto& pair : kPairs) {
      if (pair.reader != reader.code) continue;
      const int32_t between = reader.in[pair.reads], other = reader.in[pair.other], result = reader.out[0];
      if (maker_[between] < 0 || readers_[between] != 1) continue;
      JointOp& maker = kept_[place_[maker_[between]]];
      if (maker.code != pair.maker || maker.out[0] != between || maker.in[pair.into] >= 0) continue;
      const TensorDesc& desc = b_.desc(between);
      if (b_.desc(other) != desc || b_.desc(result) != desc || !is_plain(between) || !is_plain(result))
        continue;
      if (maker_[other] >= maker_[between]) continue;  // not there yet when the maker runs
      maker.in[pair.into] = other;
      if (pair.attrs != nullptr) maker.attrs = pair.attrs(reader);
      now_[result] = between;
      readers_[between] = readers_[result];
      return true;
    }
    return false;
  }

  bool is_plain(int32_t value) const { return joint_.values[value].role == Role::kBackward; }

  JointBuilder& b_;
  JointGraph& joint_;
  std::vector<JointOp> kept_;
  std::vector<size_t> place_;             // per op seen: where in kept_
  std::vector<int32_t> now_;              // per value: the one that stands for it
  std::vector<int32_t> maker_, readers_;  // per value: the op that makes it, -1: none; how many read it
};

}  // namespace

void fuse_backward(JointBuilder& builder) { Fuser(builder).run(); }

}  // namespace cairn::graph
