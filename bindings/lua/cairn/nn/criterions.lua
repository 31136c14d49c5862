-- Criterions: a loss op over the model's output and a target. build(context, y, target) -> loss, weight: sums, which
-- the stepper divides once per effective batch. target(y) -> dims, dtype of the target that fits an output.
local module = require "cairn.nn.module"

local nn = {}

local function define(kind, construct, target, build)
  return module.define(kind, construct, build, { target = target })
end

local function nothing() end

local function without_last(_, y)
  local shape = y:shape()
  shape[#shape] = nil
  return shape, "i32"
end

-- Mean of (y - target)^2 over all elements.
nn.MSECriterion = define("MSECriterion", nothing, function(_, y) return y:shape(), "f32" end,
  function(_, context, y, target) return context:op("mse", y, target) end)

-- Mean of -log softmax(logits)[target]; targets count from 0 and -100 is ignored.
nn.CrossEntropyCriterion = define("CrossEntropyCriterion", nothing, without_last,
  function(_, context, y, target) return context:op("cross_entropy", y, target) end)

-- A last linear layer (without bias) and cross-entropy in one op: logits are never whole in memory.
-- `tied`: an nn.Embedding of the model whose table is the weight.
nn.LinearCrossEntropyCriterion = define("LinearCrossEntropyCriterion", function(self, width, vocabulary, tied)
  self.width, self.vocabulary, self.tied = width, vocabulary, tied
end, without_last, function(self, context, y, target)
  local owner, dims = self.tied or self, { self.vocabulary, self.width }
  local w = context:parameter(owner, "weight", dims, { init = "normal", scale = 0.02 })
  return context:op("linear_cross_entropy", y, w, target)
end)

return nn
