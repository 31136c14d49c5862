-- A vision transformer (Dosovitskiy et al., 2021) that tells pictures apart. DeiT has its shapes; DINOv2 has scaled
-- layers and patches of 14. Parameters have the names of Transformers.
local changed = require "cli.base.changed"
local nn = require("cairn").nn
local pictured = require "families.parts.pictured"
local tower = require "families.parts.tower"
local vit = require "families.vit"

local SIZES = {
  tiny = { 192, 12, 3 }, small = { 384, 12, 6 }, base = { 768, 12, 12 }, large = { 1024, 24, 16 },
}

-- A tower (families.parts.tower), and patch (its side), pooling ("cls", "mean", or "both" of these), roots: names of
-- parts of the net.
local function shape_of(o)
  local described = pictured.model_of(o)
  if described then return changed(described, { dropout = o.dropout, drop_path = o.drop_path }) end
  local size = SIZES[o.size]
  local width = o.width > 0 and o.width or size[1]
  return { width = width, layers = o.layers > 0 and o.layers or size[2], heads = o.heads > 0 and o.heads or size[3],
           hidden = math.floor(width * o.ratio), eps = 1e-6, activation = "gelu", dropout = o.dropout,
           drop_path = o.drop_path, layer_scale = o.layer_scale, names = vit.NAMES, root = "vit", pooling = o.pooling,
           patch = tower.patch_of(o) }
end

local function net(o)
  local a = shape_of(o)
  local patch, rows = a.patch, (o.image / a.patch) ^ 2
  local stem = nn.Sequential()
    :add(tower.Patches(o.channels, a.width, patch), "patch_embeddings.projection")
    :add(tower.Positions(rows, a.width, { positions = "position_embeddings",
                                          class = a.pooling ~= "mean" and "cls_token" or nil }), "")
    :add(nn.Dropout(a.dropout))
  local made = nn.Sequential():add(nn.Region("stem", nil, stem), a.root .. ".embeddings")
  tower.add(made, a, o.segments)
  made:add(nn.LayerNorm(a.width, a.eps), a.root .. ".layernorm")
  local pooled = a.pooling == "cls" and tower.Row(0) or a.pooling == "mean" and nn.GlobalAvgPool()
    or nn.Concat(tower.Row(0), nn.Sequential(tower.Rows(1), nn.GlobalAvgPool()))
  return made:add(pooled):add(tower.linear(a.pooling == "both" and 2 * a.width or a.width, o.classes), "classifier")
end

return pictured.classifier {
  options = {
    { "size", "tiny", "width, layers and heads: 192 12 3, 384 12 6, 768 12 12 or 1024 24 16",
      choices = { "tiny", "small", "base", "large" } },
    { "width", 0, "of the hidden state; 0: as size says", whole = true, least = 0 },
    { "layers", 0, "transformer blocks; 0: as size says", whole = true, least = 0, most = 6000 },
    { "heads", 0, "attention heads; divides width; 0: as size says", whole = true, least = 0 },
    tower.PATCH,
    { "ratio", 4, "of a block's hidden layer to the width", above = 0 },
    { "pooling", "mean", "what is told apart: the mean of all rows, or a class token", choices = { "mean", "cls" } },
    { "layer_scale", 0, "what learned factors of each branch begin at, as 1e-5; 0: there are none", least = 0 },
    { "dropout", 0, "share of activations dropped", least = 0, below = 1 },
    { "drop_path", 0, "share of samples that leave the last block's branches out; earlier ones less", least = 0,
      below = 1 },
    { "segments", "auto", "checkpointed by hand: block, sqrt, or blocks of a segment; auto: the planner decides" },
  },
  defaults = { image = 32 },
  training = { steps = 2000, rate = 3e-4, warmup = 100, schedule = "cosine", weight_decay = 0.05 },
  net = net, name = "vit",
  check = function(o)
    local a = shape_of(o)
    local patch = a.patch
    if o.image % patch ~= 0 then return ("patch=%d does not divide image=%d"):format(patch, o.image) end
    if a.width % a.heads ~= 0 then return ("heads=%d does not divide width=%d"):format(a.heads, a.width) end
    return select(2, nn.segment_size(o.segments, a.layers))
  end,
}
