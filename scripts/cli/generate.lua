-- cairn generate DIR --prompt TEXT
local args = require "cli.args"
local checkpoints = require "cli.checkpoints"
local fail = require "cli.fail"
local json = require "cli.json"
local models = require "cli.model"
local unicode = require "cli.unicode"
local uniform = require "cairn.random"

local USAGE = "cairn generate DIR --prompt TEXT [--tokens N] [--temperature T] [--top-k K] [--seed N]"
local KNOWN = args.known("device threads seed json quiet", {
  prompt = { args.text, "what the text begins with", "TEXT" },
  tokens = { args.whole(1), "tokens to generate (default 200)" },
  temperature = { args.real, "0: always the likeliest; default 0.8" },
  ["top-k"] = { args.whole(0), "draw among the K likeliest; 0: all (default 40)" },
  json = { args.FLAG, "one JSON object on stdout: text (what is no UTF-8 in it becomes U+FFFD), tokens (exact)" },
  recipe = models.OPTIONS.recipe, ["recipe-changed"] = models.OPTIONS["recipe-changed"],
})

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

-- Writes text as its tokens come: whole characters, each at once.
local function typewriter(tokenizer)
  local characters = unicode.stream()
  local function put(text)
    if text == "" then return end
    local ok, problem = io.stdout:write(text)
    if ok then ok, problem = io.stdout:flush() end
    if not ok then fail.with(5, "stdout: " .. tostring(problem)) end
  end
  local self = {}
  function self.add(tokens) put(characters.feed(fail.check("generate", tokenizer:decode(tokens)))) end
  function self.finish() put(characters.finish() .. "\n") end
  return self
end

return function(arguments, root)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE)
  if not options then return 0 end
  if #words ~= 1 or #settings > 0 then fail.usage("one directory is needed; usage: " .. USAGE) end
  if not options.prompt then fail.usage("--prompt is needed; usage: " .. USAGE) end
  local model = models.open(words[1], root, options, true)
  local tokenizer = checkpoints.tokenizer(model.opened)
  local vocabulary, length = tokenizer:vocabulary(), model.graph:info("tokens").shape[2]
  local tokens = fail.check("--prompt", tokenizer:encode(options.prompt))
  if #tokens == 0 then tokens = fail.check("--prompt", tokenizer:encode("\n")) end
  local from = #tokens
  local random = uniform(options.seed or 1337)
  local shown = not options.json and typewriter(tokenizer)
  if shown then shown.add(tokens) end
  for _ = 1, options.tokens or 200 do
    local window = {}
    local first = math.max(#tokens - length, 0)
    for i = 1, length do window[i] = tokens[first + i] or 0 end
    fail.check("--prompt", model.session:write("tokens", window))
    fail.check("generate", model.session:write("position", { math.min(#tokens, length) - 1 }))
    fail.check("generate", model.session:run())
    local logits = fail.check("generate", model.session:read("logits"))
    for i = 1, #logits do
      if logits[i] ~= logits[i] then fail.with(7, "the model's output is not finite") end
    end
    tokens[#tokens + 1] = draw(logits, vocabulary, options.temperature or 0.8, options.top_k or 40, random)
    if shown then shown.add { tokens[#tokens] } end
  end
  if shown then
    shown.finish()
  else
    local text = fail.check("generate", tokenizer:decode(tokens))
    io.stdout:write(json.encode(json.object { { "text", text }, { "tokens", json.array(tokens) },
                                              { "prompt_tokens", from } }), "\n")
  end
  return 0
end
