-- Layers for pictures x[batch, height, width, channels] and sequences x[batch, time, channels], channels last.
-- Numbers by spatial axis (kernel, stride, padding, dilation, window, size) are one for all axes or a list; padding may
-- be a list of pairs, before and after each axis.
local init = require "cairn.nn.init"
local module = require "cairn.nn.module"
local define, positive = module.define, module.positive

local nn = {}

local function list(value) return type(value) == "number" and { value } or value end

-- The settings of a module, of which each key must be in `known`, a text of names.
local function settings_of(kind, given, known)
  for key in pairs(given or {}) do
    if not (" " .. known .. " "):find(" " .. tostring(key) .. " ", 1, true) then
      error(("%s: unknown setting '%s' (known: %s)"):format(kind, tostring(key), known), 4)
    end
  end
  return given or {}
end

-- One number for each of `axes` axes.
local function each(value, axes, what)
  local made = {}
  for i = 1, axes do made[i] = positive(type(value) == "table" and value[i] or value, what) end
  return made
end

local KNOWN = "stride padding dilation groups bias init"

local function take(self, kind, axes, inputs, outputs, kernel, settings)
  self.inputs, self.outputs = positive(inputs, "inputs"), positive(outputs, "outputs")
  self.kernel, self.groups = each(kernel, axes, "kernel"), positive(settings.groups or 1, "groups")
  if inputs % self.groups ~= 0 or outputs % self.groups ~= 0 then
    error(("%s: groups=%d does not divide %d inputs and %d outputs"):format(kind, self.groups, inputs, outputs), 4)
  end
  self.bias, self.init = settings.bias ~= false, settings.init
  self.attributes = { stride = list(settings.stride), padding = list(settings.padding),
                      dilation = list(settings.dilation), groups = self.groups > 1 and self.groups or nil }
end

-- The weight [outputs, kernel.., inputs / groups]. It starts uniform in +-1/sqrt(fan_in), as in Torch7; `init` is told
-- its dimensions in Torch7's order, channels before the kernel.
local function weight(self, context, outputs, inputs)
  local dims, order, field = { outputs }, { outputs, inputs / self.groups }, 1
  for _, size in ipairs(self.kernel) do
    dims[#dims + 1], order[#order + 1], field = size, size, field * size
  end
  dims[#dims + 1] = inputs / self.groups
  local start = { init = "uniform", scale = 1 / math.sqrt(inputs / self.groups * field) }
  return context:parameter(self, "weight", dims, init.options(self.init, order, start))
end

local function bias(self, context)
  return self.bias and context:parameter(self, "bias", { self.outputs }, { init = "constant", no_decay = true })
end

local function convolve(self, context, x)
  return (context:op("conv", x, weight(self, context, self.outputs, self.inputs), bias(self, context), self.attributes))
end

nn.Conv2d = define("Conv2d", function(self, inputs, outputs, kernel, settings)
  take(self, "Conv2d", 2, inputs, outputs, kernel, settings_of("Conv2d", settings, KNOWN))
end, convolve)

-- causal: no output sees what comes after it.
nn.Conv1d = define("Conv1d", function(self, inputs, outputs, kernel, settings)
  settings = settings_of("Conv1d", settings, KNOWN .. " causal")
  if settings.causal and settings.padding then error("Conv1d: causal says what the padding is; leave one out", 3) end
  take(self, "Conv1d", 1, inputs, outputs, kernel, settings)
  if settings.causal then
    local dilation = self.attributes.dilation and self.attributes.dilation[1] or 1
    self.attributes.padding = { dilation * (self.kernel[1] - 1), 0 }
  end
end, convolve)

-- size: of the result; default: the smallest. Its weight is [inputs, kernel.., outputs / groups].
nn.ConvTranspose2d = define("ConvTranspose2d", function(self, inputs, outputs, kernel, settings)
  settings = settings_of("ConvTranspose2d", settings, KNOWN .. " size")
  take(self, "ConvTranspose2d", 2, inputs, outputs, kernel, settings)
  self.attributes.size = list(settings.size)
end, function(self, context, x)
  local y = context:op("conv_transpose", x, weight(self, context, self.inputs, self.outputs), self.attributes)
  local b = bias(self, context)
  return b and y + b or y
end)

local function pool(kind, op, known)
  nn[kind] = define(kind, function(self, window, settings)
    settings = settings_of(kind, settings, known)
    self.attributes = { kernel = list(window), stride = list(settings.stride), padding = list(settings.padding) }
    if settings.countPadding ~= nil then self.attributes.count_padding = settings.countPadding and 1 or 0 end
  end, function(self, context, x) return (context:op(op, x, self.attributes)) end)
end
pool("MaxPool2d", "max_pool", "stride padding")
pool("AvgPool2d", "average_pool", "stride padding countPadding")

-- Windows that share x out among a result of this size.
nn.AdaptiveAvgPool2d = define("AdaptiveAvgPool2d", function(self, size) self.size = each(size, 2, "size") end,
  function(self, context, x) return (context:op("average_pool", x, { size = self.size })) end)

-- The mean over all spatial axes: y[batch, channels].
nn.GlobalAvgPool = define("GlobalAvgPool", function() end, function(_, context, x)
  local axes = {}
  for axis = 1, #x:shape() - 2 do axes[axis] = axis end
  return (context:op("reduce_mean", x, { axes = axes }))
end)

-- size: of the result; or { scale = factor }. mode: "nearest" (nil) or "bilinear".
nn.Upsample = define("Upsample", function(self, size, mode, align_corners)
  self.scale = type(size) == "table" and size.scale or nil
  self.size = not self.scale and each(size, 2, "size") or nil
  self.mode, self.align_corners = mode, align_corners and 1 or nil
end, function(self, context, x)
  local size, shape = self.size, x:shape()
  if self.scale then
    size = {}
    for axis = 2, #shape - 1 do size[axis - 1] = math.floor(shape[axis] * self.scale) end
  end
  return (context:op("resize", x, { size = size, mode = self.mode, align_corners = self.align_corners }))
end)

-- before, after: elements to add at each axis of x.
nn.Pad = define("Pad", function(self, before, after, value)
  self.attributes = { before = before, after = after, value = value }
end, function(self, context, x) return (context:op("pad", x, self.attributes)) end)

-- Windows as rows: x[batch, height, width, C] -> y[batch, rows, columns, window C].
nn.Patches = define("Patches", function(self, window, settings)
  settings = settings_of("Patches", settings, "stride padding dilation")
  self.attributes = { kernel = list(window), stride = list(settings.stride), padding = list(settings.padding),
                      dilation = list(settings.dilation) }
end, function(self, context, x) return (context:op("patches", x, self.attributes)) end)

-- By Torch7's names and arguments, whose kernels are given as width, then height.
function nn.SpatialConvolution(inputs, outputs, kw, kh, dw, dh, pw, ph)
  return nn.Conv2d(inputs, outputs, { kh, kw }, { stride = { dh or 1, dw or 1 }, padding = { ph or pw or 0, pw or 0 } })
end
function nn.SpatialMaxPooling(kw, kh, dw, dh, pw, ph)
  return nn.MaxPool2d({ kh, kw }, { stride = { dh or kh, dw or kw }, padding = { ph or 0, pw or 0 } })
end
function nn.SpatialAveragePooling(kw, kh, dw, dh, pw, ph)
  return nn.AvgPool2d({ kh, kw }, { stride = { dh or 1, dw or 1 }, padding = { ph or 0, pw or 0 } })
end
function nn.TemporalConvolution(inputs, outputs, kernel, stride)
  return nn.Conv1d(inputs, outputs, kernel, { stride = stride })
end

return nn
