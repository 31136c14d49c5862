-- What recipes of decoders share: options, the loss of a language model, its generator, its data. A recipe adds
-- architecture(o) (see families.parts.architecture) and its own options.
local balance = require "families.parts.balance"
local fail = require "cli.base.fail"
local network = require "families.parts.network"
local nn = require("cairn").nn
local objectives = require "families.parts.objectives"

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
    { "data", "", "text file, or random; or rows: .jsonl, .csv or .tsv, several of them, their directory" },
    { "form", "auto", "what data is; auto: as its name says", choices = { "auto", "text", "rows" }, before = "text" },
    { "prompt", "", "column of rows with prompts; default: prompt, instruction or question" },
    { "answer", "", "column of rows with answers; default: completion, response, output or answer" },
    { "template", "", "file of the template that writes conversations; none: without; default: the model's" },
    { "train_on", "answers", "what is learned of rows", choices = { "answers", "all" } },
    { "long", "auto", "rows of more than seq tokens; auto: refused, and texts split",
      choices = { "auto", "refuse", "cut", "drop", "split" } },
    { "packing", "auto", "rows of a window: several, one, or by lengths; auto: best_fit, with lengths buckets",
      choices = { "auto", "best_fit", "none", "buckets" } },
    { "lengths", "", "windows of these lengths instead of seq, as 64,128,256: texts sorted by length (train)" },
    { "remainder", "pad", "an epoch's last micro-batch, too small: padded, of its own size, dropped",
      choices = { "pad", "own", "drop" } },
    { "metrics", "none", "accuracy: measured in training, too, as in evaluation", choices = { "none", "accuracy" } },
    { "eval_data", "", "text file to evaluate with, or rows, as data" },
    { "eval_fraction", 0, "or this share at the end of data (of rows: drawn from all), which is not trained with",
      least = 0, below = 1 },
    { "tokens", (given.tokens or { "bytes" })[1], "kind of tokens", choices = given.tokens or { "bytes", "bpe" } },
  }
  add(last)
  return rows
end

-- What every optimizer begins with.
function language.training()
  return { steps = 100, rate = 3e-4, weight_decay = 0.1, beta1 = 0.9, beta2 = 0.95, clip = 1.0 }
end

local AT_ONCE = 64  -- rows whose logits are in memory at once

-- The loss of the next token.
local function next_token(a, graph, o, purpose)
  local shape, balanced = o, nil
  if purpose ~= "evaluation" and (a.balance or 0) > 0 then
    shape, balanced = balance.training(a, graph, o, o.one_micro_batch)
  end
  local hidden, head = network.body(a, graph, true, network.windows(o, shape), o.segments)
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

-- Adds to a recipe what follows from architecture(o).
function language.complete(recipe, architecture)
  local function objective(o) return objectives[o.objective or "next"] end

  function recipe.model(o, graph, purpose)
    if objective(o) then return objective(o).model(architecture(o), graph, o, purpose) end
    return next_token(architecture(o), graph, o, purpose)
  end

  -- Of [batch, seq] tokens, the `count` likeliest that may follow each: choices and shares [batch * seq, count].
  function recipe.likeliest(o, graph, count)
    local a = architecture(o)
    local hidden, head = network.body(a, graph, false, { batch = o.batch, seq = o.seq }, o.segments)
    local rows, shares, choices = (graph:op("reshape", hidden, { shape = { o.batch * o.seq, a.width } })), {}, {}
    for begin = 0, o.batch * o.seq - 1, AT_ONCE do
      local part = (graph:op("slice", rows, { axis = 0, begin = begin,
                                              ["end"] = math.min(begin + AT_ONCE, o.batch * o.seq) }))
      shares[#shares + 1], choices[#choices + 1] = graph:op("route", network.logits(a, graph, part, head),
        { k = count, normalise = 0 })
    end
    return { outputs = { graph:name(graph:concat(shares, 0), "shares"),
                         graph:name(graph:concat(choices, 0), "choices") } }
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
    network.body(a, graph, true, network.windows(o, shape), o.segments)
    return ends()
  end

  -- Logits of the tokens that follow those numbered position[count] of tokens[1, seq]; count: default 1.
  function recipe.generator(o, graph, count)
    local a = architecture(o)
    if objective(o) and objective(o).scores then
      return { outputs = { graph:name(objectives.generator(a, graph, o, count or 1), "logits") } }
    end
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
    if objective(o) and objective(o).scores then return { problem = "the model scores texts" } end
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

  -- What the model says before it is trained: see cli.train.prepared.
  function recipe.prepares(o) return objective(o) ~= nil and objective(o).prepared ~= nil end
  function recipe.prepared(o, graph) return { outputs = objective(o).prepared(architecture(o), graph, o) } end

  local own_settle = recipe.settle
  function recipe.settle(o, run)
    local found = own_settle and own_settle(o, run) or {}
    for name, value in pairs(o.form and run.instruction.settle(o) or {}) do found[name] = value end
    return found
  end

  function recipe.frozen(o) return o.frozen end
  function recipe.dataset(o, run)
    if objective(o) then return objective(o).data.dataset(o, run) end
    local data = o.form == "rows" and run.instruction.dataset(o) or run.text(o)
    return (architecture(o).balance or 0) > 0 and balance.dataset(data) or data
  end
  function recipe.evaluation(o, run)
    if objective(o) then return objective(o).data.evaluation(o, run) end
    if o.form == "rows" then return run.instruction.evaluation(o) end
    return run.evaluation(o)
  end
  function recipe.programs(o, run) return run.lengths(o) end
  return recipe
end

return language
