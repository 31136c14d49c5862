-- A recipe of one layer on pictures, for pictures_test.py.
local nn = require("cairn").nn
local pictures = require "cli.data.pictures"

local options = pictures.options { image = 12 }
options[#options + 1] = { "batch", 16, "pictures of a micro-batch", whole = true, least = 1 }

return {
  options = options,
  training = { steps = 4, rate = 1e-2 },
  check = function(o) return pictures.check(o) end,
  settle = function(o, run) return pictures.settle(o, nil, run) end,
  model = function(o, graph, purpose)
    local context, numbers = nn.context(graph, true), o.image * o.image * o.channels
    local x = graph:input("input", { o.batch, o.image, o.image, o.channels })
    local target = graph:input("target", { o.batch }, "i32")
    x = context:op("reshape", x, { shape = { o.batch, numbers } })
    local y = nn.Sequential():add(nn.Linear(numbers, o.classes)):build(context, x)
    local loss, weight, metrics = nn.CrossEntropyCriterion({ accuracy = purpose == "evaluation" }):build(context, y,
      target)
    return { loss = loss, weight = weight, metrics = metrics }
  end,
  dataset = function(o, run) return pictures.dataset(o, run) end,
  evaluation = function(o, run) return pictures.evaluation(o, run) end,
}
