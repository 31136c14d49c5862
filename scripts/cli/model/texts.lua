-- Texts from a model: by programs with caches of a recipe that has them (`texts`), or else by one of a whole window.
local cairn = require "cairn"
local fail = require "cli.base.fail"
local planning = require "cli.train.planning"
local windows = require "cli.model.windows"

local texts = { TEMPERATURE = 0.8, TOP = 40 }

-- The programs of a recipe for so many samples, prompts of at most `longest` tokens (or of each of `lengths`, the first
-- 1) and `rows` tokens in all: rows {name, graph}, the one that decodes first; nil: it has none for that.
-- mismatch(graph) -> why it is not the model's.
function texts.programs(recipe, o, shape, mismatch)
  if not (recipe and recipe.texts) then return nil end
  local rows = {}
  for i, length in ipairs(shape.lengths or { 1, shape.longest > 1 and shape.longest or nil }) do
    local graph = fail.check("graph", cairn.graph())
    local ends = recipe.call("texts", o, graph, { samples = shape.samples, length = length, rows = shape.rows,
      dtype = shape.dtype })
    if ends.problem then return nil end
    graph = fail.check("graph", graph:freeze(ends))
    if mismatch and mismatch(graph) then return nil end  -- the checkpoint's own graph counts
    rows[i] = { name = i == 1 and "decode" or i == 2 and "prefill" or "prefill" .. length, graph = graph }
  end
  return rows
end

-- What makes texts by sessions of these programs (cairn.generator), or by the one of a window, which has no caches.
function texts.writer(sessions, cached, tokenizer)
  -- Logits are often padded; a tokenizer of bytes may know more than a model of fewer.
  local shape = sessions[1].graph:info("logits").shape
  local vocabulary = math.min(tokenizer:vocabulary(), shape[#shape])
  if not cached then return windows.open(sessions[1], vocabulary) end
  return fail.check("generate", cairn.generator(sessions, vocabulary))
end

-- Plans and opens programs on a store of their own; source: of cli.model.trained. Returns sessions and plans.
function texts.open(programs, options, source)
  options.rates = options.rates or "model"  -- nobody asks how long these plans take
  local wanted = planning.plan_options(options)
  wanted.no_optimizer, wanted.formats = true, source.formats or wanted.formats
  wanted.parameters = source.parameters
  local plans = fail.plan("plan", cairn.plan_set(programs, planning.device(options), wanted))
  local sessions = fail.check("session", cairn.sessions(plans))
  source.fill(sessions[1], programs[1].graph)
  return sessions, plans
end

-- The most that plans take, by tier.
function texts.planned(plans)
  local peaks = { device = 0, host = 0, disk = 0 }
  for _, plan in ipairs(plans) do
    local own = fail.check("plan", plan:summary()).peak_bytes
    for tier in pairs(peaks) do peaks[tier] = math.max(peaks[tier], own[tier]) end
  end
  return peaks
end

local function prompt(tokenizer, text, what)
  if tokenizer.kind == "pretrained" then
    local tokens, count = tokenizer:encode_with(text, { special = true })
    fail.check(what, tokens, count)
    local list = {}
    for i = 1, count do list[i] = tokens[i - 1] end
    if count > 0 then return list end
  end
  local tokens = fail.check(what, tokenizer:encode(text))
  return #tokens > 0 and tokens or fail.check(what, tokenizer:encode("\n"))
end

-- A prompt's tokens, with those that a published model's tokenizer puts around a text; an empty one is a line's end.
-- last: a token that they end with, if any does.
function texts.encoded(tokenizer, text, what, last)
  local tokens = prompt(tokenizer, text, what)
  if last and tokens[#tokens] ~= last then tokens[#tokens + 1] = last end
  return tokens
end

-- The text of tokens; of a published model without special ones.
function texts.decoded(tokenizer, tokens)
  if tokenizer.kind == "pretrained" then
    return fail.check("generate", tokenizer:decode_with(tokens, { skip_special = true }))
  end
  return fail.check("generate", tokenizer:decode(tokens))
end

return texts
