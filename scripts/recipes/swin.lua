-- Swin (Liu et al., 2021), which tells pictures apart: attention in windows, every second time in windows that are
-- shifted by half of one. Parameters have the names of Transformers.
local changed = require "cli.base.changed"
local nn = require("cairn").nn
local pictured = require "families.parts.pictured"
local stages = require "families.parts.stages"
local tower = require "families.parts.tower"
local windows = require "families.parts.windows"

local SIZES = {
  tiny = { 96, { 2, 2, 6, 2 }, { 3, 6, 12, 24 } }, small = { 96, { 2, 2, 18, 2 }, { 3, 6, 12, 24 } },
  base = { 128, { 2, 2, 18, 2 }, { 4, 8, 16, 32 } }, large = { 192, { 2, 2, 18, 2 }, { 6, 12, 24, 48 } },
}
local EPS = 1e-5

-- {width (of the first stage), depths, heads, patch, window, ratio, eps, activation, drop_path}; nil and what is wrong
-- with the options.
local function shape_of(o)
  local described = pictured.model_of(o)
  if described then return changed(described, { drop_path = o.drop_path }) end
  local size, patch = SIZES[o.size], o.patch > 0 and o.patch or o.image < 64 and 2 or 4
  local made = { width = o.width > 0 and o.width or size[1], depths = size[2], heads = size[3], patch = patch,
                 window = o.window > 0 and o.window or o.image / patch % 7 == 0 and 7 or 4, ratio = 4, eps = EPS,
                 activation = "gelu", drop_path = o.drop_path }
  for _, name in ipairs { "depths", "heads" } do
    local problem
    if o[name] ~= "" then made[name], problem = stages.numbers(name, o[name]) end
    if problem then return nil, problem end
  end
  if #made.depths ~= #made.heads then
    return nil, ("depths has %d stages, heads %d"):format(#made.depths, #made.heads)
  end
  return made
end

-- Stages {width, heads, blocks, side (of the picture there), window}.
local function stages_of(o, a)
  local list, width, side = {}, a.width, o.image / a.patch
  for i, blocks in ipairs(a.depths) do
    list[i] = { width = width, heads = a.heads[i], blocks = blocks, side = side, window = math.min(a.window, side) }
    width, side = 2 * width, side / 2
  end
  return list
end

-- shift: of its windows, in rows and columns. mask: shared by the blocks of a stage.
local function block(a, stage, shift, mask, rate)
  local width, hidden = stage.width, math.floor(a.ratio * stage.width)
  local function part(region, norm, inner)
    return nn.Region(region, nil, nn.Residual(nn.Sequential():add(nn.LayerNorm(width, a.eps), norm):add(inner, "")
      :add(nn.DropPath(rate))))
  end
  local mlp = nn.Sequential():add(tower.linear(width, hidden), "intermediate.dense")
    :add(tower.activation(a.activation)):add(tower.linear(hidden, width), "output.dense")
  return nn.Sequential()
    :add(part("attn", "layernorm_before", windows.Attention(stage, shift, mask, tower.linear)), "")
    :add(part("mlp", "layernorm_after", mlp), "")
end

-- Each square of four positions becomes one, of twice the channels.
local Merge = nn.define("PatchMerging", function(self, width)
  self.modules = { nn.LayerNorm(4 * width, EPS), tower.linear(4 * width, 2 * width, false) }
end, function(self, context, x)
  local shape, parts = x:shape(), {}
  local b, side, width = shape[1], shape[2] / 2, shape[4]
  x = context:op("reshape", x, { shape = { b, side, 2, side, 2, width } })
  for column = 0, 1 do  -- in the order that Transformers joins them in
    for row = 0, 1 do
      local part = context:op("slice", x, { axis = 2, begin = row, ["end"] = row + 1 })
      part = context:op("slice", part, { axis = 4, begin = column, ["end"] = column + 1 })
      parts[#parts + 1] = context:op("reshape", part, { shape = { b, side, side, width } })
    end
  end
  local y = context:child("norm", self.modules[1], context.graph:concat(parts, 3))
  return context:child("reduction", self.modules[2], y)
end)

local function net(o)
  local a = assert(shape_of(o))
  local list, count, done = stages_of(o, a), 0, 0
  for _, stage in ipairs(list) do count = count + stage.blocks end
  local made = nn.Sequential():add(nn.Region("stem", nil, nn.Sequential()
    :add(nn.Conv2d(o.channels, a.width, a.patch, { stride = a.patch, init = nn.init.truncatedNormal(0.02) }),
      "patch_embeddings.projection")
    :add(nn.LayerNorm(a.width, EPS), "norm")), "swin.embeddings")
  for s, stage in ipairs(list) do
    local chain, mask = nn.Sequential(), {}
    for i = 0, stage.blocks - 1 do
      local shift = i % 2 == 1 and stage.window < stage.side and math.floor(stage.window / 2) or 0
      local rate = count > 1 and a.drop_path * done / (count - 1) or 0
      chain:add(nn.Region("b" .. i, nil, block(a, stage, shift, mask, rate)), "blocks." .. i)
      done = done + 1
    end
    if list[s + 1] then chain:add(nn.Region("down", nil, Merge(stage.width)), "downsample") end
    made:add(nn.Region("s" .. s, nil, chain), ("swin.encoder.layers.%d"):format(s - 1))
  end
  local last = list[#list].width
  return made:add(nn.LayerNorm(last, a.eps), "swin.layernorm"):add(nn.GlobalAvgPool())
    :add(tower.linear(last, o.classes), "classifier")
end

return pictured.classifier {
  options = {
    { "size", "tiny", "channels of the first stage, blocks and heads of each: 96, 2 2 6 2, 3 6 12 24; 96, 128 or " ..
      "192 with 2 2 18 2 and 3, 4 or 6 heads first", choices = { "tiny", "small", "base", "large" } },
    { "width", 0, "channels of the first stage, twice as many in each later one; 0: as size says", whole = true,
      least = 0 },
    { "depths", "", "blocks of each stage, as 2,2,6,2; default: as size says" },
    { "heads", "", "attention heads of each stage, as 3,6,12,24; default: as size says" },
    { "patch", 0, "side of the first patches; 0: 4, or 2 below 64 pixels", whole = true, least = 0 },
    { "window", 0, "side of a window, in patches; 0: 7 where that divides a picture's patches, or 4", whole = true,
      least = 0 },
    { "drop_path", 0, "share of samples that leave the last block's branches out; earlier ones less", least = 0,
      below = 1 },
  },
  defaults = { image = 32 },
  training = { steps = 2000, rate = 1e-3, warmup = 100, schedule = "cosine", weight_decay = 0.05 },
  net = net, name = "swin",
  check = function(o)
    local a, problem = shape_of(o)
    if problem then return problem end
    for i, stage in ipairs(stages_of(o, a)) do
      if stage.side ~= math.floor(stage.side) or stage.side < 1 or stage.side % stage.window ~= 0 then
        return ("image=%d, patch=%d: stage %d has %g patches a side, which window=%d does not divide"):format(
          o.image, a.patch, i, stage.side, a.window)
      end
      if stage.width % stage.heads ~= 0 then
        return ("heads=%d does not divide the %d channels of stage %d"):format(stage.heads, stage.width, i)
      end
    end
  end,
}
