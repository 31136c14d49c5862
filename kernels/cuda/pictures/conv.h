// The geometry of convolutions, transposed ones and the gradient of the weight, for blocks of threads. A transposed convolution is
// a convolution in phases: elements of y that are a stride apart are made by the same taps, from neighbours in x. So both are
// one kind of product, of rows that are gathered from x with a weight [columns, taps, depth].
#pragma once
#include "kernels/cuda/common/support.h"
#include "runtime/base/spatial.h"

namespace cairn::kernels::cuda {

struct ConvAxis {
  int from, to;  // elements of the axis that is read, and that is written
  int window, stride, dilation, before;
  int every;   // from one tap of a phase to the next
  int phases;  // 1 unless transposed
};
struct ConvSizes {
  int n, groups, depth,
      columns;  // samples; groups of channels, of which a group reads `depth` and writes `columns`
  bool transposed;
  ConvAxis h, w;

  __host__ __device__ int taps() const { return h.window * w.window; }
  __host__ __device__ int length() const { return taps() * depth; }  // of a sum
  __host__ __device__ int channels_in() const { return groups * depth; }
  __host__ __device__ int channels_out() const { return groups * columns; }
  __host__ __device__ int phases() const { return h.phases * w.phases; }
  // Rows of a phase, at most.
  __host__ __device__ int rows() const {
    return n * ((h.to - 1) / h.phases + 1) * ((w.to - 1) / w.phases + 1);
  }
};

// Of `weight` [O, (kh,) kw, C / groups]. y: what conv reads, and the transposed one writes. False: too large for the kernels.
bool make_conv_sizes(const Shape& input, const Shape& weight, const Attrs& attrs, bool transposed,
                     ConvSizes* to);

// The weight in another order, and of another type: element (group g, output o of it, tap, channel c of it) of
// w[groups, outputs, taps, channels] goes to g group + o output + tap tap + c channel.
struct WeightOrder {
  int outputs, taps, channels;
  int64_t count, group, output, tap, channel;
};
// As rows of sums: [groups, columns, taps, depth]. As columns of a tap: [taps, depth, groups * columns].
WeightOrder rows_of_sums(const ConvSizes& z);
WeightOrder columns_of_taps(const ConvSizes& z);
void reorder_weight(cudaStream_t stream, const WeightOrder& order, DType from, const void* w, DType to,
                    void* out);

// The call's weight as rows of sums of type T: as it is, or a copy in the workspace.
class ConvWeight {
 public:
  ConvWeight(const ConvSizes& z, DType weight, DType type)
      : order_(rows_of_sums(z)), from_(weight), to_(type), copies_(z.transposed || weight != type) {}
  int64_t workspace_bytes() const { return copies_ ? order_.count * dtype_bytes(to_) : 0; }
  const void* read(const Call& call) const {
    const void* w = data_of(call.in, 1);
    if (!copies_) return w;
    reorder_weight(stream_of(call), order_, from_, w, to_, call.workspace);
    return call.workspace;
  }

 private:
  WeightOrder order_;
  DType from_, to_;
  bool copies_;
};

// What conv and conv_transpose have in common. False: operands that no kernel takes.
struct ConvCall {
  ConvSizes z;
  DType type, weight;

  const float* bias(const Call& call) const { return z.transposed ? nullptr : input<const float>(call, 2); }
};
bool conv_call(const Signature& s, bool transposed, ConvCall* to);

// dw[O, kernel.., depth] and db[O], from x and dy: the sums over pixels are cut into parts, which depend on the shapes alone.
struct ConvGradient {
  ConvSizes z;  // of the convolution
  DType type;
  int pixels, parts;

  int64_t elements() const { return int64_t{z.channels_out()} * z.length(); }
  int64_t partial_bytes() const { return parts > 1 ? parts * elements() * 4 : 0; }
  int64_t workspace_bytes() const;
};
// tiles: blocks that a part is computed by.
bool conv_gradient(const Signature& s, ConvGradient* to);
void cut_into_parts(int64_t tiles, int least_pixels, ConvGradient* g);
// Where the parts' kernel writes, and whether it adds to that: into dw, or parts of the workspace that finish_gradient adds up. db as well.
struct PartSums {
  float* to;
  bool add;
};
PartSums part_sums(const Call& call, const ConvGradient& g);
void finish_gradient(const Call& call, const ConvGradient& g);

// parts(call, sums) launches what computes the parts.
template <class Parts>
std::unique_ptr<Kernel> make_gradient_kernel(const ConvGradient& g, const Parts& parts) {
  return make_kernel(
      [=](const Call& call) {
        if (output<float>(call, 0) != nullptr) parts(call, part_sums(call, g));
        finish_gradient(call, g);
      },
      g.workspace_bytes());
}

// Of kernels that read the weight as rows of sums of type T, by tiles of rows and columns.
template <class T, class Tiles>
std::unique_ptr<Kernel> make_tiled_kernel(const ConvCall& c, Tiles* tiles, int tile, int threads,
                                          int64_t shared) {
  const ConvWeight weight(c.z, c.weight, c.type);
  const LaunchSize size{.blocks = int64_t{(c.z.rows() - 1) / tile + 1} * ((c.z.columns - 1) / tile + 1),
                        .threads = threads,
                        .shared_bytes = shared,
                        .blocks_y = c.z.phases(),
                        .blocks_z = c.z.groups};
  return make_kernel(
      [=](const Call& call) {
        launch(stream_of(call), tiles, size, c.z, input<const T>(call, 0),
               static_cast<const T*>(weight.read(call)), c.bias(call), output<T>(call, 0));
      },
      weight.workspace_bytes());
}

// ---- on the device

// What a block has of an axis: `count` elements to write, element i at write + i write_step; it reads base + i step + offset + k delta
// by tap first + k tap_step of the window.
struct ConvLine {
  int count, base, step, write, write_step;
  int taps, first, tap_step, offset, delta;

  __device__ __forceinline__ int read_offset(int k) const { return offset + k * delta; }
  __device__ __forceinline__ int tap(int k) const { return first + k * tap_step; }
};

__device__ __forceinline__ ConvLine conv_line(const ConvAxis& a, bool transposed, int phase) {
  if (!transposed) return {a.to, -a.before, a.stride, 0, 1, a.window, 0, 1, 0, a.dilation};
  const int origin = phase + a.before;
  int first = 0;
  while (first < a.every && (origin - first * a.dilation) % a.stride != 0) ++first;
  const bool any = first < a.every && first < a.window;
  return {(a.to - phase + a.stride - 1) / a.stride,
          0,
          1,
          phase,
          a.stride,
          any ? (a.window - 1 - first) / a.every + 1 : 0,
          first,
          a.every,
          any ? (origin - first * a.dilation) / a.stride : 0,
          -(a.every * a.dilation / a.stride)};
}

// Where a row of a block's phase begins to read, and what it writes; n negative: there is no such row.
struct ConvRow {
  int n, h, w;
};
__device__ __forceinline__ ConvRow conv_row(const ConvSizes& z, const ConvLine& h, const ConvLine& w,
                                            int row) {
  const int line = row / w.count, n = line / h.count;
  return {n < z.n ? n : -1, line - n * h.count, row - line * w.count};
}
__device__ __forceinline__ int64_t written_pixel(const ConvSizes& z, const ConvLine& h, const ConvLine& w,
                                                 const ConvRow& r) {
  return (static_cast<int64_t>(r.n) * z.h.to + h.write + r.h * h.write_step) * z.w.to + w.write +
         r.w * w.write_step;
}
// Place k of the sums of a phase, that many taps and channels from the first.
struct ConvPlace {
  int h, w, channel;  // taps of the phase
};
__device__ __forceinline__ ConvPlace conv_place(int k, int depth, int taps_w) {
  const int tap = k / depth, h = tap / taps_w;
  return {h, tap - h * taps_w, k - tap * depth};
}

}  // namespace cairn::kernels::cuda
