-- Text token by token from a session of a generation graph (inputs tokens[1, window] and position[1], output logits).
local fail = require "cli.base.fail"

local sampling = { TEMPERATURE = 0.8, TOP = 40 }

-- A token by its logits (from 1; tokens count from 0), among the first `vocabulary`.
local function draw(logits, vocabulary, temperature, top, random)
  local order = {}
  for i = 1, math.min(#logits, vocabulary) do order[i] = i end
  table.sort(order, function(a, b)
    if logits[a] ~= logits[b] then return logits[a] > logits[b] end
    return a < b
  end)
  if temperature == 0 then return order[1] - 1 end
  local count = top > 0 and math.min(top, #order) or #order
  local weights, sum = {}, 0
  for i = 1, count do
    weights[i] = math.exp((logits[order[i]] - logits[order[1]]) / temperature)
    sum = sum + weights[i]
  end
  local left = random() * sum
  for i = 1, count do
    left = left - weights[i]
    if left < 0 then return order[i] - 1 end
  end
  return order[count] - 1
end

-- Adds up to `count` tokens to the array `tokens`. settings: window (tokens that the graph sees), vocabulary, random,
-- temperature, top (0: among all), what (the prompt's option, for messages), added(token) after each; where that
-- returns false, it ends there; not_finite(), in the place of an error where the model's output is not finite.
function sampling.extend(session, tokens, count, settings)
  local window, length = {}, settings.window
  for _ = 1, count do
    local first = math.max(#tokens - length, 0)
    for i = 1, length do window[i] = tokens[first + i] or 0 end
    fail.check(settings.what, session:write("tokens", window))
    fail.check("generate", session:write("position", { math.min(#tokens, length) - 1 }))
    fail.check("generate", session:run())
    local logits = fail.check("generate", session:read("logits"))
    for i = 1, #logits do
      if logits[i] ~= logits[i] then
        if settings.not_finite then return settings.not_finite() end
        fail.with(7, "the model's output is not finite")
      end
    end
    tokens[#tokens + 1] = draw(logits, settings.vocabulary, settings.temperature or sampling.TEMPERATURE,
      settings.top or sampling.TOP, settings.random)
    if settings.added and settings.added(tokens[#tokens]) == false then return end
  end
end

-- The tokens of a prompt; an empty one is a line's end.
function sampling.prompt(tokenizer, text, what)
  local tokens = fail.check(what, tokenizer:encode(text))
  if #tokens == 0 then tokens = fail.check(what, tokenizer:encode("\n")) end
  return tokens
end

return sampling
