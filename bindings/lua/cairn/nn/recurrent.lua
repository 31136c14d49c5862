-- Recurrent layers, unrolled: a graph has the ops of every time, and the planner keeps or makes again what each needs.
-- They begin with states of zeros. Parameters have PyTorch's names, but for the number of the layer behind them.
local init = require "cairn.nn.init"
local module = require "cairn.nn.module"

local nn = {}


-- x[batch, time, C] as a list of [batch, C]. By halves: each slice's gradient is as large as what it was cut from.
local function times(context, x, list)
  local batch, time, width = unpack(x:shape())
  if time == 1 then
    list[#list + 1] = context:op("reshape", x, { shape = { batch, width } })
    return list
  end
  local half = math.floor(time / 2)
  times(context, (context:op("slice", x, { axis = 1, begin = 0, ["end"] = half })), list)
  return times(context, (context:op("slice", x, { axis = 1, begin = half, ["end"] = time })), list)
end

-- The other way round.
local function joined(context, list)
  local batch, width = unpack(list[1]:shape())
  local parts = {}
  for i, each in ipairs(list) do parts[i] = context:op("reshape", each, { shape = { batch, 1, width } }) end
  return context.graph:concat(parts, 1)
end

-- Columns [first, first + count) of x[batch, C].
local function columns(context, x, first, count)
  return (context:op("slice", x, { axis = 1, begin = first, ["end"] = first + count }))
end

local KNOWN = { bias = true, last = true, init = true, recurrentInit = true }

-- gates: of a cell; step(context, from input [batch, gates hidden], from state, h, c) returns the next h and c.
local function recurrent(kind, gates, step)
  nn[kind] = module.define(kind, function(self, inputs, hidden, settings)
    settings = settings or {}
    for key in pairs(settings) do
      if not KNOWN[key] then
        error(("%s: unknown setting '%s' (known: bias, init, last, recurrentInit)"):format(kind, tostring(key)), 3)
      end
    end
    self.inputs, self.hidden = module.positive(inputs, "inputs"), module.positive(hidden, "hidden")
    self.bias, self.last = settings.bias ~= false, settings.last == true
    self.init, self.recurrent_init = settings.init, settings.recurrentInit
  end, function(self, context, x)
    local shape = x:shape()
    if #shape ~= 3 or shape[3] ~= self.inputs then
      error(("%s: x[batch, time, %d] expected, got [%s]"):format(kind, self.inputs, table.concat(shape, ", ")), 0)
    end
    local default = { init = "uniform", scale = 1 / math.sqrt(self.hidden) }
    local function weight(name, given, width)
      local dims = { gates * self.hidden, width }
      return context:parameter(self, name, dims, init.options(given, dims, default))
    end
    local w, u = weight("weight_ih", self.init, self.inputs), weight("weight_hh", self.recurrent_init, self.hidden)
    local function bias(name)
      return self.bias and context:parameter(self, name, { gates * self.hidden },
        { init = "uniform", scale = default.scale, no_decay = true })
    end
    local b, d = bias("bias_ih"), bias("bias_hh")
    local made, h, c = {}, nil, nil
    for t, from_input in ipairs(times(context, (context:op("linear", x, w, b)), {})) do
      h = h or context:op("scale", columns(context, from_input, 0, self.hidden), { factor = 0 })
      local from_state = context:op("linear", h, u, d)
      h, c = step(context, from_input, from_state, h, c or h, self.hidden)
      made[t] = h
    end
    return self.last and h or joined(context, made)
  end)
end

-- i, f, g, o in order: c = sigmoid(f) c + sigmoid(i) tanh(g), h = sigmoid(o) tanh(c).
recurrent("LSTM", 4, function(context, from_input, from_state, _, c, hidden)
  local gates = from_input + from_state
  local function gate(op, number) return (context:op(op, columns(context, gates, number * hidden, hidden))) end
  local i, f, g, o = gate("sigmoid", 0), gate("sigmoid", 1), gate("tanh", 2), gate("sigmoid", 3)
  c = f * c + i * g
  return o * context:op("tanh", c), c
end)

-- r, z, n in order: n = tanh(n of the input + sigmoid(r) n of the state), h = n + sigmoid(z) (h - n).
recurrent("GRU", 3, function(context, from_input, from_state, h, c, hidden)
  local both = columns(context, from_input, 0, 2 * hidden) + columns(context, from_state, 0, 2 * hidden)
  both = context:op("sigmoid", both)
  local r, z = columns(context, both, 0, hidden), columns(context, both, hidden, hidden)
  local n = context:op("tanh",
    columns(context, from_input, 2 * hidden, hidden) + r * columns(context, from_state, 2 * hidden, hidden))
  return n + z * (h - n), c
end)

return nn
