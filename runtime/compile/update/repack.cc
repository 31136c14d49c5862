// The programs that pack weights: before the first micro-batch, and after the host wrote weights.
#include <set>

#include "runtime/compile/residency/homes.h"
#include "runtime/compile/update/programs.h"
#include "runtime/compile/update/writer.h"

namespace cairn::engine {
namespace {

class Repack : UpdateWriter {
 public:
  using UpdateWriter::UpdateWriter;

  // Packs weights where neither the weight nor a packed form streams.
  Program resident() {
    for (size_t i = 0; i < joint_.ops(graph::kRepack).size(); ++i)
      if (packing_bytes(plan_, joint_.ops(graph::kRepack)[i].in[0]) == 0) pack(static_cast<int32_t>(i));
    return take();
  }

  // Fetches weights of a tier, packs them, and sends back the packed forms that live there.
  Program fetched() {
    order(Lane::kCompute, Lane::kCopyIn);
    int64_t most = 0;
    for (const JointOp& op : joint_.ops(graph::kRepack))
      most = std::max(most, packing_bytes(plan_, op.in[0]));
    const int64_t room = room_.end - room_.masters.offset;
    Slots slots(*this, {room_.masters.offset, std::min(room, 2 * most) >= 2 * most ? 2 * most : room});
    std::set<int32_t> done;
    for (const JointOp& op : joint_.ops(graph::kRepack)) {
      const int32_t weight = op.in[0];
      if (packing_bytes(plan_, weight) == 0 || !done.insert(weight).second) continue;
      std::vector<int32_t> in, out;
      if (streamed(weight)) in.push_back(weight);
      for (const int32_t i : derived_weights_of(joint_, weight))
        if (const int32_t packed = joint_.ops(graph::kRepack)[at(i)].out[0]; streamed(packed))
          out.push_back(packed);
      std::vector<int32_t> all = in;
      all.insert(all.end(), out.begin(), out.end());
      const int64_t offset = place(slots, all);
      move(Lane::kCopyIn, in);
      order(Lane::kCopyIn, Lane::kCompute);
      for (const int32_t i : derived_weights_of(joint_, weight)) pack(i);
      order(Lane::kCompute, Lane::kCopyOut);
      move(Lane::kCopyOut, out);
      slots.done(offset, record(out.empty() ? Lane::kCompute : Lane::kCopyOut));
      for (const int32_t v : all) here_.erase(v);
    }
    slots.end();
    return take();
  }
};

}  // namespace

Program repack_program(const Placed& plan, KernelMaker& maker, const Room& room) {
  return Repack(plan, maker, room).resident();
}

Program fetched_repack_program(const Placed& plan, KernelMaker& maker, const Room& room) {
  return Repack(plan, maker, room).fetched();
}

}  // namespace cairn::engine
