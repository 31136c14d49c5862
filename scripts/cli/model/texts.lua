-- Texts from a model with caches: the programs of a recipe that has them (`texts`), on a store of their own.
local cairn = require "cairn"
local fail = require "cli.base.fail"
local runs = require "cli.train.run"

local texts = {}

-- The programs of a model (cli.model.trained) for so many samples, prompts of at most `longest` tokens and `rows`
-- tokens in all: rows {name, graph}; nil: it has none for that.
function texts.programs(source, shape)
  local recipe, o = source.recipe, source.o
  if not (recipe and recipe.texts) then return nil end
  local rows = {}
  for i, length in ipairs { 1, shape.longest > 1 and shape.longest or nil } do
    local graph = fail.check("graph", cairn.graph())
    local ends = recipe.call("texts", o, graph, { samples = shape.samples, length = length, rows = shape.rows,
      dtype = shape.dtype })
    if ends.problem then return nil end
    graph = fail.check("graph", graph:freeze(ends))
    if source.mismatch(graph) then return nil end  -- the checkpoint's own graph counts
    rows[i] = { name = i == 1 and "decode" or "prefill", graph = graph }
  end
  return rows
end

-- Plans and opens programs; fill(session, graph) loads the parameters. given: formats (rules of --format), parameters
-- (what they are stored as); nil: the recipe's own. Returns {generator, session, plans}.
function texts.open(programs, options, given, vocabulary, fill)
  options.rates = options.rates or "model"  -- nobody asks how long these plans take
  local wanted = runs.plan_options(options)
  wanted.no_optimizer, wanted.formats = true, given.formats or wanted.formats
  wanted.parameters = given.parameters
  local plans = fail.plan("plan", cairn.plan_set(programs, runs.device(options), wanted))
  local sessions = fail.check("session", cairn.sessions(plans))
  fill(sessions[1], programs[1].graph)
  -- Logits are often padded; a tokenizer of bytes may know more than a model of fewer.
  vocabulary = math.min(vocabulary, programs[1].graph:info("logits").shape[2])
  return { generator = fail.check("generate", cairn.generator(sessions, vocabulary)), session = sessions[1],
           plans = plans }
end

-- The most that the plans take, by tier.
function texts.planned(self)
  local peaks = { device = 0, host = 0, disk = 0 }
  for _, plan in ipairs(self.plans) do
    local own = fail.check("plan", plan:summary()).peak_bytes
    for tier in pairs(peaks) do peaks[tier] = math.max(peaks[tier], own[tier]) end
  end
  return peaks
end

return texts
