-- A multi-layer perceptron that tells the arms of a spiral apart, on points drawn from the seed.
local nn = require("cairn").nn
local generator = require "cairn.random"

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

-- A normal number, by Box and Muller.
local function normal(random)
  return math.sqrt(-2 * math.log(1 - random())) * math.cos(2 * math.pi * random())
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

return {
  options = {
    { "layers", 2, "hidden layers", whole = true, least = 1, most = 20000 },
    { "width", 64, "of a hidden layer", whole = true, least = 1 },
    { "batch", 64, "points of a micro-batch", whole = true, least = 1 },
    { "activation", "relu", "of hidden layers", choices = { "relu", "gelu", "silu" } },
    { "loss", "cross_entropy", "cross_entropy, or mse against one-hot rows", choices = { "cross_entropy", "mse" } },
    { "classes", 2, "arms of the spiral", whole = true, least = 2 },
    { "samples", 1024, "points in all", whole = true, least = 1, most = 10000000 },
    { "noise", 0.03, "standard deviation of the points", least = 0 },
  },
  training = { steps = 300, rate = 1e-2, weight_decay = 0.01, beta2 = 0.99 },

  model = function(o, graph)
    local criterion = o.loss == "mse" and nn.MSECriterion() or nn.CrossEntropyCriterion()
    return nn.attach(graph, model(o), criterion, { o.batch, 2 })
  end,

  dataset = function(o, run)
    local points = spiral(o, run.seed)
    -- Cross-entropy ignores the rows that fill up an epoch's last micro-batch; mse cannot, so there they are left out.
    local batches = o.loss == "mse" and math.floor(o.samples / o.batch) or math.ceil(o.samples / o.batch)
    if batches == 0 then error("samples must be at least batch") end
    local order, of_epoch
    return {
      batches = batches,
      batch = function(index)
        local epoch, first = math.floor(index / batches), index % batches * o.batch
        if of_epoch ~= epoch then order, of_epoch = shuffled(o.samples, run.seed, epoch), epoch end
        local input, target, rows = {}, {}, 0
        for i = 1, o.batch do
          local point = points[order[first + i]]
          rows = rows + (point and 1 or 0)
          point = point or { 0, 0, -100 }
          input[2 * i - 1], input[2 * i] = point[1], point[2]
          if o.loss == "cross_entropy" then
            target[i] = point[3]
          else
            for class = 0, o.classes - 1 do target[#target + 1] = class == point[3] and 1 or 0 end
          end
        end
        return { input = input, target = target }, rows
      end,
    }
  end,
}
