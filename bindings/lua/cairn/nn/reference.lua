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
  { "Recurrent layers", {
    { "LSTM", "inputs, hidden, { bias, last, init, recurrentInit }",
      "x[batch, time, inputs] -> y[batch, time, hidden]",
      "unrolled over time, from states of 0; parameters, gates and results are PyTorch's: `weight_ih`, `weight_hh`, " ..
      "`bias_ih`, `bias_hh`, i f g o. `last` = true: y[batch, hidden], of the last time. Weights start uniform in " ..
      "+-1/sqrt(hidden)" },
    { "GRU", "inputs, hidden, { bias, last, init, recurrentInit }", "x[batch, time, inputs] -> y[batch, time, hidden]",
      "the same with gates r z n" },
  } },
  { "Containers", {
    { "Sequential", "module, ...", "of its modules", "one after the other; `:add(module, name)` adds one" },
    { "Residual", "module", SAME, "x + module(x)" },
    { "Region", "name, policy, module", "of its module",
      "a checkpoint region; `policy`: \"planner\" (nil), \"keep\", \"recompute\", \"offload\"" },
  } },
  { "Criterions", {
    { "MSECriterion", "", "y[..], target[..]", "the mean of (y - target)^2" },
    { "CrossEntropyCriterion", "{ accuracy }", "y[.., classes], target[..] of i32",
      "the mean of -log softmax(y)[target]; targets count from 0, -100 is left out. `accuracy` = true measures it" },
    { "LinearCrossEntropyCriterion", "width, vocabulary, tied, { accuracy, scale, softcap }",
      "y[.., width], target[..] of i32",
      "a last layer without bias and cross-entropy in one: logits are never all in memory. `tied`: an `Embedding` " ..
      "whose table is the weight. Logits are multiplied by `scale`, then softcap * tanh(logits / softcap)" },
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
