-- Criterions: a loss op over the model's output and a target. build(context, y, target) -> loss, weight: sums, which
-- the stepper divides once per effective batch; and metrics by name, as recipes give them (scripts/README.md), where
-- any were asked for. target(y) -> dims, dtype of the target that fits an output.
local module = require "cairn.nn.module"

local nn = {}

local function define(kind, construct, target, build)
  return module.define(kind, construct, build, { target = target })
end

local function nothing() end

-- Options of criterions over classes: accuracy, label smoothing; and what the last layer's products become logits by.
local KNOWN = { accuracy = true, smoothing = true }
local OF_LINEAR = { accuracy = true, scale = true, smoothing = true, softcap = true }
local function options_of(given, known)
  for key in pairs(given or {}) do
    if not known[key] then
      local names = {}
      for name in pairs(known) do names[#names + 1] = name end
      table.sort(names)
      error(("unknown option '%s' of a criterion (known: %s)"):format(tostring(key), table.concat(names, ", ")), 4)
    end
  end
  return given or {}
end

-- Of hits and count, which the ops accuracy and linear_cross_entropy make: the share of targets that have the largest
-- logit.
function nn.accuracy(hits, count) return { sum = hits, weight = count, better = "higher" } end

local function without_last(_, y)
  local shape = y:shape()
  shape[#shape] = nil
  return shape, "i32"
end

-- Mean of (y - target)^2 over all elements.
nn.MSECriterion = define("MSECriterion", nothing, function(_, y) return y:shape(), "f32" end,
  function(_, context, y, target) return context:op("mse", y, target) end)

-- Mean of -log softmax(logits)[target]; targets count from 0 and -100 is ignored. options.accuracy: true gives the
-- metric "accuracy"; options.smoothing: the share of a target that all classes have alike.
nn.CrossEntropyCriterion = define("CrossEntropyCriterion", function(self, options)
  options = options_of(options, KNOWN)
  self.accuracy, self.smoothing = options.accuracy, options.smoothing
end, without_last, function(self, context, y, target)
  local metrics = self.accuracy and { accuracy = nn.accuracy(context:op("accuracy", y, target)) } or nil
  local loss, weight = context:op("cross_entropy", y, target, { smoothing = self.smoothing })
  return loss, weight, metrics
end)

-- A last linear layer (without bias) and cross-entropy in one op: logits are never whole in memory.
-- `tied`: an nn.Embedding of the model whose table is the weight; options as CrossEntropyCriterion's, and scale (of
-- logits) and softcap (logits are softcap * tanh(scale * y w^T / softcap)).
nn.LinearCrossEntropyCriterion = define("LinearCrossEntropyCriterion", function(self, width, vocabulary, tied, options)
  self.width, self.vocabulary, self.tied = width, vocabulary, tied
  options = options_of(options, OF_LINEAR)
  self.accuracy, self.smoothing = options.accuracy, options.smoothing
  self.logits = { scale = options.scale, softcap = options.softcap }
end, without_last, function(self, context, y, target)
  local owner, dims = self.tied or self, { self.vocabulary, self.width }
  local w = context:parameter(owner, "weight", dims, { init = "normal", scale = 0.02 })
  return nn.vocabulary_loss(context, y, w, target, self.accuracy, self.smoothing, self.logits)
end)

-- The loss of hidden states y against a vocabulary's rows w: loss, weight, and metrics where accuracy is true. logits
-- (may be nil): their scale and softcap.
function nn.vocabulary_loss(context, y, w, target, accuracy, smoothing, logits)
  logits = logits or {}
  local loss, weight, hits, count = context:op("linear_cross_entropy", y, w, target,
    { accuracy = accuracy and 1 or nil, smoothing = smoothing, scale = logits.scale, softcap = logits.softcap })
  return loss, weight, hits and { accuracy = nn.accuracy(hits, count) }
end

return nn
