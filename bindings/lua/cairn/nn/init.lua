-- How parameters start: nn.init.NAME(...) is what a module takes as `init`. Each is a function(dims) that returns
-- options of graph:parameter. Of a weight [outputs, inputs, ...], fan_in is inputs times what follows, fan_out outputs
-- times that.
local init = {}

local function fans(dims, what)
  if #dims < 2 then
    error(("nn.init.%s: a weight of two dimensions or more expected, got %d"):format(what, #dims), 0)
  end
  local field = 1
  for i = 3, #dims do field = field * dims[i] end
  return dims[2] * field, dims[1] * field
end

local function number(value, default, what)
  value = value == nil and default or value
  if type(value) ~= "number" or value ~= value or math.abs(value) == math.huge or value < 0 then
    error(("nn.init.%s: a number of at least 0 expected, got %s"):format(what, tostring(value)), 3)
  end
  return value
end

-- Gains by the function that follows a weight, as PyTorch's calculate_gain has them.
local GAINS = { linear = 1, sigmoid = 1, tanh = 5 / 3, relu = math.sqrt(2), selu = 3 / 4 }

-- The gain of a function by its name, or a number.
function init.gain(of)
  if type(of) == "number" then return of end
  local gain = GAINS[of or "linear"]
  if not gain then
    error(("nn.init.gain: '%s' is none of linear, relu, selu, sigmoid, tanh; a number is taken, too"):format(
      tostring(of)), 2)
  end
  return gain
end

local function simple(name, kind, default)
  init[name] = function(value)
    value = kind == "constant" and (value or default) or number(value, default, name)
    return function() return { init = kind, scale = value } end
  end
end
simple("constant", "constant", 0)
simple("normal", "normal", 1)  -- deviation
simple("uniform", "uniform", 1)  -- bound
simple("truncatedNormal", "truncated_normal", 1)  -- deviation before it is cut off at two of them
simple("orthogonal", "orthogonal", 1)  -- gain

-- Glorot and Bengio, 2010: uniform in +-gain sqrt(6 / (fan_in + fan_out)).
function init.xavierUniform(gain)
  gain = init.gain(gain)
  return function(dims)
    local inputs, outputs = fans(dims, "xavierUniform")
    return { init = "uniform", scale = gain * math.sqrt(6 / (inputs + outputs)) }
  end
end

-- The same with a deviation of gain sqrt(2 / (fan_in + fan_out)).
function init.xavierNormal(gain)
  gain = init.gain(gain)
  return function(dims)
    local inputs, outputs = fans(dims, "xavierNormal")
    return { init = "normal", scale = gain * math.sqrt(2 / (inputs + outputs)) }
  end
end

local function fan(dims, mode, what)
  local inputs, outputs = fans(dims, what)
  if mode == nil or mode == "fan_in" then return inputs end
  if mode == "fan_out" then return outputs end
  error(("nn.init.%s: '%s' is none of fan_in, fan_out"):format(what, tostring(mode)), 0)
end

-- He et al., 2015: uniform in +-gain sqrt(3 / fan); gain: that of relu by default; mode: "fan_in" (default), "fan_out".
function init.kaimingUniform(gain, mode)
  gain = init.gain(gain or "relu")
  return function(dims)
    return { init = "uniform", scale = gain * math.sqrt(3 / fan(dims, mode, "kaimingUniform")) }
  end
end

-- The same with a deviation of gain / sqrt(fan).
function init.kaimingNormal(gain, mode)
  gain = init.gain(gain or "relu")
  return function(dims)
    return { init = "normal", scale = gain / math.sqrt(fan(dims, mode, "kaimingNormal")) }
  end
end

-- Options of a parameter of these dims: what the user gave, or `default`.
function init.options(given, dims, default)
  if given == nil then return default end
  if type(given) ~= "function" then
    error(("init: what nn.init.NAME(...) returns expected, as nn.init.xavierUniform(); got a %s"):format(type(given)),
      0)
  end
  return given(dims)
end

return init
