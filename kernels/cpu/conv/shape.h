// What a convolution, its transposed and the gradient of its weight read: pixels of a source that lie at fixed
// offsets from each pixel of a target.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/base/kernel.h"
#include "runtime/base/spatial.h"

namespace cairn::kernels::cpu {

// Tap `index` (ky kw + kx) reads the source pixel that lies (y, x) from the target's.
struct Tap {
  int64_t index, y, x;
};

// Target pixels (first + i step) read source pixels (i advance + tap). A convolution is one pass. A transposed one
// of stride s has a pass for each remainder of y and x by s: the taps whose pixels the stride does not skip.
struct Pass {
  struct Axis {
    int64_t first = 0, step = 1, count = 0, advance = 1;
  };
  Axis y, x;
  std::vector<Tap> taps;  // by y, then by x
};

// Of one signature. w[outputs, taps, inputs / groups].
struct ConvShape {
  Windows windows;
  int64_t inputs, outputs, groups;
  bool transposed;  // the source is the convolution's output

  int64_t group_inputs() const { return inputs / groups; }
  int64_t group_outputs() const { return outputs / groups; }
  // Of the source and the target.
  int64_t source_rows() const { return transposed ? windows.h.out : windows.h.in; }
  int64_t source_columns() const { return transposed ? windows.w.out : windows.w.in; }
  int64_t source_channels() const { return transposed ? outputs : inputs; }
  int64_t target_rows() const { return transposed ? windows.h.in : windows.h.out; }
  int64_t target_columns() const { return transposed ? windows.w.in : windows.w.out; }
  int64_t target_channels() const { return transposed ? inputs : outputs; }
  bool depthwise() const { return groups == inputs && groups == outputs && groups > 1; }

  std::vector<Pass> passes() const;
};

// What the kernels here take: activations of one fast type, parameters and their gradients in float32 (a weight in
// 16 bits, too).
bool conv_fits(const Signature&);                  // x, w, b -> y
bool conv_weight_fits(const Signature&);           // x, dy -> dw, db
ConvShape conv_shape(const Signature&);            // x, w -> y
ConvShape conv_transpose_shape(const Signature&);  // x, w -> y
ConvShape conv_weight_shape(const Signature&);     // x, dy -> dw: the convolution's

// db[outputs] (+)= the sums of dy, if somebody wants it (output 1).
void conv_bias_gradient(const Call& call, DType type, int64_t pixels, int64_t outputs);

}  // namespace cairn::kernels::cpu
