// The launches of a group's ops, tile by tile, and where the interior of a tile lies in their workspace.
#pragma once
#include <functional>

#include "runtime/compile/kernel_maker.h"
#include "runtime/compile/tiles/groups.h"
#include "runtime/costs/model.h"

namespace cairn::engine {

struct MadeTiles {
  std::shared_ptr<const Tiles> tiles;
  int64_t workspace_bytes = 0;
  double seconds = 0;
};

class LaunchMaker {
 public:
  LaunchMaker(const Lowered& plan, device::Device& device, const PlanOptions& options);
  // Of these joint ops, in this order, in at most so many tiles. interior: by value of the problem.
  MadeTiles launches(const std::vector<int32_t>& ops, const TileGroup& group, int64_t count,
                     const std::function<bool(int32_t)>& interior);

  const std::vector<std::shared_ptr<const kernels::Kernel>>& kernels() const { return maker_.kernels(); }

 private:
  class Interior;
  TileOperand operand(int32_t value, bool by_rows, const TileGroup& group, int64_t first, int64_t rows,
                      const Interior& interior) const;

  const Lowered& plan_;
  const graph::JointGraph& joint_;
  const costs::Model costs_;
  const std::vector<bool> without_rows_;
  KernelMaker maker_;
};

}  // namespace cairn::engine
