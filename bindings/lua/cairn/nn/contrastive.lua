-- Criterions over a micro-batch's pairs: row i of y[N, width] and row i of the target [N, width] belong together, all
-- other pairs do not. Both are best of length 1 (nn.L2Normalize). The N x N products are never in memory.
local module = require "cairn.nn.module"

local nn = {}

local function of_pairs(kind, construct, build)
  return module.define(kind, construct, function(self, context, y, target)
    local a, b = y:shape(), target:shape()
    if #a ~= 2 or #b ~= 2 or a[1] ~= b[1] or a[2] ~= b[2] then
      error(("%s: two matrices of one shape expected, got [%s] and [%s]"):format(kind, table.concat(a, ", "),
        table.concat(b, ", ")), 0)
    end
    if a[1] < 2 then
      error(("%s: a batch of one has no other pair to tell from; give batch=2 or more"):format(kind), 0)
    end
    return build(self, context, y, target)
  end, { target = function(_, y) return y:shape(), "f32" end })
end

-- A learned number of a shape, which is stored as `start`.
local function scalar(self, context, name, start, dims)
  return context:parameter(self, name, dims, { init = "constant", scale = start, no_decay = true })
end

-- The learned factor of products: exp(logit_scale), at most `most`.
local function factor(self, context, name, dims)
  local scale = context:op("exp", scalar(self, context, name, math.log(self.scale), dims))
  return self.most and (context:op("clamp", scale, { max = self.most })) or scale
end

-- InfoNCE (van den Oord et al., 2018) in both directions, as CLIP: the mean of two cross-entropies over the products.
-- settings: scale (1 / 0.07, learned; `learned` = false: fixed), most (100: the learned scale is not more), accuracy.
nn.ContrastiveCriterion = of_pairs("ContrastiveCriterion", function(self, settings)
  settings = settings or {}
  self.scale, self.learned, self.most = settings.scale or 1 / 0.07, settings.learned ~= false, settings.most or 100
  self.accuracy = settings.accuracy
end, function(self, context, y, target)
  local targets, options = context:op("row_numbers", y), { accuracy = self.accuracy and 1 or nil }
  local scaled, other = y, target
  if self.learned then
    local scale = factor(self, context, "logit_scale", {})
    scaled, other = y * scale, target * scale
  else
    options.scale = self.scale
  end
  local one, weight, hits, count = context:op("linear_cross_entropy", scaled, target, targets, options)
  local two, weight2 = context:op("linear_cross_entropy", other, y, targets,
    { scale = options.scale })
  local metrics = hits and { accuracy = { sum = hits, weight = count, better = "higher" } } or nil
  return one + two, weight + weight2, metrics
end)

-- The sigmoid loss of SigLIP (Zhai et al., 2023), with a learned scale and bias.
nn.SigLIPCriterion = of_pairs("SigLIPCriterion", function(self, settings)
  settings = settings or {}
  self.scale, self.bias = settings.scale or 10, settings.bias or -10
end, function(self, context, y, target)
  return context:op("pair_loss", y, target, factor(self, context, "logit_scale", { 1 }),
    scalar(self, context, "logit_bias", self.bias, { 1 }), { kind = "sigmoid" })
end)

-- max(0, margin + s_ij - s_ii) over all other pairs of the batch, by products s.
nn.TripletCriterion = of_pairs("TripletCriterion", function(self, margin) self.margin = margin end,
  function(self, context, y, target)
    local one = context:parameter(self, "scale", { 1 }, { init = "constant", scale = 1, frozen = true })
    return context:op("pair_loss", y, target, one, { kind = "triplet", margin = self.margin })
  end)

return nn
