-- Towers of pre-norm transformer blocks over x[batch, rows, width]: of patches, of tokens. A tower's shape:
--   width, layers, heads, hidden, eps, activation ("gelu", "gelu_tanh", "quick_gelu"), causal, dropout, drop_path (of
--   the last block; others have less, evenly), layer_scale (start; 0 or nil: none)
--   names: block (with %d), q, k, v, o, before, after, up, down, scale1, scale2
local network = require "families.parts.network"
local nn = require("cairn").nn

local tower = {}

local init = nn.init.truncatedNormal(0.02)

-- x sigmoid(1.702 x), as OpenAI's CLIP has it.
local QuickGELU = nn.define("QuickGELU", function() end,
  function(_, context, x) return x * context:op("sigmoid", x * 1.702) end)

function tower.activation(name)
  if name == "quick_gelu" then return QuickGELU() end
  local act = network.ACTIVATIONS[name]
  return name == "relu" and nn.ReLU() or nn.GELU(act.attributes and act.attributes.approximate or false)
end

function tower.linear(inputs, outputs, bias) return nn.Linear(inputs, outputs, { init = init, bias = bias }) end

local Attention = nn.define("Attention", function(self, a)
  self.a = a
  self.modules = {}
  for i, name in ipairs { "q", "k", "v", "o" } do self.modules[i], self[name] = tower.linear(a.width, a.width), i end
end, function(self, context, x)
  local a = self.a
  local function part(name) return context:child(a.names[name], self.modules[self[name]], x) end
  local y = context:op("attention", part "q", part "k", part "v", { heads = a.heads, causal = a.causal and 1 or 0 })
  return context:child(a.names.o, self.modules[self.o], y)
end)

function tower.block(a, layer)
  local names = a.names
  local rate = a.layers > 1 and (a.drop_path or 0) * layer / (a.layers - 1) or 0
  local function part(region, norm, inner, scale)
    local path = nn.Sequential():add(nn.LayerNorm(a.width, a.eps), norm):add(inner, "")
    if (a.layer_scale or 0) > 0 then path:add(nn.LayerScale(a.width, a.layer_scale, scale), "") end
    path:add(nn.Dropout(a.dropout or 0)):add(nn.DropPath(rate))
    return nn.Region(region, nil, nn.Residual(path))
  end
  local mlp = nn.Sequential():add(tower.linear(a.width, a.hidden), names.up):add(tower.activation(a.activation))
    :add(tower.linear(a.hidden, a.width), names.down)
  return nn.Sequential():add(part("attn", names.before, Attention(a), names.scale1), "")
    :add(part("mlp", names.after, mlp, names.scale2), "")
end

-- Adds a tower's blocks to a chain.
function tower.add(net, a, segments)
  return nn.add_blocks(net, a.layers, segments, function(i) return tower.block(a, i), a.names.block:format(i) end)
end

-- The option of a patch's side, and the side where nobody said it: the largest that makes at least 4 x 4 patches.
local SIDES, LEAST = { 16, 8, 7, 4, 2, 1 }, 4
tower.PATCH = { "patch", 0, "side of a patch; divides image; 0: 16, or the largest of 8, 7, 4, 2 that makes at " ..
  "least 4 x 4 patches", whole = true, least = 0 }
function tower.patch_of(o)
  if o.patch > 0 then return o.patch end
  for _, side in ipairs(SIDES) do
    if o.image % side == 0 and o.image / side >= LEAST then return side end
  end
  return 1
end

-- Patches of a picture as rows [batch, rows, width]. patch: its side.
tower.Patches = nn.define("PatchRows", function(self, channels, width, patch, bias)
  self.width = width
  self.modules = { nn.Conv2d(channels, width, patch, { stride = patch, init = init, bias = bias }) }
end, function(self, context, x)
  local y = self.modules[1]:build(context, x)
  local shape = y:shape()
  return (context:op("reshape", y, { shape = { shape[1], shape[2] * shape[3], self.width } }))
end)

-- Adds a learned row per position, and, where there is a name for it, puts a learned row before all others, the class
-- token. names: {positions, class}; dims: of what these parameters are stored as, but for the last (default: {1} more).
tower.Positions = nn.define("RowsInPlace", function(self, rows, width, names)
  self.rows, self.width, self.names = rows, width, names
end, function(self, context, x)
  local first = self.names.class and 1 or 0
  local rows, width = self.rows + first, self.width
  local function parameter(name, count, flat)
    local dims = flat or { 1, count, width }
    local p = context:parameter(self, name, dims, { init = "truncated_normal", scale = 0.02 })
    return #dims == 2 and p or (context:op("reshape", p, { shape = { count, width } }))
  end
  local positions = parameter(self.names.positions, rows, self.names.flat and { rows, width })
  if first == 0 then return x + positions end
  local class = parameter(self.names.class, 1, self.names.flat and { width })
  class = context:op("pad", class, { before = { 0, 0 }, after = { rows - 1, 0 } })
  return (context:op("pad", x, { before = { 0, 1, 0 }, after = { 0, 0, 0 } })) + (positions + class)
end)

-- Row number `place` of each sample: [batch, width].
tower.Row = nn.define("Row", function(self, place) self.place = place end, function(self, context, x)
  local shape = x:shape()
  local at = self.place < 0 and shape[2] + self.place or self.place
  x = context:op("slice", x, { axis = 1, begin = at, ["end"] = at + 1 })
  return (context:op("reshape", x, { shape = { shape[1], shape[3] } }))
end)

-- All rows from number `first` on.
tower.Rows = nn.define("Rows", function(self, first) self.first = first end, function(self, context, x)
  return (context:op("slice", x, { axis = 1, begin = self.first, ["end"] = x:shape()[2] }))
end)

return tower
