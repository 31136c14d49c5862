-- A multi-layer perceptron that tells the arms of a spiral apart, on points drawn from the seed.
local nn = require("cairn").nn
local generator = require "cairn.random"
local normal = require "cli.base.normal"

local ACTIVATIONS = { relu = nn.ReLU, gelu = nn.GELU, silu = nn.SiLU }

local function model(o)
  local net = nn.Sequential()
  local inputs = 2
  for layer = 1, o.layers do
    local block = nn.Sequential():add(nn.Linear(inputs, o.width), "linear"):add(ACTIVATIONS[o.activation]())
    net:add(nn.Region("layer" .. layer, nil, block), "layer" .. layer)
    inputs = o.width
  end
  return net:add(nn.Linear(inputs, o.classes), "head")
end

local function spiral(o, seed)
  local random, points = generator(seed), {}
  for i = 1, o.samples do
    local class, t = (i - 1) % o.classes, random()
    local angle = 2 * math.pi * (class / o.classes + t)
    local x, y = t * math.cos(angle), t * math.sin(angle)
    points[i] = { x + o.noise * normal(random), y + o.noise * normal(random), class }
  end
  return points
end

-- How many of the points are kept for evaluation: the last ones.
local function held_out(o) return math.floor(o.samples * o.eval_fraction + 0.5) end

-- A permutation of 1..count, a pure function of seed and epoch.
local function shuffled(count, seed, epoch)
  local random, order = generator(seed + 7919 * (epoch + 1)), {}
  for i = 1, count do order[i] = i end
  for i = count, 2, -1 do
    local j = math.floor(random() * i) + 1
    order[i], order[j] = order[j], order[i]
  end
  return order
end

-- Inputs of `rows` points, whose numbers number(1), number(2) ... are; nil: a row that counts for nothing. Returns them
-- and how many rows count.
local function arrays_of(o, points, rows, number)
  local input, target, count = {}, {}, 0
  for i = 1, rows do
    local at = number(i)
    local point = at and points[at] or { 0, 0, -100 }
    count = count + (at and 1 or 0)
    input[2 * i - 1], input[2 * i] = point[1], point[2]
    if o.loss == "cross_entropy" then
      target[i] = point[3]
    else
      for class = 0, o.classes - 1 do target[#target + 1] = class == point[3] and 1 or 0 end
    end
  end
  return { input = input, target = target }, count
end

-- The class of the largest of a row's numbers.
local function largest(numbers, row, classes)
  local best = 1
  for class = 2, classes do
    if numbers[row * classes + class] > numbers[row * classes + best] then best = class end
  end
  return best - 1
end

-- How many points have their highest score for the class they are of, and of how many: of targets that are rows, as
-- mse wants them, where the op accuracy takes classes.
local function told_apart(o, scores, target)
  local right, count = 0, #scores / o.classes
  for row = 0, count - 1 do
    if largest(scores, row, o.classes) == largest(target, row, o.classes) then right = right + 1 end
  end
  return right, count
end

return {
  options = {
    { "layers", 2, "hidden layers", whole = true, least = 1, most = 20000 },
    { "width", 64, "of a hidden layer", whole = true, least = 1 },
    { "batch", 64, "points of a micro-batch", whole = true, least = 1 },
    { "activation", "relu", "of hidden layers", choices = { "relu", "gelu", "silu" } },
    { "loss", "cross_entropy", "cross_entropy, or mse against one-hot rows", choices = { "cross_entropy", "mse" } },
    { "classes", 2, "arms of the spiral", whole = true, least = 2 },
    { "samples", 1024, "points in all", whole = true, least = 1, most = 10000000 },
    { "remainder", "pad", "an epoch's last micro-batch, too small: padded (mse: dropped), of its own size, dropped",
      choices = { "pad", "own", "drop" } },
    { "metrics", "none", "accuracy: measured in training, too, as in evaluation", choices = { "none", "accuracy" } },
    { "eval_fraction", 0, "share of the points to evaluate with, and not to train with", least = 0, below = 1 },
    { "noise", 0.03, "standard deviation of the points", least = 0 },
  },
  training = { steps = 300, rate = 1e-2, weight_decay = 0.01, beta2 = 0.99 },

  model = function(o, graph, purpose)
    local measures = purpose == "evaluation" or o.metrics == "accuracy"
    local criterion = o.loss == "mse" and nn.MSECriterion() or nn.CrossEntropyCriterion { accuracy = measures }
    local ends = nn.attach(graph, model(o), criterion, { o.batch, 2 })
    if o.loss == "mse" and measures then
      ends.metrics = { accuracy = { outputs = { scores = ends.output }, better = "higher", training = true,
        measure = function(outputs, arrays) return told_apart(o, outputs.scores, arrays.target) end } }
    end
    return ends
  end,

  dataset = function(o, run)
    local points, count = spiral(o, run.seed), o.samples - held_out(o)
    -- Cross-entropy ignores the rows that fill up an epoch's last micro-batch; mse cannot, so there they are left out.
    local rest, drops = count % o.batch, o.remainder == "drop" or (o.remainder == "pad" and o.loss == "mse")
    local batches = drops and math.floor(count / o.batch) or math.ceil(count / o.batch)
    if batches == 0 then
      error(("samples=%d, eval_fraction=%g: %d points to train with are fewer than batch=%d, and remainder=%s%s " ..
        "leaves them out"):format(o.samples, o.eval_fraction, count, o.batch, o.remainder,
        o.loss == "mse" and " with loss=mse" or ""), 0)
    end
    local order, of_epoch
    return {
      batches = batches,
      remainders = o.remainder == "own" and rest > 0 and { { name = "remainder", changes = { batch = rest } } } or nil,
      batch = function(index)
        local epoch, first = math.floor(index / batches), index % batches * o.batch
        if of_epoch ~= epoch then order, of_epoch = shuffled(count, run.seed, epoch), epoch end
        local own = o.remainder == "own" and count - first < o.batch
        local arrays, rows = arrays_of(o, points, own and rest or o.batch, function(i) return order[first + i] end)
        return arrays, rows, own and "remainder" or nil, rows
      end,
    }
  end,

  evaluation = function(o, run)
    local count = held_out(o)
    if o.eval_fraction == 0 then return nil end
    return { data = function()
      if count == 0 then error("eval_fraction: no point of samples is left to evaluate with") end
      if o.loss == "mse" and count % o.batch > 0 then
        error(("loss=mse ignores no row: batch must divide the %d points to evaluate with"):format(count))
      end
      local points = spiral(o, run.seed)
      return { batches = math.ceil(count / o.batch), batch = function(index)
        return arrays_of(o, points, o.batch, function(i)
          local at = index * o.batch + i
          return at <= count and o.samples - count + at or nil
        end)
      end }
    end }
  end,
}
