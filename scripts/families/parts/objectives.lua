-- What a decoder is trained to do besides predicting the next token: to prefer one text of a pair (dpo), to score texts
-- so that the preferred one has more (reward), to tell texts apart (classify). Each row:
--   model(a, graph, o, purpose)   the graph, as a recipe's
--   prepared(a, graph, o)         outputs of a forward graph over every pair, by name, before training (optional)
--   data                          how cli.data makes it: dataset, evaluation
--   scores(o)                     rows of the head in the place of the vocabulary's (optional)
--   check(o)                      what does not go together, in words
local changed = require "cli.base.changed"
local f1 = require "cli.train.f1"
local labels_of = require("cli.data.labelled").labels
local network = require "families.parts.network"
local nn = require("cairn").nn
local preferences = require "cli.instruct.preferences"
local sequences = require "cli.data.sequences"

local objectives = {}

objectives.HEAD = "score.weight"  -- Transformers' name, of every family
local HEAD_SCALE = 0.02

local function one_of(graph, x, row)
  return (graph:op("slice", x, { axis = 0, begin = row, ["end"] = row + 1 }))
end

-- Values of one element, each {graph value}, as one vector.
local function vector(graph, values)
  for i, value in ipairs(values) do values[i] = (graph:op("reshape", value, { shape = { 1 } })) end
  return graph:concat(values, 0)
end

local MEANS = { ipo = true }  -- losses that compare means over the tokens of an answer, as TRL does

-- Of pairs, whose rows take turns, the preferred text first: the log-probability of its answer less that of the other
-- one, [batch]. Sums are subtracted in float64.
local function differences(a, graph, o)
  local hidden, head = network.body(a, graph, true, { batch = 2 * o.batch, seq = o.seq }, o.segments)
  local targets, list = graph:input("targets", { 2 * o.batch, o.seq }, "i32"), {}
  local function loss(row)
    local sum, count = graph:op("linear_cross_entropy", one_of(graph, hidden, row), head, one_of(graph, targets, row),
      { scale = a.logits_scale, softcap = a.logits_softcap })
    return MEANS[o.dpo_loss] and (graph:op("div", sum, count)) or sum
  end
  for i = 0, o.batch - 1 do
    local difference = (graph:op("sub", loss(2 * i + 1), loss(2 * i)))
    list[i + 1] = (graph:op("cast", difference, { dtype = "f32" }))
  end
  return vector(graph, list)
end

local function total(graph, x) return (graph:op("reduce_sum", x)) end

-- Metrics of pairs: the share whose margin is above zero, and its mean. weights: 1, or 0 of a pair that is not there.
local function measured(graph, margin, weights)
  local count = total(graph, weights)
  local above = (graph:op("greater", margin, weights * 0))
  return { accuracy = { sum = total(graph, above * weights), weight = count, better = "higher" },
           margin = { sum = total(graph, margin * weights), weight = count, better = "higher" } }
end

local function ends_of(graph, loss, margin, weights)
  return { loss = total(graph, loss * weights), weight = total(graph, weights),
           metrics = measured(graph, margin, weights) }
end

-- -log sigmoid(margin).
local function logistic(graph, margin) return (graph:op("softplus", -margin)) end

-- Losses of a pair by TRL's names; margin: beta times what the log-ratio of the preferred text has over that of the
-- other one; one: 1 of each pair that is there. Rafailov et al., 2023 (sigmoid), Zhao et al., 2023 (hinge), Azar et
-- al., 2023 (ipo).
local LOSSES = {
  sigmoid = logistic,
  hinge = function(graph, margin, one) return (graph:op("relu", one - margin)) end,
  ipo = function(_, margin, one, beta)
    local off = margin / beta - one / (2 * beta)
    return off * off
  end,
}

objectives.dpo = {
  data = preferences,
  model = function(a, graph, o)
    local margin = (differences(a, graph, o) - graph:input("reference", { o.batch }, "f32")) * o.beta
    local weights = graph:input("pairs", { o.batch }, "f32")
    return ends_of(graph, LOSSES[o.dpo_loss](graph, margin, weights, o.beta), margin, weights)
  end,
  prepared = function(a, graph, o) return { reference = differences(a, graph, o) } end,
}

local function scored(a, graph, x, count)
  return network.linear(graph, x, (objectives.HEAD:gsub("%.weight$", "")), a.width, count, false, HEAD_SCALE)
end

-- Of the tokens numbered position[count] of tokens[1, seq], what a text that ends there has.
function objectives.generator(a, graph, o, count)
  local hidden = network.hidden(a, graph, false, { batch = 1, seq = o.seq }, o.segments)
  local rows = (graph:op("reshape", hidden, { shape = { o.seq, a.width } }))
  local x = (graph:op("embedding", rows, graph:input("position", { count }, "i32")))
  return scored(a, graph, x, objectives[o.objective].scores(o))
end

-- Scores [rows, count] of texts, by the hidden state of their last token: share[rows, seq] is 1 at it, 0 elsewhere.
local function scores(a, graph, o, rows, count)
  local hidden = network.hidden(a, graph, true, { batch = rows, seq = o.seq }, o.segments)
  local share = (graph:op("reshape", graph:input("share", { rows, o.seq }, "f32"), { shape = { rows, 1, o.seq } }))
  local x = (graph:op("reshape", (graph:op("matmul", share, hidden)), { shape = { rows, a.width } }))
  return scored(a, graph, x, count)
end

objectives.reward = {
  data = preferences,
  scores = function() return 1 end,
  model = function(a, graph, o)
    local y = (graph:op("reshape", scores(a, graph, o, 2 * o.batch, 1), { shape = { o.batch, 2 } }))
    local function column(at)
      return (graph:op("reshape", (graph:op("slice", y, { axis = 1, begin = at, ["end"] = at + 1 })),
        { shape = { o.batch } }))
    end
    local margin, weights = column(0) - column(1), graph:input("pairs", { o.batch }, "f32")
    return ends_of(graph, logistic(graph, margin), margin, weights)
  end,
}

local function single(o) return changed(o, { pair = "" }) end
local FORM = { kind = "classify", shares = true, last = true }

objectives.classify = {
  scores = function(o) return #labels_of(o) end,
  data = {
    dataset = function(o, run) return sequences.dataset(single(o), run, FORM) end,
    evaluation = function(o, run) return sequences.evaluation(single(o), run, FORM) end,
  },
  model = function(a, graph, o, purpose)
    local count = #labels_of(o)
    local y = scores(a, graph, o, o.batch, count)
    local counts = purpose == "evaluation" or o.metrics == "accuracy"
    local context = nn.context(graph, true)
    local loss, weight, metrics = nn.CrossEntropyCriterion({ accuracy = counts }):build(context, y,
      graph:input("target", { o.batch }, "i32"))
    metrics = metrics or {}
    if purpose == "evaluation" then
      for name, metric in pairs(f1.metrics(y, count)) do metrics[name] = metric end
    end
    return { loss = loss, weight = weight, metrics = metrics }
  end,
}

-- The forward divergence of what another model expects, KL(teacher || student) = sum over tokens c of p_c (log p_c -
-- log q_c), of the `top` likeliest tokens. With logits z_c = x . w_c the sum of p_c log q_c is that of the likeliest,
-- which the fused loss gives, plus x times a sum of rows of the head: logits are never all in memory.
local AT_ONCE = 8  -- choices of each token whose rows are looked up together

objectives.distill = {
  data = { dataset = function(o, run) return run.instruction.dataset(o) end,
           evaluation = function(o, run) return run.instruction.evaluation(o) end },
  model = function(a, graph, o)
    local rows, count, scale = o.batch * o.seq, o.top, (a.logits_scale or 1) / o.temperature
    local hidden, head = network.body(a, graph, true, network.windows(o), o.segments)
    local targets = graph:input("targets", { o.batch, o.seq }, "i32")
    local loss, weight = graph:op("linear_cross_entropy", hidden, head, targets, { scale = scale })
    local choices = graph:input("choices", { rows, count }, "i32")
    local shares = graph:input("shares", { rows, count }, "f32")
    local entropy = graph:input("entropy", { rows }, "f32")
    -- What the loss counts of the likeliest token alone: 1 where anything is learned.
    local learned = (graph:op("reduce_sum", shares, { axes = { 1 } }))
    local x = (graph:op("reshape", hidden, { shape = { rows, a.width } }))
    local function part(y, begin)
      return (graph:op("slice", y, { axis = 1, begin = begin, ["end"] = math.min(begin + AT_ONCE, count) }))
    end
    local first = (graph:op("reshape", (graph:op("slice", choices, { axis = 1, begin = 0, ["end"] = 1 })),
      { shape = { rows } }))
    local mean = (graph:op("embedding", head, first)) * (graph:op("reshape", learned, { shape = { rows, 1 } }))
    for begin = 0, count - 1, AT_ONCE do
      local size = math.min(AT_ONCE, count - begin)
      local looked = (graph:op("embedding", head, part(choices, begin)))
      local by = (graph:op("reshape", part(shares, begin), { shape = { rows, 1, size } }))
      local sum = (graph:op("matmul", by, looked))
      mean = mean - (graph:op("reshape", sum, { shape = { rows, a.width } }))
    end
    local rest = total(graph, x * mean) * scale + total(graph, entropy)
    return { loss = loss + (graph:op("cast", rest, { dtype = "f64" })), weight = weight }
  end,
}

objectives.NAMES = { "auto", "next", "dpo", "reward", "classify", "distill" }
objectives.LOSSES = { "sigmoid", "hinge", "ipo" }

return objectives
