-- Predicts a number from the other columns of a table: a multi-layer perceptron on columns of numbers, brought to mean
-- 0 and deviation 1, and of names, each of which is a column of zeros and ones.

local nn = require("cairn").nn
local description = require("cli.data.columns").description

local ACTIVATIONS = { relu = nn.ReLU, gelu = nn.GELU, silu = nn.SiLU }

-- The prediction [batch, 1] of a graph with the input x, in deviations of the target from its mean.
local function prediction(o, graph, training)
  local net, inputs = nn.Sequential(), description(o).width
  local x = graph:input("x", { o.batch, inputs })
  for layer = 1, o.layers do
    local block = nn.Sequential():add(nn.Linear(inputs, o.width), "linear"):add(ACTIVATIONS[o.activation]())
      :add(nn.Dropout(o.dropout))
    net:add(nn.Region("layer" .. layer, nil, block), "layer" .. layer)
    inputs = o.width
  end
  return net:add(nn.Linear(inputs, 1), "head"):build(nn.context(graph, training), x)
end

-- A metric of the rows that count: the mean of error(prediction - target), in the target's own units.
local function mean_of(y, deviation, error_of)
  return { outputs = { y = y }, better = "lower", measure = function(outputs, arrays)
    local sum, count = 0, 0
    for i, predicted in ipairs(outputs.y) do
      if arrays.weight[i - 1] > 0 then
        sum, count = sum + error_of((predicted - arrays.target[i - 1]) * deviation), count + 1
      end
    end
    return sum, count
  end }
end

return {
  options = {
    { "data", "", "table: .csv, .tsv or .jsonl; or random" },
    { "target", "", "its column to predict; of csv and tsv by default the last one" },
    { "ignore", "", "columns that are left out, as id,name" },
    { "categorical", "", "columns whose numbers are names, as zip,year; columns of texts are so by themselves" },
    { "statistics", "", "of the columns, as a run keeps them; those of the data if there are none" },
    { "layers", 2, "hidden layers", whole = true, least = 0, most = 20000 },
    { "width", 64, "of a hidden layer", whole = true, least = 1 },
    { "activation", "relu", "of hidden layers", choices = { "relu", "gelu", "silu" } },
    { "batch", 32, "rows of a micro-batch", whole = true, least = 1 },
    { "remainder", "pad", "an epoch's last micro-batch, too small: padded, of its own size, dropped",
      choices = { "pad", "own", "drop" } },
    { "eval_data", "", "table to evaluate with" },
    { "eval_fraction", 0, "or this share of data, drawn from all of it, which is not trained with", least = 0,
      below = 1 },
    { "dropout", 0, "share of activations dropped", least = 0, below = 1 },
  },
  training = { steps = 500, rate = 3e-3, weight_decay = 0.01, beta2 = 0.99 },

  settle = function(o, run) return run.columns.settle(o) end,

  model = function(o, graph, purpose)
    local y = prediction(o, graph, true)
    local target = graph:input("target", { o.batch, 1 })
    local loss, weight = graph:op("mse", y, target, graph:input("weight", { o.batch }))
    local ends = { loss = loss, weight = weight, metrics = {} }
    if purpose ~= "evaluation" then return ends end
    local deviation = description(o).target.deviation
    ends.metrics.mse = mean_of(y, deviation, function(apart) return apart * apart end)
    ends.metrics.mae = mean_of(y, deviation, math.abs)
    if (o.variance or 0) > 0 then
      ends.metrics.r2 = { of = "loss", apply = function(loss_) return 1 - loss_ / o.variance end, better = "higher" }
    end
    return ends
  end,

  predictor = function(o, graph)
    local about = description(o)
    return { outputs = { y = prediction(o, graph, false) }, inputs = about.inputs, answers = about.answers }
  end,

  dataset = function(o, run) return run.columns.dataset(o) end,

  evaluation = function(o, run) return run.columns.evaluation(o) end,
}
