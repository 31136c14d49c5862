-- What there is to build networks of: sections { title, rows { name, arguments, shapes, words } }, from which
-- scripts/pages makes capi/docs/reference/nn.md. Every constructor of cairn.nn has a row. [..] means any dimensions.
local SAME = "x[..] -> y[..]"

return {
  { "Layers", {
    { "Linear", "inputs, outputs, { bias, scale, init }", "x[.., inputs] -> y[.., outputs]",
      "y = x w^T + b. `bias` (true); weights start uniform in +-1/sqrt(inputs), or normal with the deviation " ..
      "`scale`, or as `init` says; biases at 0. `false` instead of the settings leaves the bias out" },
    { "Embedding", "vocabulary, width, start", "ids[..] of i32 -> y[.., width]",
      "rows of a table. `start`: the deviation of a normal start (0.02), or an initialiser" },
    { "Positions", "time, width, scale", "x[batch, time, width] -> y of the same shape",
      "adds a learned row for each position; `scale`: the deviation of their start (0.02)" },
    { "LayerNorm", "width, eps", "x[.., width] -> y[.., width]", "`eps` (1e-5) is added to the variance" },
    { "RMSNorm", "width, eps, offset", "x[.., width] -> y[.., width]",
      "x over the root of its mean square, times a weight + `offset` (0)" },
    { "Dropout", "rate", SAME,
      "while a graph trains, a share `rate` (0.5) of x is 0 and the rest divided by 1 - rate" },
    { "SwiGLU", "width, hidden", "x[.., width] -> y[.., width]",
      "silu(x gate^T) * (x up^T), then down: Llama's feed-forward layer" },
    { "GLU", "width, hidden, activation, limit", "x[.., width] -> y[.., width]",
      "the same with another function of the gate: \"silu\" (nil), \"gelu\", \"gelu_tanh\", \"relu\", or " ..
      "\"swish_clamped\", whose gate and up are limited by `limit` (7)" },
    { "View", "dims...", "x -> y[dims]", "another shape of the same numbers; one dimension may be -1" },
    { "Identity", "", SAME, "y = x" },
    { "MulConstant", "factor", SAME, "y = factor x" },
  } },
  { "Functions", {
    { "ReLU", "", SAME, "max(x, 0)" },
    { "GELU", "approximate", SAME, "x Phi(x); `approximate`: \"tanh\" (default) or \"erf\"" },
    { "SiLU", "", SAME, "x sigmoid(x)" },
    { "SoftMax", "", SAME, "over the last dimension" },
    { "Sigmoid", "", SAME, "1 / (1 + exp(-x))" },
    { "Tanh", "", SAME, "the hyperbolic tangent" },
    { "SoftPlus", "", SAME, "log(1 + exp(x))" },
    { "Exp", "", SAME, "exp(x)" },
    { "Log", "", SAME, "the natural logarithm" },
    { "Sqrt", "", SAME, "the square root" },
    { "Abs", "", SAME, "|x|" },
    { "SoftCap", "cap", SAME, "cap * tanh(x / cap)" },
    { "Power", "exponent", SAME, "x^exponent" },
    { "Clamp", "min, max", SAME, "not less than `min` and not more than `max`, of which one may be nil" },
  } },
  { "Attention", {
    { "MultiHeadAttention", "width, heads, { causal, kvHeads, rope, bias, scale, init }",
      "x[batch, time, width] -> y of the same shape",
      "self-attention in both directions, or with `causal` = true of each position to those before it and itself; " ..
      "`kvHeads`: fewer heads of keys and values; `rope` = true: rotary positions. With PyTorch's weights (query, " ..
      "key and value in three parts) PyTorch's results" },
    { "CausalSelfAttention", "width, heads, { kvHeads, rope, bias, scale }",
      "x[batch, time, width] -> y of the same shape", "the causal one" },
    { "Block", "width, heads, { dropout, ratio, kvHeads, rope, norm, mlp, name, policy }",
      "x[batch, time, width] -> y of the same shape",
      "a pre-norm transformer block: causal attention, then an mlp of `ratio` (4) times the width. `norm`: " ..
      "\"layer\" or \"rms\"; `mlp`: \"gelu\" or \"swiglu\"; `name` makes it a region" },
  } },
  { "Pictures and sequences", {
    { "Conv2d", "inputs, outputs, kernel, { stride, padding, dilation, groups, bias, init }",
      "x[batch, h, w, inputs] -> y[batch, h', w', outputs]",
      "a convolution, channels last; weights are [outputs, kernel, kernel, inputs / groups], and start uniform in " ..
      "+-1/sqrt(fan_in). Numbers by axis are one, or a list; `padding` may be a list of before and after each axis" },
    { "Conv1d", "inputs, outputs, kernel, { stride, padding, dilation, groups, bias, init, causal }",
      "x[batch, time, inputs] -> y[batch, time', outputs]", "the same over time; `causal` = true sees the past alone" },
    { "ConvTranspose2d", "inputs, outputs, kernel, { stride, padding, dilation, groups, bias, init, size }",
      "x[batch, h, w, inputs] -> y[batch, h', w', outputs]",
      "a convolution's gradient; `size`: of y, by default the smallest. Weights are [inputs, kernel, kernel, " ..
      "outputs / groups]" },
    { "MaxPool2d", "window, { stride, padding }", "x[batch, h, w, C] -> y[batch, h', w', C]",
      "the largest of each window; `stride`: by default the window" },
    { "AvgPool2d", "window, { stride, padding, countPadding }", "x[batch, h, w, C] -> y[batch, h', w', C]",
      "the mean of each window; `countPadding` = false leaves padding out" },
    { "AdaptiveAvgPool2d", "size", "x[batch, h, w, C] -> y[batch, size, size, C]",
      "means of windows that share x out" },
    { "GlobalAvgPool", "", "x[batch, .., C] -> y[batch, C]", "the mean over all axes between" },
    { "Upsample", "size, mode, alignCorners", "x[batch, h, w, C] -> y[batch, h', w', C]",
      "`size`: of y, or `{ scale = factor }`; `mode`: \"nearest\" (nil) or \"bilinear\"" },
    { "Pad", "before, after, value", "x[..] -> y[..]", "lists of elements of `value` (0) before and after each axis" },
    { "Patches", "window, { stride, padding, dilation }", "x[batch, h, w, C] -> y[batch, h', w', window C]",
      "each window as a row" },
    { "SpatialConvolution", "inputs, outputs, kW, kH, dW, dH, padW, padH",
      "x[batch, h, w, inputs] -> y[batch, h', w', outputs]", "`Conv2d` by Torch7's arguments" },
    { "TemporalConvolution", "inputs, outputs, kernel, stride", "x[batch, time, inputs] -> y[batch, time', outputs]",
      "`Conv1d` by Torch7's arguments" },
    { "SpatialMaxPooling", "kW, kH, dW, dH, padW, padH", "x[batch, h, w, C] -> y[batch, h', w', C]",
      "`MaxPool2d` by Torch7's arguments" },
    { "SpatialAveragePooling", "kW, kH, dW, dH, padW, padH", "x[batch, h, w, C] -> y[batch, h', w', C]",
      "`AvgPool2d` by Torch7's arguments" },
  } },
  { "Norms by channel, and branches", {
    { "BatchNorm", "channels, { eps, momentum, affine, start }", "x[.., channels] -> y of the same shape",
      "by the mean and variance of each channel of the micro-batch, `eps` (1e-5) added; once per step " ..
      "`running_mean` and `running_var` move by `momentum` (0.1) to those of its micro-batches. Evaluation takes " ..
      "these. `start`: of the weight (1)" },
    { "SpatialBatchNormalization", "channels, eps, momentum, affine", "x[.., channels] -> y of the same shape",
      "`BatchNorm` by Torch7's arguments" },
    { "BatchNormalization", "channels, eps, momentum, affine", "x[.., channels] -> y of the same shape",
      "`BatchNorm` by Torch7's arguments" },
    { "GroupNorm", "groups, channels, { eps, affine, start }", "x[batch, .., channels] -> y of the same shape",
      "by the mean and variance of a sample's groups of channels" },
    { "L2Normalize", "eps", SAME, "x / max(|x|, eps) over the last axis; `eps`: 1e-12" },
    { "LayerScale", "width, start, name", "x[.., width] -> y[.., width]",
      "times a learned parameter `name` (\"weight\"), which begins at `start` (1e-5)" },
    { "DropPath", "rate", "x[batch, ..] -> y of the same shape",
      "while a graph trains, 0 for a share `rate` (0) of the samples, and x / (1 - rate) for the rest" },
  } },
  { "Recurrent layers", {
    { "LSTM", "inputs, hidden, { bias, last, init, recurrentInit, layers, bidirectional }",
      "x[batch, time, inputs] -> y[batch, time, hidden]",
      "from states of 0; parameters, gates and results are PyTorch's: `weight_ih`, `weight_hh`, `bias_ih`, " ..
      "`bias_hh`, i f g o; those of further `layers` (1) end in `_l1`, .., of the other direction in `_reverse`. " ..
      "`bidirectional` = true: y[.., 2 hidden]. `last` = true: y[batch, hidden], of the last time. Weights start " ..
      "uniform in +-1/sqrt(hidden)" },
    { "GRU", "inputs, hidden, { bias, last, init, recurrentInit, layers, bidirectional }",
      "x[batch, time, inputs] -> y[batch, time, hidden]", "the same with gates r z n" },
  } },
  { "Containers", {
    { "Sequential", "module, ...", "of its modules", "one after the other; `:add(module, name)` adds one" },
    { "Residual", "module", SAME, "x + module(x)" },
    { "Region", "name, policy, module", "of its module",
      "a checkpoint region; `policy`: \"planner\" (nil), \"keep\", \"recompute\", \"offload\"" },
    { "ConcatTable", "module, ...", "x -> a list", "each module's result on the same x; `:add(module, name)`" },
    { "ParallelTable", "module, ...", "a list -> a list", "module i on element i; `:add(module, name)`" },
    { "CAddTable", "", "a list -> y", "the sum" },
    { "CMulTable", "", "a list -> y", "the product" },
    { "JoinTable", "axis", "a list -> y", "one after the other along `axis` (from 0; default: the channels)" },
    { "Concat", "axis, module, ...", "x -> y", "`ConcatTable`, then `JoinTable`; the axis may be left out" },
  } },
  { "Criterions", {
    { "MSECriterion", "", "y[..], target[..]", "the mean of (y - target)^2" },
    { "CrossEntropyCriterion", "{ accuracy }", "y[.., classes], target[..] of i32",
      "the mean of -log softmax(y)[target]; targets count from 0, -100 is left out. `accuracy` = true measures it" },
    { "LinearCrossEntropyCriterion", "width, vocabulary, tied, { accuracy, scale, softcap }",
      "y[.., width], target[..] of i32",
      "a last layer without bias and cross-entropy in one: logits are never all in memory. `tied`: an `Embedding` " ..
      "whose table is the weight. Logits are multiplied by `scale`, then softcap * tanh(logits / softcap)" },
    { "ContrastiveCriterion", "{ scale, learned, most, accuracy }", "y[N, width], target[N, width]",
      "InfoNCE in both directions, as CLIP: row i of y belongs to row i of the target and to no other. `scale` " ..
      "(1 / 0.07) of the products is learned, as exp(`logit_scale`), and at most `most` (100); `learned` = false " ..
      "fixes it" },
    { "SigLIPCriterion", "{ scale, bias }", "y[N, width], target[N, width]",
      "the sigmoid of each product, times a learned `scale` (10) and plus a learned `bias` (-10), says whether the " ..
      "two rows belong together" },
    { "TripletCriterion", "margin", "y[N, width], target[N, width]",
      "the mean of max(0, margin + y_i t_j - y_i t_i) over all other rows j; `margin`: 0.2" },
  } },
  -- Of cairn.nn.init.
  init = {
    { "`constant(value)`", "`value` (0) everywhere" },
    { "`normal(deviation)`", "normal, with that deviation (1)" },
    { "`uniform(bound)`", "uniform in +-`bound` (1)" },
    { "`truncatedNormal(deviation)`",
      "normal, but none beyond two deviations; `deviation` (1) is the one before that" },
    { "`xavierUniform(gain)`", "uniform in +-gain sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010)" },
    { "`xavierNormal(gain)`", "normal, with the deviation gain sqrt(2 / (fan_in + fan_out))" },
    { "`kaimingUniform(gain, mode)`", "uniform in +-gain sqrt(3 / fan) (He et al., 2015); `gain`: relu's by " ..
      "default; `mode`: `fan_in` (default) or `fan_out`" },
    { "`kaimingNormal(gain, mode)`", "normal, with the deviation gain / sqrt(fan)" },
    { "`orthogonal(gain)`",
      "orthonormal rows, or columns where these are fewer, times `gain` (1) (Saxe et al., 2014)" },
  },
}
