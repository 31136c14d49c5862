// Backward ops whose result one elementwise op alone reads, where the op can do that on the way: one pass
// over memory less. Decided here, for every backend and before there is a plan: such an op may round once
// where the two round twice, and bits are not to depend on a plan.
#include "runtime/graph/joint_builder.h"
#include "runtime/ops/functions.h"

namespace cairn::graph {
namespace {

using ops::OpCode;

// `reader` reads output 0 of `maker` as operand `reads`; its operand `other` becomes the maker's operand
// `into`, which is free.
struct Pair {
  OpCode maker, reader;
  size_t reads, other, into;
};

// Two ops that one op can replace. An activation's gradient multiplies its first operand by the derivative at its second: the
// product that makes the first gets the second as its argument operand. After a product, an addition's other operand
// becomes the product's addend.
void add_pairs(const ops::OpRow& maker, size_t into, std::vector<Pair>& pairs) {
  if (maker.inputs[into].role == ops::OperandRole::kArgument) {
    OpCode last = OpCode::kCount;
    for (const ops::Function& f : ops::functions())
      if (f.gradient != last) pairs.push_back({maker.code, last = f.gradient, 0, 1, into});
  }
  if (maker.inputs[into].role == ops::OperandRole::kAddend)
    for (size_t reads : {0, 1}) pairs.push_back({maker.code, OpCode::k_add, reads, 1 - reads, into});
}

const std::vector<Pair>& all_pairs() {
  static const std::vector<Pair> pairs = [] {
    std::vector<Pair> list;
    for (const ops::OpRow& maker : ops::all())
      for (size_t into = 0; into < maker.inputs.size(); ++into) add_pairs(maker, into, list);
    return list;
  }();
  return pairs;
}

class BackwardFuser {
 public:
  explicit BackwardFuser(JointBuilder& builder) : b_(builder), joint_(builder.joint) {}

  void run() {
    const size_t values = joint_.values.size();
    now_.resize(values);
    for (size_t v = 0; v < values; ++v) now_[v] = static_cast<int32_t>(v);
    maker_.assign(values, -1);
    readers_.assign(values, 0);
    for (size_t i = 0; i < joint_.ops().size(); ++i) {
      for (const int32_t v : joint_.ops()[i].out)
        if (v >= 0) maker_[v] = static_cast<int32_t>(i);
      for (const int32_t v : joint_.ops()[i].in)
        if (v >= 0) ++readers_[v];
    }
    std::vector<bool> gone(values);
    for (JointOp& op : joint_.ops()) {
      for (int32_t& v : op.in)
        if (v >= 0) v = now_[v];
      place_.push_back(kept_.size());
      if (op.backward && fuse(op))
        gone[op.out[0]] = true;
      else
        kept_.push_back(std::move(op));
    }
    joint_.ops() = std::move(kept_);
    for (JointValue& value : joint_.values)
      if (value.alias_of >= 0) value.alias_of = now_[value.alias_of];
    b_.drop_values(gone);
  }

 private:
  // Into the op that makes what `reader` reads; that value stands for the reader's from then on.
  bool fuse(const JointOp& reader) {
    for (const Pair& pair : all_pairs()) {
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
      if (const ops::Function* f = ops::differentiated(reader.code, reader.attrs))
        maker.attrs = {{"activation", std::string(f->name)}};
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

void fuse_backward(JointBuilder& builder) { BackwardFuser(builder).run(); }

}  // namespace cairn::graph
