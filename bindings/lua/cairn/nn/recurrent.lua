-- Recurrent layers: one op steps through time, and keeps its gates for the gradient. They begin with states of zeros.
-- Parameters have PyTorch's names, of which those of the first layer have no number.
local init = require "cairn.nn.init"
local module = require "cairn.nn.module"

local nn = {}

local KNOWN = { bias = true, last = true, init = true, recurrentInit = true, layers = true, bidirectional = true }

-- gates: of a cell; step(context, x, w, b, u, d, reverse) returns y[batch, time, hidden] from the weights of the input
-- and of the state, and their biases (false: there are none).
local function recurrent(kind, gates, step)
  nn[kind] = module.define(kind, function(self, inputs, hidden, settings)
    settings = settings or {}
    for key in pairs(settings) do
      if not KNOWN[key] then
        error(("%s: unknown setting '%s' (known: bias, bidirectional, init, last, layers, recurrentInit)"):format(kind,
          tostring(key)), 3)
      end
    end
    self.inputs, self.hidden = module.positive(inputs, "inputs"), module.positive(hidden, "hidden")
    self.bias, self.last = settings.bias ~= false, settings.last == true
    self.layers, self.bidirectional = module.positive(settings.layers or 1, "layers"), settings.bidirectional == true
    self.init, self.recurrent_init = settings.init, settings.recurrentInit
  end, function(self, context, x)
    local shape = x:shape()
    if #shape ~= 3 or shape[3] ~= self.inputs then
      error(("%s: x[batch, time, %d] expected, got [%s]"):format(kind, self.inputs, table.concat(shape, ", ")), 0)
    end
    local default = { init = "uniform", scale = 1 / math.sqrt(self.hidden) }
    local function one(layer, reverse, input)
      local suffix = (layer > 0 and "_l" .. layer or "") .. (reverse and "_reverse" or "")
      local function weight(name, given, width)
        local dims = { gates * self.hidden, width }
        return context:parameter(self, name .. suffix, dims, init.options(given, dims, default))
      end
      local function bias(name)
        return self.bias and context:parameter(self, name .. suffix, { gates * self.hidden },
          { init = "uniform", scale = default.scale, no_decay = true })
      end
      local inputs = input:shape()
      local w, u = weight("weight_ih", self.init, inputs[3]), weight("weight_hh", self.recurrent_init, self.hidden)
      local b, d = bias("bias_ih"), bias("bias_hh")
      return step(context, input, w, b, u, d, reverse and 1 or nil)
    end
    local time = shape[2]
    for layer = 0, self.layers - 1 do
      local forward = one(layer, false, x)
      local backward = self.bidirectional and one(layer, true, x)
      if self.last and layer == self.layers - 1 then
        -- The state after the last step of each direction.
        local function at(y, place)
          y = context:op("slice", y, { axis = 1, begin = place, ["end"] = place + 1 })
          return (context:op("reshape", y, { shape = { shape[1], self.hidden } }))
        end
        forward, backward = at(forward, time - 1), backward and at(backward, 0)
      end
      x = backward and context:op("concat", forward, backward, { axis = #forward:shape() - 1 }) or forward
    end
    return x
  end)
end

-- i, f, g, o in order: c = sigmoid(f) c + sigmoid(i) tanh(g), h = sigmoid(o) tanh(c). Both biases are added alike.
recurrent("LSTM", 4, function(context, x, w, b, u, d, reverse)
  return (context:op("lstm", (context:op("linear", x, w, b and b + d)), u, { reverse = reverse }))
end)

-- r, z, n in order: n = tanh(n of the input + sigmoid(r) n of the state), h = n + sigmoid(z) (h - n).
recurrent("GRU", 3, function(context, x, w, b, u, d, reverse)
  return (context:op("gru", (context:op("linear", x, w, b)), u, d, { reverse = reverse }))
end)

return nn
