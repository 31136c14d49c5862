// The programs of a step that only read gradients or sums: the norm, which is the sum of squares of all gradients and one
// launch where the backend has that; and the moves of statistics.
#include <algorithm>
#include <optional>

#include "runtime/compile/residency/homes.h"
#include "runtime/compile/update/programs.h"
#include "runtime/compile/update/writer.h"

namespace cairn::engine {
namespace {

class GradientNorm : UpdateWriter {
 public:
  using UpdateWriter::UpdateWriter;

  Program program() {
    const std::vector<JointOp>& ops = joint_.ops(graph::kGradientNorm);
    const std::vector<int32_t>& kernels = plan_.op_kernel[graph::kGradientNorm];
    if (!ops.empty()) begin_gradients();
    if (std::any_of(ops.begin(), ops.end(), [&](const JointOp& op) { return streamed(op.in[0]); }))
      return one_by_one();
    if (kernels.size() < ops.size()) {
      std::vector<Operand> in, out;
      for (const JointOp& op : ops) {
        in.push_back(operand(op.in[0]));
        out.push_back(operand(op.out[0]));
        if (out.size() > 1) out.back().offset = -1;  // all add to the first one's output
      }
      launch(ops[0], 0, kernels[0], in, out);
      return take();
    }
    for (size_t i = 0; i < ops.size(); ++i) whole(ops[i], i, kernels[i]);
    return take();
  }

 private:
  // The ops for a sliced gradient: squares of each chunk, and the sum of the chunks.
  struct ChunkOps {
    SquaresChunks chunks;
    JointOp squares, sum;

    ChunkOps(const SquaresChunks& of, const JointOp& whole) : chunks(of), squares(whole), sum(whole) {
      squares.code = ops::OpCode::k_squares_of_chunks;
      squares.attrs = {{"chunk", chunks.elements}};
      squares.accumulates = squares.first_writer = 0;
      sum.code = ops::OpCode::k_sum_of_chunks;
      sum.attrs = {};
    }
    Operand sums(int64_t count, int64_t offset) const {
      return {{DType::kF64, Shape{count}, 0}, offset, Tier::kDevice, true};
    }
  };

  // Fetches gradients that stream, one after the other.
  Program one_by_one() {
    const std::vector<JointOp>& ops = joint_.ops(graph::kGradientNorm);
    std::vector<int32_t> kernels;  // one each, as not all gradients are on the device at once
    int64_t workspace = 0;
    for (const JointOp& op : ops) {
      const bool chunked = in_chunks(op.in[0]).has_value();
      kernels.push_back(chunked ? -1 : maker_.make(op));
      workspace = std::max(workspace, chunked ? workspace_of_chunks(op) : workspace_of(kernels.back()));
    }
    const int64_t first = room_.workspace + workspace;
    const Area area{first, room_.end - first};
    Slots slots(*this, area);
    order(Lane::kCompute, Lane::kCopyIn);
    for (size_t i = 0; i < ops.size(); ++i) {
      const int32_t gradient = ops[i].in[0];
      if (!streamed(gradient)) {
        whole(ops[i], i, kernels[i]);
        continue;
      }
      if (const auto chunks = in_chunks(gradient)) {
        slots.end();
        by_chunks(i, {*chunks, ops[i]}, area);
        continue;
      }
      const int64_t offset = place(slots, {gradient});
      move(Lane::kCopyIn, {gradient});
      order(Lane::kCopyIn, Lane::kCompute);
      whole(ops[i], i, kernels[i]);
      slots.done(offset, record(Lane::kCompute));
      here_.erase(gradient);
    }
    slots.end();
    return take();
  }

  std::optional<SquaresChunks> in_chunks(int32_t gradient) const {
    return streamed(gradient) ? squares_chunks(plan_, gradient) : std::nullopt;
  }
  // The workspace of the kernels for all chunks at once; fewer chunks need no more.
  int64_t workspace_of_chunks(const JointOp& op) {
    const ChunkOps by(*squares_chunks(plan_, op.in[0]), op);
    const Operand sums = by.sums(by.chunks.count, 0);
    return std::max(workspace_of(kernel_of(by.squares, {joint_.values[at(op.in[0])].desc, 0}, sums)),
                    workspace_of(kernel_of(by.sum, sums, operand(joint_.norm))));
  }

  // The sums of the chunks come first in the area, then the slots through which the gradient streams in pieces of
  // complete chunks.
  void by_chunks(size_t i, const ChunkOps& by, const Area& area) {
    const auto index = static_cast<int32_t>(i);
    const int32_t gradient = joint_.ops(graph::kGradientNorm)[i].in[0];
    const TensorDesc& whole = joint_.values[at(gradient)].desc;
    const Where home = plan_.where(gradient, Point::kDeviceUpdate);
    const SquaresChunks& chunks = by.chunks;
    const int64_t size = dtype_bytes(whole.dtype), all = whole.shape.elements(),
                  rest = area.bytes - chunks.sums_bytes,
                  most = std::max<int64_t>(1, std::min(rest / 2, kPieceBytes) / chunks.chunk_bytes) *
                         chunks.elements;
    const int32_t range = begin(Tier::kDevice, area.offset, chunks.sums_bytes);
    order(Lane::kCompute, Lane::kCopyIn);
    Slots slots(*this, {area.offset + chunks.sums_bytes, rest});
    for (int64_t done = 0; done < all; done += most) {
      const int64_t count = std::min(all - done, most), first = done / chunks.elements;
      const int64_t offset = slots.take(align_up(count * size, kAlignment));
      copy(Lane::kCopyIn, {Tier::kDevice, home.tier, offset, home.offset + done * size, count * size, -1});
      order(Lane::kCopyIn, Lane::kCompute);
      const Operand piece{{whole.dtype, Shape{count}, 0}, offset};
      const Operand sums = by.sums((count + chunks.elements - 1) / chunks.elements,
                                   area.offset + first * dtype_bytes(DType::kF64));
      launch(by.squares, index, kernel_of(by.squares, piece, sums), {&piece, 1}, {&sums, 1});
      slots.done(offset, record(Lane::kCompute));
    }
    const Operand sums = by.sums(chunks.count, area.offset), norm = operand(joint_.norm);
    launch(by.sum, index, kernel_of(by.sum, sums, norm), {&sums, 1}, {&norm, 1});
    slots.end();
    end(range);
    order(Lane::kCompute, Lane::kCopyIn);
  }
  int32_t kernel_of(const JointOp& op, const Operand& in, const Operand& out) {
    return maker_.make(op, Operands(std::vector{in}, std::vector{out}));
  }
};

// Statistics move once per step. Their sums are on the device.
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

Program norm_program(const Placed& plan, KernelMaker& maker, const Room& room) {
  return GradientNorm(plan, maker, room).program();
}

Program statistics_program(const Placed& plan, KernelMaker& maker, const Room& room) {
  return Statistics(plan, maker, room).program();
}

}  // namespace cairn::engine
