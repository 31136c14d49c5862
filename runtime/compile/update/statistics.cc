// Statistics move once per step. Their sums are on the device.
#include "runtime/compile/update/programs.h"
#include "runtime/compile/update/writer.h"

namespace cairn::engine {
namespace {

class Statistics : UpdateWriter {
 public:
  using UpdateWriter::UpdateWriter;

  Program program() {
    const std::vector<JointOp>& ops = joint_.ops(graph::kStatistics);
    for (size_t i = 0; i < ops.size(); ++i) whole(ops[i], i, plan_.op_kernel[graph::kStatistics][i]);
    return take();
  }
};

}  // namespace

Program statistics_program(const Placed& plan, KernelMaker& maker, const Room& room) {
  return Statistics(plan, maker, room).program();
}

}  // namespace cairn::engine
