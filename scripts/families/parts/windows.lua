-- Attention in the windows of a picture x[batch, side, side, width], with a learned bias for each pair of places of a
-- window by how far apart they are, in rows and in columns.
local nn = require("cairn").nn

local windows = {}

local function cut(context, x, axis, begin, last)
  return (context:op("slice", x, { axis = axis, begin = begin, ["end"] = last }))
end

-- x with its rows and columns `by` further on, the last of which go on at the first.
local function rolled(context, x, by)
  for axis = 1, 2 do
    local size = x:shape()[axis + 1]
    local at = by % size
    x = context:op("concat", cut(context, x, axis, at, size), cut(context, x, axis, 0, at), { axis = axis })
  end
  return x
end

-- [batch, side, side, C] as [batch, windows, window^2, C], and back.
local function parted(context, x, window)
  local b, side, _, c = unpack(x:shape())
  local n = side / window
  x = context:op("reshape", x, { shape = { b, n, window, n, window, c } })
  x = context:op("transpose", x, { perm = { 0, 1, 3, 2, 4, 5 } })
  return (context:op("reshape", x, { shape = { b, n * n, window * window, c } }))
end
local function joined(context, x, window, side)
  local b, c, n = x:shape()[1], x:shape()[4], side / window
  x = context:op("reshape", x, { shape = { b, n, n, window, window, c } })
  x = context:op("transpose", x, { perm = { 0, 1, 3, 2, 4, 5 } })
  return (context:op("reshape", x, { shape = { b, side, side, c } }))
end

-- The bias [heads, window^2, window^2] of table[(2 window - 1)^2, heads], whose row (window - 1 + rows apart,
-- window - 1 + columns apart) is that of two places: for each place of a key, the rows of the table from its own on.
local function bias_of(context, table_, window, heads)
  local wide = 2 * window - 1
  local t, parts = context:op("reshape", table_, { shape = { 1, wide, wide, heads } }), {}
  for row = 0, window - 1 do parts[row + 1] = cut(context, t, 1, window - 1 - row, wide - row) end
  t = context.graph:concat(parts, 0)
  parts = {}
  for column = 0, window - 1 do
    parts[column + 1] = context:op("reshape", cut(context, t, 2, window - 1 - column, wide - column),
      { shape = { window, 1, window * window, heads } })
  end
  t = context:op("reshape", context.graph:concat(parts, 1), { shape = { window ^ 2, window ^ 2, heads } })
  return (context:op("transpose", t, { perm = { 2, 1, 0 } }))
end

-- What is added to scores [batch, windows, heads, places, places] of shifted windows: -100 where two places were not
-- neighbours before the shift. Made of zeros and what is padded to them.
local function mask_of(context, x, side, window, shift)
  local one = context:op("detach", x)
  for axis = 0, 3 do one = cut(context, one, axis, 0, 1) end
  one = context:op("reshape", (context:op("clamp", one, { min = 0, max = 0 })), { shape = { 1, 1 } })
  local rows = context:op("pad", one, { before = { 0, 0 }, after = { side - window - 1, 0 } })
  rows = context:op("pad", rows, { before = { 0, 0 }, after = { window - shift, 0 }, value = 1 })
  rows = context:op("pad", rows, { before = { 0, 0 }, after = { shift, 0 }, value = 2 })
  local columns = context:op("transpose", rows, { perm = { 1, 0 } })
  local parts = context:op("reshape", rows * 3 + columns, { shape = { 1, side, side, 1 } })
  parts = parted(context, parts, window)
  local count, places = parts:shape()[2], window * window
  local same = context:op("equal", (context:op("reshape", parts, { shape = { count, places, 1 } })),
    (context:op("reshape", parts, { shape = { count, 1, places } })))
  local ones = context:op("equal", same, same)
  return (context:op("reshape", (same - ones) * 100, { shape = { count, 1, places, places } }))
end

-- stage: {width, heads, side, window}; shift: 0, or of the windows; mask: a table that keeps a graph's mask for all
-- blocks of a stage; linear(inputs, outputs): makes a layer.
windows.Attention = nn.define("WindowAttention", function(self, stage, shift, mask, linear)
  self.stage, self.shift, self.mask = stage, shift, mask
  self.modules = {}
  for i = 1, 4 do self.modules[i] = linear(stage.width, stage.width) end
end, function(self, context, x)
  local stage, window = self.stage, self.stage.window
  local heads, columns, places = stage.heads, stage.width / stage.heads, window * window
  local b, count = x:shape()[1], (stage.side / window) ^ 2
  if self.shift > 0 then
    if self.mask.graph ~= context.graph then
      self.mask.graph, self.mask.value = context.graph, mask_of(context, x, stage.side, window, self.shift)
    end
    x = rolled(context, x, self.shift)
  end
  x = parted(context, x, window)
  local function part(name, i)
    local y = context:child("attention.self." .. name, self.modules[i], x)
    y = context:op("reshape", y, { shape = { b * count, places, heads, columns } })
    return (context:op("transpose", y, { perm = { 0, 2, 1, 3 } }))
  end
  local q, k, v = part("query", 1), part("key", 2), part("value", 3)
  local scores = context:op("matmul", q * (1 / math.sqrt(columns)), k, { transpose_b = 1 })
  local biases = context:parameter(self, "attention.self.relative_position_bias_table",
    { (2 * window - 1) ^ 2, heads }, { init = "truncated_normal", scale = 0.02, no_decay = true })
  scores = scores + bias_of(context, biases, window, heads)
  if self.shift > 0 then
    scores = context:op("reshape", scores, { shape = { b, count, heads, places, places } }) + self.mask.value
    scores = context:op("reshape", scores, { shape = { b * count, heads, places, places } })
  end
  local y = context:op("matmul", (context:op("softmax", scores)), v)
  y = context:op("transpose", y, { perm = { 0, 2, 1, 3 } })
  y = context:op("reshape", y, { shape = { b, count, places, stage.width } })
  y = joined(context, context:child("attention.output.dense", self.modules[4], y), window, stage.side)
  return self.shift > 0 and rolled(context, y, -self.shift) or y
end)

return windows
