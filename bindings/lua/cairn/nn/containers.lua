-- Modules made of modules.
local attention = require "cairn.nn.attention"
local layers = require "cairn.nn.layers"
local module = require "cairn.nn.module"
local define, expect = module.define, module.expect

local nn = {}

-- A place from 1 to `last`.
local function at(self, what, place, last)
  if type(place) ~= "number" or place < 1 or place > last or place ~= math.floor(place) then
    error(("Sequential:%s: a place from 1 to %d expected, got %s; it has %d modules"):format(what, last,
      tostring(place), #self.modules), 3)
  end
  return place
end

-- Names that were the places of children are so again; a child at place i was at i + moved.
local function renumber(self, first, moved)
  for i = first, #self.names do
    if self.names[i] == tostring(i + moved) then self.names[i] = tostring(i) end
  end
end

-- One after the other: nn.Sequential():add(a):add(b, "name"). Children are named 1, 2, ... unless told otherwise; the
-- parameters of one named "" have their parent's names.
nn.Sequential = define("Sequential", function(self, ...)
  self.modules, self.names = {}, {}
  for _, child in ipairs { ... } do self:add(child) end
end, function(self, context, x)
  for i, child in ipairs(self.modules) do x = context:child(self.names[i], child, x) end
  return x
end, {
  add = function(self, child, name)
    self.modules[#self.modules + 1] = expect(child, "Sequential:add")
    self.names[#self.modules] = name or tostring(#self.modules)
    return self
  end,
  -- The child at a place, or with a name; how many there are. A place below 0 counts from the end.
  get = function(self, place)
    if type(place) == "number" then return self.modules[place < 0 and #self.modules + 1 + place or place] end
    for i, name in ipairs(self.names) do
      if name == place then return self.modules[i] end
    end
  end,
  size = function(self) return #self.modules end,
  -- Puts a child before the one at a place (default: at the end), or takes one out (default: the last), which is
  -- returned. Those behind it that have numbers for names get new ones.
  insert = function(self, child, place, name)
    place = at(self, "insert", place or #self.modules + 1, #self.modules + 1)
    table.insert(self.modules, place, expect(child, "Sequential:insert"))
    table.insert(self.names, place, name or tostring(place))
    renumber(self, place + 1, -1)
    return self
  end,
  remove = function(self, place)
    place = at(self, "remove", place or #self.modules, #self.modules)
    table.remove(self.names, place)
    local child = table.remove(self.modules, place)
    renumber(self, place, 1)
    return child
  end,
})

-- x + module(x).
nn.Residual = define("Residual", function(self, inner) self.modules = { expect(inner, "Residual") } end,
  function(self, context, x) return x + self.modules[1]:build(context, x) end)

-- A checkpoint region around a module. policy: "planner", "keep", "recompute", "offload".
nn.Region = define("Region", function(self, name, policy, inner)
  self.name, self.policy, self.modules = name, policy, { expect(inner, "Region") }
end, function(self, context, x)
  return context.graph:region(self.name, self.policy, function() return self.modules[1]:build(context, x) end)
end)

-- A pre-norm transformer block: x + attention(norm(x)), then x + mlp(norm(x)). settings: dropout, ratio (4), kvHeads,
-- rope, norm ("layer" or "rms"), mlp ("gelu" or "swiglu"), name and policy of its region.
nn.Block = define("Block", function(self, width, heads, settings)
  settings = settings or {}
  local norm = settings.norm == "rms" and layers.RMSNorm or layers.LayerNorm
  local hidden = width * (settings.ratio or 4)
  local mlp
  if settings.mlp == "swiglu" then
    mlp = layers.SwiGLU(width, hidden)
  else
    mlp = nn.Sequential():add(layers.Linear(width, hidden), "fc"):add(layers.GELU())
      :add(layers.Linear(hidden, width), "proj")
  end
  local attends = attention.CausalSelfAttention(width, heads, { kvHeads = settings.kvHeads, rope = settings.rope })
  local drop = layers.Dropout(settings.dropout or 0)
  self.region, self.policy = settings.name, settings.policy
  self.modules = {
    nn.Sequential():add(nn.Residual(nn.Sequential():add(norm(width), "norm1"):add(attends, "attn"):add(drop)), "a")
      :add(nn.Residual(nn.Sequential():add(norm(width), "norm2"):add(mlp, "mlp"):add(drop)), "m"),
  }
end, function(self, context, x)
  local function body() return self.modules[1]:build(context, x) end
  if not self.region then return body() end
  return context.graph:region(self.region, self.policy, body)
end)

return nn
