-- Modules. Shapes: x[.., C]; sequences are [batch, time, width].
local init = require "cairn.nn.init"
local module = require "cairn.nn.module"
local define, positive = module.define, module.positive

local nn = {}

local function no_decay(scale) return { init = "constant", scale = scale, no_decay = true } end

-- y = x w^T + b; weights start uniform in +-1/sqrt(inputs), as in Torch7. settings: bias (true), scale (standard
-- deviation of a normal start instead), init (what nn.init.NAME(...) returns, instead).
nn.Linear = define("Linear", function(self, inputs, outputs, settings)
  if type(settings) == "boolean" then settings = { bias = settings } end
  settings = settings or {}
  self.inputs, self.outputs = positive(inputs, "inputs"), positive(outputs, "outputs")
  self.bias, self.scale, self.init = settings.bias ~= false, settings.scale, settings.init
end, function(self, context, x)
  local dims, start = { self.outputs, self.inputs }, self.scale and { init = "normal", scale = self.scale }
    or { init = "uniform", scale = 1 / math.sqrt(self.inputs) }
  local w = context:parameter(self, "weight", dims, init.options(self.init, dims, start))
  local b = self.bias and context:parameter(self, "bias", { self.outputs }, no_decay(0))
  return (context:op("linear", x, w, b))
end)

-- Rows of a table by i32 ids[..] -> [.., width]. start: the deviation of a normal start (0.02), or what
-- nn.init.NAME(...) returns.
nn.Embedding = define("Embedding", function(self, vocabulary, width, start)
  self.vocabulary, self.width = positive(vocabulary, "vocabulary"), positive(width, "width")
  if type(start) == "function" then self.init = start else self.scale = start or 0.02 end
end, function(self, context, x)
  local dims = { self.vocabulary, self.width }
  local start = init.options(self.init, dims, { init = "normal", scale = self.scale })
  return (context:op("embedding", context:parameter(self, "weight", dims, start), x))
end)

-- Adds a learned row per position to x[batch, time, width].
nn.Positions = define("Positions", function(self, time, width, scale)
  self.time, self.width, self.scale = positive(time, "time"), positive(width, "width"), scale or 0.02
end, function(self, context, x)
  return x + context:parameter(self, "weight", { self.time, self.width }, { init = "normal", scale = self.scale })
end)

-- eps: added to the variance; false: the op's own, which graphs do not state.
nn.LayerNorm = define("LayerNorm", function(self, width, eps)
  self.width, self.attributes = positive(width, "width"), eps == false and {} or { eps = eps or 1e-5 }
end, function(self, context, x)
  local gamma = context:parameter(self, "weight", { self.width }, no_decay(1))
  local beta = context:parameter(self, "bias", { self.width }, no_decay(0))
  return (context:op("layernorm", x, gamma, beta, self.attributes))
end)

-- offset: added to the weights, which then start at 1 less: 1 for models that store what weights differ from 1 by.
nn.RMSNorm = define("RMSNorm", function(self, width, eps, offset)
  self.width, self.attributes = positive(width, "width"), eps == false and {} or { eps = eps or 1e-5 }
  self.attributes.offset = offset
end, function(self, context, x)
  local gamma = context:parameter(self, "weight", { self.width }, no_decay(1 - (self.attributes.offset or 0)))
  return (context:op("rmsnorm", x, gamma, self.attributes))
end)

local function nothing() end
nn.Identity = define("Identity", nothing, function(_, _, x) return x end)
nn.ReLU = define("ReLU", nothing, function(_, context, x) return (context:op("relu", x)) end)
nn.SiLU = define("SiLU", nothing, function(_, context, x) return (context:op("silu", x)) end)
nn.SoftMax = define("SoftMax", nothing, function(_, context, x) return (context:op("softmax", x)) end)
-- Functions of each number, by the op of that name: nn.Sigmoid(), nn.Tanh(), ...
for name, op in pairs { Sigmoid = "sigmoid", Tanh = "tanh", SoftPlus = "softplus", Exp = "exp", Log = "log",
                        Sqrt = "sqrt", Abs = "abs" } do
  nn[name] = define(name, nothing, function(_, context, x) return (context:op(op, x)) end)
end
-- x^exponent.
nn.Power = define("Power", function(self, exponent)
  if type(exponent) ~= "number" then error(("Power: a number expected, got %s"):format(type(exponent)), 3) end
  self.exponent = exponent
end, function(self, context, x) return (context:op("pow", x, { exponent = self.exponent })) end)
-- Not less than min and not more than max, of which one may be nil.
nn.Clamp = define("Clamp", function(self, min, max) self.limits = { min = min, max = max } end,
  function(self, context, x) return (context:op("clamp", x, self.limits)) end)
nn.MulConstant = define("MulConstant", function(self, factor) self.factor = factor end,
  function(self, context, x) return (context:op("scale", x, { factor = self.factor })) end)
-- approximate: "tanh" (nil) or "none"; false: the op's own, which graphs do not state.
nn.GELU = define("GELU", function(self, approximate)
  self.attributes = approximate == false and {} or { approximate = approximate or "tanh" }
end, function(self, context, x) return (context:op("gelu", x, self.attributes)) end)

local function take_gated(self, width, hidden)
  local plain = { bias = false }
  self.modules = { nn.Linear(width, hidden, plain), nn.Linear(width, hidden, plain), nn.Linear(hidden, width, plain) }
end
local function build_gated(self, context, x, op, attributes)
  local gate = context:child("gate", self.modules[1], x)
  local up = context:child("up", self.modules[2], x)
  return context:child("down", self.modules[3], (context:op(op, gate, up, attributes)))
end
-- silu(x gate^T) * (x up^T), then down: the feed-forward layer of Llama.
nn.SwiGLU = define("SwiGLU", take_gated,
  function(self, context, x) return build_gated(self, context, x, "swiglu", {}) end)
-- The same with another function of the gate: "silu" (nil), "gelu", "gelu_tanh", "relu", or "swish_clamped" with its
-- limit (7).
nn.GLU = define("GLU", function(self, width, hidden, activation, limit)
  take_gated(self, width, hidden)
  self.attributes = { activation = activation, limit = limit }
end, function(self, context, x) return build_gated(self, context, x, "glu", self.attributes) end)

-- cap * tanh(x / cap).
nn.SoftCap = define("SoftCap", function(self, cap)
  if type(cap) ~= "number" or cap <= 0 then
    error(("SoftCap: a number above 0 expected, got %s"):format(tostring(cap)), 3)
  end
  self.cap = cap
end, function(self, context, x) return (context:op("softcap", x, { cap = self.cap })) end)

-- Only there while training.
nn.Dropout = define("Dropout", function(self, rate)
  self.rate = rate or 0.5
  if type(self.rate) ~= "number" or not (self.rate >= 0 and self.rate < 1) then
    error(("Dropout: a share of at least 0 and below 1 expected, got %s"):format(tostring(rate)), 3)
  end
end, function(self, context, x)
  if not (context.training and self.train) or self.rate == 0 then return x end
  return (context:op("dropout", x, { rate = self.rate }))
end)

nn.View = define("View", function(self, ...) self.shape = { ... } end,
  function(self, context, x) return (context:op("reshape", x, { shape = self.shape })) end)

return nn
