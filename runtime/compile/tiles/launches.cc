#include "runtime/compile/tiles/launches.h"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/base/checked.h"
#include "runtime/compile/derived_weights.h"

namespace cairn::engine {
namespace {

using graph::JointOp;

// Rows of all tiles but the last, and how many tiles there are.
struct TileSizes {
  int64_t rows, count, all;
  TileSizes(const TileGroup& group, int64_t most) : all(group.rows) {
    rows = std::max<int64_t>(1, all / most / group.unit) * group.unit;
    count = all / rows + (all % rows >= group.unit ? 1 : 0);
  }
  int64_t first(int64_t t) const { return t * rows; }
  int64_t size(int64_t t) const { return t + 1 < count ? rows : all - first(t); }
  int64_t largest() const { return std::max(rows, size(count - 1)); }
};

TensorDesc tile_of(const TensorDesc& whole, int64_t all, int64_t rows) {
  const Shape row = *TileRows::row_of(whole, all);
  std::vector<int64_t> dims(row.span().begin(), row.span().end());
  dims.insert(dims.begin(), rows);
  return {whole.dtype, Shape(dims)};
}

}  // namespace

// Where what is interior lies: first fit, by the order of the ops. An op may write over what it alone still needs.
class LaunchMaker::Interior {
 public:
  Interior(const LaunchMaker& of, const std::vector<int32_t>& ops, const TileGroup& group, int64_t largest,
           const std::function<bool(int32_t)>& interior)
      : joint_(of.joint_) {
    std::map<int32_t, size_t> last;
    for (size_t i = 0; i < ops.size(); ++i)
      for (const auto* list : {&joint_.ops()[at(ops[i])].in, &joint_.ops()[at(ops[i])].out})
        for (const int32_t v : *list)
          if (v >= 0) last[joint_.storage(v)] = i;
    std::map<int64_t, int64_t> taken;  // offset -> bytes
    for (size_t i = 0; i < ops.size(); ++i) {
      const JointOp& op = joint_.ops()[at(ops[i])];
      const auto ends = [&](int32_t v) { return place_.contains(v) && last.at(v) == i; };
      for (size_t k = 0; k < op.out.size(); ++k) {
        const int32_t v = op.out[k] < 0 ? -1 : joint_.storage(op.out[k]);
        if (v < 0 || !interior(of.plan_.problem_value[at(v)])) continue;
        const int64_t size = align_up(joint_.values[at(v)].desc.bytes() / group.rows * largest, kAlignment);
        const int32_t over = k == 0 ? overwritten(op, v, ends) : -1;
        place_[v] = over >= 0 ? place_.at(over) : fit(taken, size);
        if (over >= 0) gone_.insert(over);
        taken[place_[v]] = size;
        bytes_ = std::max(bytes_, place_[v] + size);
      }
      for (const auto* list : {&op.in, &op.out})
        for (const int32_t v : *list)
          if (v >= 0 && ends(joint_.storage(v)) && gone_.insert(joint_.storage(v)).second)
            taken.erase(place_.at(joint_.storage(v)));
    }
  }
  int64_t bytes() const { return bytes_; }
  // -1: it is not interior.
  int64_t offset(int32_t storage) const {
    const auto found = place_.find(storage);
    return found == place_.end() ? -1 : found->second;
  }

 private:
  // An input that ends here, which output 0 may lie on.
  int32_t overwritten(const JointOp& op, int32_t made, const auto& ends) const {
    const ops::OpRow& row = ops::row(op.code);
    for (size_t i = 0; i < op.in.size(); ++i) {
      if (op.in[i] < 0 || !row.inputs[i].in_place) continue;
      const int32_t v = joint_.storage(op.in[i]);
      const auto uses = std::count_if(op.in.begin(), op.in.end(), [&](int32_t other) {
        return other >= 0 && joint_.storage(other) == v;
      });
      const TensorDesc &from = joint_.values[at(op.in[i])].desc, &to = joint_.values[at(op.out[0])].desc;
      if (ends(v) && v != made && uses == 1 && from.bytes() == to.bytes() &&
          from.shape.elements() == to.shape.elements())
        return v;
    }
    return -1;
  }
  static int64_t fit(const std::map<int64_t, int64_t>& taken, int64_t size) {
    int64_t at = 0;
    for (const auto& [offset, bytes] : taken) {
      if (offset - at >= size) break;
      at = std::max(at, offset + bytes);
    }
    return at;
  }

  const graph::JointGraph& joint_;
  std::map<int32_t, int64_t> place_;  // storage -> offset
  std::set<int32_t> gone_;
  int64_t bytes_ = 0;
};

LaunchMaker::LaunchMaker(const Lowered& plan, device::Device& device, const PlanOptions& options)
    : plan_(plan),
      joint_(*plan.joint),
      costs_(device.info(), options.costs),
      without_rows_(values_without_rows(plan)),
      maker_(plan, device) {}

TileOperand LaunchMaker::operand(int32_t value, bool by_rows, const TileGroup& group, int64_t first,
                                 int64_t rows, const Interior& interior) const {
  TileOperand made;
  if (value < 0) return made;
  const TensorDesc& whole = joint_.values[at(value)].desc;
  const int64_t offset = interior.offset(joint_.storage(value));
  made.value = value;
  made.desc = by_rows ? tile_of(whole, group.rows, rows) : whole;
  made.interior = offset >= 0;
  made.offset = made.interior ? offset : by_rows ? whole.bytes() / group.rows * first : 0;
  return made;
}

MadeTiles LaunchMaker::launches(const std::vector<int32_t>& ops, const TileGroup& group, int64_t count,
                                const std::function<bool(int32_t)>& interior) {
  const TileSizes cut(group, std::min(count, group.rows / group.unit));
  const Interior inside(*this, ops, group, cut.largest(), interior);
  auto tiles = std::make_shared<Tiles>();
  tiles->count = cut.count;
  tiles->scratch_offset = inside.bytes();
  MadeTiles made;
  std::map<std::pair<int32_t, int64_t>, double> seconds;  // joint op, rows -> of one launch
  for (int64_t t = 0; t < cut.count; ++t)
    for (const int32_t index : ops) {
      JointOp op = joint_.ops()[at(index)];
      const ops::OpRow& row = ops::row(op.code);
      const int64_t first = cut.first(t), rows = cut.size(t);
      TileLaunch launch{index, -1, 0, {}, {}};
      Operands operands(joint_, op);
      for (size_t i = 0; i < operands.in.size(); ++i) {
        const int32_t v = i < op.in.size() ? op.in[i] : -1;
        launch.in.push_back(
            operand(v, v >= 0 && !without_rows_[at(joint_.storage(v))], group, first, rows, inside));
        operands.in[i] = launch.in.back().desc;
      }
      for (size_t k = 0; k < operands.out.size(); ++k) {
        const int32_t v = k < op.out.size() ? op.out[k] : -1;
        const bool sums = k < row.outputs.size() && row.outputs[k].accumulates;
        launch.out.push_back(operand(v, !sums, group, first, rows, inside));
        operands.out[k] = launch.out.back().desc;
        if (sums && v >= 0 && t > 0) launch.continues |= 1u << k;
      }
      const auto [known, fresh] = seconds.emplace(std::pair(index, rows), 0);
      if (fresh) known->second = op_seconds(joint_, index, operands, costs_).seconds;
      made.seconds += known->second;
      if (row.has_attr("rows")) op.attrs.set("rows", group.rows);
      if (row.is(ops::RNG)) op.attrs.set("first", launch.in[0].desc.shape.elements() / rows * first);
      launch.kernel = maker_.make(op, operands);
      tiles->scratch_bytes = std::max(tiles->scratch_bytes, maker_.workspace_bytes(launch.kernel));
      tiles->launches.push_back(std::move(launch));
    }
  made.workspace_bytes = tiles->scratch_offset + tiles->scratch_bytes;
  made.tiles = std::move(tiles);
  return made;
}

}  // namespace cairn::engine
