-- Norms by channel of x[batch, .., C], and what scales or leaves out branches of a network.
local module = require "cairn.nn.module"
local define, positive = module.define, module.positive

local nn = {}

local function constant(scale) return { init = "constant", scale = scale, no_decay = true } end

local function affine(self, context, width)
  if not self.affine then return false, false end
  return context:parameter(self, "weight", { width }, constant(self.start)),
    context:parameter(self, "bias", { width }, constant(0))
end

local KNOWN = { eps = true, momentum = true, affine = true, start = true }

local function take(self, kind, settings)
  for key in pairs(settings) do
    if not KNOWN[key] then
      error(("%s: unknown setting '%s' (known: affine, eps, momentum, start)"):format(kind, tostring(key)), 4)
    end
  end
  self.eps, self.momentum = settings.eps or 1e-5, settings.momentum or 0.1
  self.affine, self.start = settings.affine ~= false, settings.start or 1
end

-- Statistics of the micro-batch where a graph trains, which move running_mean and running_var once per step; these
-- elsewhere. The running variance is the unbiased one, as PyTorch's.
nn.BatchNorm = define("BatchNorm", function(self, channels, settings)
  self.channels = positive(channels, "channels")
  take(self, "BatchNorm", settings or {})
end, function(self, context, x)
  local c, shape = self.channels, x:shape()
  if shape[#shape] ~= c then
    error(("BatchNorm: x[.., %d] expected, got [%s]"):format(c, table.concat(shape, ", ")), 0)
  end
  local gamma, beta = affine(self, context, c)
  local means = context:statistic(self, "running_mean", { c }, 0)
  local variances = context:statistic(self, "running_var", { c }, 1)
  if not (context.training and self.train) then
    return (context:op("normalize", x, means, variances, gamma, beta, { eps = self.eps }))
  end
  local y, mean, variance = context:op("batchnorm", x, gamma, beta, { eps = self.eps })
  local rows = 1
  for axis = 1, #shape - 1 do rows = rows * shape[axis] end
  local function move(value, statistic)
    context:op("running_mean", (context:op("reshape", value, { shape = { 1, c } })), statistic,
      { momentum = self.momentum })
  end
  move(mean, means)
  move(variance * (rows / (rows - 1)), variances)
  return y
end)
-- By Torch7's names.
function nn.SpatialBatchNormalization(channels, eps, momentum, is_affine)
  return nn.BatchNorm(channels, { eps = eps, momentum = momentum, affine = is_affine })
end
nn.BatchNormalization = nn.SpatialBatchNormalization

-- Over the spatial axes and the channels of each of `groups` groups, sample by sample.
nn.GroupNorm = define("GroupNorm", function(self, groups, channels, settings)
  self.groups, self.channels = positive(groups, "groups"), positive(channels, "channels")
  if channels % groups ~= 0 then
    error(("GroupNorm: groups=%d does not divide %d channels"):format(groups, channels), 3)
  end
  take(self, "GroupNorm", settings or {})
end, function(self, context, x)
  local gamma, beta = affine(self, context, self.channels)
  return (context:op("groupnorm", x, gamma, beta, { groups = self.groups, eps = self.eps }))
end)

-- x / max(its 2-norm over the last axis, eps).
nn.L2Normalize = define("L2Normalize", function(self, eps) self.attributes = { eps = eps } end,
  function(self, context, x) return (context:op("l2_normalize", x, self.attributes)) end)

-- A learned factor for each channel, which begins small, so that a branch does. name: of the parameter.
nn.LayerScale = define("LayerScale", function(self, width, start, name)
  self.width, self.start, self.name = positive(width, "width"), start or 1e-5, name or "weight"
end, function(self, context, x)
  return x * context:parameter(self, self.name, { self.width }, constant(self.start))
end)

-- Leaves a branch out for a share of the samples while a graph trains (stochastic depth; Huang et al., 2016): one
-- random number for each sample. The rest is divided by 1 - rate.
nn.DropPath = define("DropPath", function(self, rate)
  self.rate = rate or 0
  if type(self.rate) ~= "number" or not (self.rate >= 0 and self.rate < 1) then
    error(("DropPath: a share of at least 0 and below 1 expected, got %s"):format(tostring(rate)), 3)
  end
end, function(self, context, x)
  if not (context.training and self.train) or self.rate == 0 then return x end
  local shape, ones = x:shape(), {}
  local first = x
  for axis = 1, #shape - 1 do
    ones[axis + 1] = 1
    first = context:op("slice", first, { axis = axis, begin = 0, ["end"] = 1 })
  end
  ones[1] = shape[1]
  first = context:op("detach", first)
  local keep = context:op("dropout", (context:op("equal", first, first)), { rate = self.rate })
  return x * context:op("reshape", keep, { shape = ones })
end)

return nn
