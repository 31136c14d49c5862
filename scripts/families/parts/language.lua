-- What recipes of decoders share: options, the loss of a language model, its generator, its data. A recipe adds
-- architecture(o) (see families.parts.architecture) and its own options.
local balance = require "families.parts.balance"
local fail = require "cli.base.fail"
local network = require "families.parts.network"
local nn = require("cairn").nn

local language = {}

-- Options of all, in the order of --help, around those of a recipe's own. defaults: of seq and batch, if others;
-- tokens: the choices, the default first.
function language.options(first, last, given)
  given = given or {}
  local rows = {}
  local function add(list)
    for _, row in ipairs(list) do rows[#rows + 1] = row end
  end
  add(first)
  add {
    { "seq", given.seq or 256, given.seq_words or "tokens of a window", whole = true, least = given.seq or 1 },
    { "batch", given.batch or 8, "windows of a micro-batch", whole = true, least = 1 },
    { "segments", "auto", "checkpointed by hand: block, sqrt, or blocks of a segment; auto: the planner decides" },
    { "data", "", "text file, or random" },
    { "lengths", "", "windows of these lengths instead of seq, as 64,128,256: texts sorted by length (train)" },
    { "remainder", "pad", "an epoch's last micro-batch, too small: padded, of its own size, dropped",
      choices = { "pad", "own", "drop" } },
    { "metrics", "none", "accuracy: measured in training, too, as in evaluation", choices = { "none", "accuracy" } },
    { "eval_data", "", "text file to evaluate with" },
    { "eval_fraction", 0, "or this share at the end of data, which is not trained with", least = 0, below = 1 },
    { "tokens", (given.tokens or { "bytes" })[1], "kind of tokens", choices = given.tokens or { "bytes", "bpe" } },
  }
  add(last)
  return rows
end

-- What every optimizer begins with.
function language.training()
  return { steps = 100, rate = 3e-4, weight_decay = 0.1, beta1 = 0.9, beta2 = 0.95, clip = 1.0 }
end

-- Adds to a recipe what follows from architecture(o).
function language.complete(recipe, architecture)
  function recipe.model(o, graph, purpose)
    local a, shape, balanced = architecture(o), o, nil
    if purpose ~= "evaluation" and (a.balance or 0) > 0 then
      shape, balanced = balance.training(a, graph, o, o.one_micro_batch)
    end
    local hidden, head = network.body(a, graph, true, shape, o.segments)
    local targets = graph:input("targets", { o.batch, o.seq }, "i32")
    local measured = purpose == "evaluation" or o.metrics == "accuracy"
    local loss, weight, hits, count = graph:op("linear_cross_entropy", hidden, head, targets,
      { accuracy = measured and 1 or nil, scale = a.logits_scale, softcap = a.logits_softcap })
    local metrics = hits and { accuracy = nn.accuracy(hits, count) } or {}
    metrics.perplexity = { of = "loss", apply = math.exp, better = "lower" }
    if balanced then
      metrics.cross_entropy = { sum = loss, weight = weight, better = "lower" }
      metrics.perplexity.of = "cross_entropy"
      loss = balanced(loss)
    end
    return { loss = loss, weight = weight, metrics = metrics }
  end

  -- What is summed over a step before it trains: see families.parts.balance.
  function recipe.effective(o)
    local a = architecture(o)
    if (a.balance or 0) == 0 or o.one_micro_batch then return nil end
    if (a.dropout or 0) > 0 then
      fail.usage(("balance: dropout=%g draws anew where choices are counted; give dropout=0, or one micro-batch a step")
        :format(a.dropout))
    end
    return { inputs = { "balance" }, without = "balance=0", values = function(sums) return balance.values(a, sums) end }
  end
  function recipe.sums(o, graph)
    local a = architecture(o)
    local shape, ends = balance.sums(a, graph, o)
    network.body(a, graph, true, shape, o.segments)
    return ends()
  end

  -- Logits of the tokens that follow those numbered position[count] of tokens[1, seq]; count: default 1.
  function recipe.generator(o, graph, count)
    local a = architecture(o)
    local hidden, head = network.body(a, graph, false, { batch = 1, seq = o.seq }, o.segments)
    local position = graph:input("position", { count or 1 }, "i32")
    local rows = graph:op("reshape", hidden, { shape = { o.seq, a.width } })
    local last = graph:op("embedding", rows, position)
    return { outputs = { graph:name(network.logits(a, graph, last, head), "logits") } }
  end

  -- A program that remembers: of one token of each sample (length 1), or of prompts. shape: {samples, length, rows
  -- (tokens that fit), dtype (of the caches)}. {problem}: why there can be none.
  function recipe.texts(o, graph, shape)
    local a = architecture(o)
    if a.names.positions and shape.rows > a.positions then
      return { problem = ("the model has %d positions"):format(a.positions) }
    end
    if a.query_growth and shape.rows > a.query_growth.original then
      return { problem = ("queries grow from token %d on"):format(a.query_growth.original) }
    end
    local hidden, head = network.body(a, graph, false, { batch = shape.samples, seq = shape.length,
      cached = { rows = shape.rows, dtype = shape.dtype } }, "auto")
    local rows = graph:op("reshape", hidden, { shape = { shape.samples * shape.length, a.width } })
    if shape.length > 1 then
      rows = graph:op("embedding", rows, graph:input("last", { shape.samples }, "i32"))
    end
    return { outputs = { graph:name(network.logits(a, graph, rows, head), "logits") } }
  end

  function recipe.frozen(o) return o.frozen end
  function recipe.dataset(o, run)
    local data = run.text(o)
    return (architecture(o).balance or 0) > 0 and balance.dataset(data) or data
  end
  function recipe.evaluation(o, run) return run.evaluation(o) end
  function recipe.programs(o, run) return run.lengths(o) end
  return recipe
end

return language
