-- ConvNeXt (Liu et al., 2022), which tells pictures apart: depthwise convolutions of 7 x 7 in the form of transformer
-- blocks. Parameters have the names of Transformers.
local changed = require "cli.base.changed"
local nn = require("cairn").nn
local pictured = require "families.parts.pictured"
local stages = require "families.parts.stages"
local tower = require "families.parts.tower"

local SIZES = {
  tiny = { 96, { 3, 3, 9, 3 } }, small = { 96, { 3, 3, 27, 3 } }, base = { 128, { 3, 3, 27, 3 } },
  large = { 192, { 3, 3, 27, 3 } },
}
local EPS = 1e-6

local init = nn.init.truncatedNormal(0.02)

local function conv(inputs, outputs, kernel, settings)
  settings.init = init
  return nn.Conv2d(inputs, outputs, kernel, settings)
end

local function block(a, width, rate)
  local path = nn.Sequential()
    :add(conv(width, width, 7, { padding = 3, groups = width }), "dwconv")
    :add(nn.LayerNorm(width, EPS), "layernorm")
    :add(tower.linear(width, 4 * width), "pwconv1"):add(tower.activation(a.activation))
    :add(tower.linear(4 * width, width), "pwconv2")
  if a.layer_scale > 0 then path:add(nn.LayerScale(width, a.layer_scale, "layer_scale_parameter"), "") end
  return nn.Residual(path:add(nn.DropPath(rate)))
end

-- {widths, depths, patch (side of the first patches), layer_scale, activation, last_eps (of the norm after the mean),
-- drop_path}; nil and what is wrong with the options.
local function shape_of(o)
  local described = pictured.model_of(o)
  if described then return changed(described, { drop_path = o.drop_path }) end
  local size = SIZES[o.size]
  local depths, problem = size[2], nil
  if o.depths ~= "" then depths, problem = stages.numbers("depths", o.depths) end
  if problem then return nil, problem end
  local widths = {}
  for stage = 1, #depths do widths[stage] = size[1] * 2 ^ (stage - 1) end
  if o.widths ~= "" then widths, problem = stages.numbers("widths", o.widths) end
  if problem then return nil, problem end
  if #widths ~= #depths then
    return nil, ("widths=%s says %d stages, depths %d"):format(o.widths, #widths, #depths)
  end
  return { widths = widths, depths = depths, patch = o.patch > 0 and o.patch or o.image < 64 and 1 or 4,
           layer_scale = o.layer_scale, activation = "gelu", last_eps = EPS, drop_path = o.drop_path }
end

local function net(o)
  local a = assert(shape_of(o))
  local width, count, done = a.widths[1], 0, 0
  for _, depth in ipairs(a.depths) do count = count + depth end
  local made = nn.Sequential():add(nn.Region("stem", nil, nn.Sequential()
    :add(conv(o.channels, width, a.patch, { stride = a.patch }), "patch_embeddings")
    :add(nn.LayerNorm(width, EPS), "layernorm")), "convnext.embeddings")
  for stage, depth in ipairs(a.depths) do
    local chain = nn.Sequential()
    if stage > 1 then
      chain:add(nn.Region("down", nil, nn.Sequential():add(nn.LayerNorm(width, EPS), "0")
        :add(conv(width, a.widths[stage], 2, { stride = 2 }), "1")), "downsampling_layer")
      width = a.widths[stage]
    end
    for i = 0, depth - 1 do
      local rate = count > 1 and a.drop_path * done / (count - 1) or 0
      chain:add(nn.Region("b" .. i, nil, block(a, width, rate)), "layers." .. i)
      done = done + 1
    end
    made:add(nn.Region("s" .. stage, nil, chain), ("convnext.encoder.stages.%d"):format(stage - 1))
  end
  return made:add(nn.GlobalAvgPool()):add(nn.LayerNorm(width, a.last_eps), "convnext.layernorm")
    :add(tower.linear(width, o.classes), "classifier")
end

return pictured.classifier {
  options = {
    { "size", "tiny", "channels of the first stage and blocks of each: 96 and 3 3 9 3; 96, 128 or 192 and 3 3 27 3",
      choices = { "tiny", "small", "base", "large" } },
    { "depths", "", "blocks of each stage, as 3,3,9,3; default: as size says" },
    { "widths", "", "channels of each stage, as 96,192,384,768; default: as size says, twice as many in each later " ..
      "one" },
    { "patch", 0, "side of the first patches; that of each later stage, twice as long, divides image; 0: 4, or 1 " ..
      "below 64 pixels", whole = true, least = 0 },
    { "layer_scale", 1e-6, "what learned factors of each branch begin at; 0: there are none", least = 0 },
    { "drop_path", 0, "share of samples that leave the last block's branch out; earlier ones less", least = 0,
      below = 1 },
  },
  defaults = { image = 32 },
  training = { steps = 2000, rate = 1e-3, warmup = 100, schedule = "cosine", weight_decay = 0.05 },
  net = net, name = "convnext",
  check = function(o)
    local a, problem = shape_of(o)
    if problem then return problem end
    local side = a.patch * 2 ^ (#a.depths - 1)
    if o.image % side ~= 0 then
      return ("image=%d: with patch=%d and %d stages the last has patches of %d pixels, which do not divide it"):format(
        o.image, a.patch, #a.depths, side)
    end
  end,
}
