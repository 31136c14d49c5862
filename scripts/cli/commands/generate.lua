-- cairn generate DIR --prompt TEXT
local args = require "cli.base.args"
local checkpoints = require "cli.checkpoint.checkpoints"
local directory = require "cli.model.directory"
local fail = require "cli.base.fail"
local forward = require "cli.model.forward"
local json = require "cli.base.json"
local models = require "cli.checkpoint.model"
local posix = require "cli.base.posix"
local screen = require "cli.base.screen"
local sampling = require "cli.train.sampling"
local summary = require "cli.plan.summary"
local tokenizers = require "cli.data.tokenizers"
local unicode = require "cli.base.unicode"
local uniform = require "cairn.random"

local USAGE = "cairn generate DIR --prompt TEXT [--max-tokens N] [--temperature T] [--top-k K] [--seed N]"
local TOKENS = 200  -- unless somebody says how many
local KNOWN = args.known("device threads seed json quiet", {
  prompt = { args.text, "what the text begins with", "TEXT" },
  ["max-tokens"] = { args.whole "tokens", "tokens to generate (default 200)", "N" },
  tokens = { args.whole "tokens", "the same", "N" },
  temperature = { args.real, "0: always the likeliest; default 0.8" },
  ["top-k"] = { args.whole "top-k", "draw among the K likeliest; 0: all (default 40)" },
  seed = { args.whole "seed", "of the draws of tokens (default 1337)" },
  json = { args.FLAG, "one JSON object on stdout: text (what is no UTF-8 in it becomes U+FFFD), tokens (exact)" },
  recipe = models.OPTIONS.recipe, ["recipe-changed"] = models.OPTIONS["recipe-changed"],
})

-- Writes text as its tokens come: whole characters, each at once.
local function typewriter(tokenizer)
  local characters = unicode.stream()
  local out = posix.is_terminal(1) and io.stdout or screen.stdout  -- elsewhere the text is exact
  local function put(text)
    if text == "" then return end
    local ok, problem = out:write(text)
    if ok then ok, problem = out:flush() end
    if not ok then fail.with(5, "stdout: " .. tostring(problem)) end
  end
  local self = {}
  function self.add(tokens) put(characters.feed(fail.check("generate", tokenizer:decode(tokens)))) end
  function self.finish() put(characters.finish() .. "\n") end
  return self
end

-- The model and the tokenizer of a run, or of a model's directory, and the prompt's tokens.
local function open(path, root, options, count)
  local function encoded(tokenizer) return sampling.prompt(tokenizer, options.prompt, "--prompt") end
  if not directory.is(path) then
    local model = models.open(path, root, options, true)
    local tokenizer = checkpoints.tokenizer(model.opened)
    return model, tokenizer, encoded(tokenizer)
  end
  local tokenizer = tokenizers.of_directory(path).opened
  local tokens = encoded(tokenizer)
  local recipe, o = forward.recipe(path, root, { { "seq", ("%d"):format(#tokens + count) } })
  for _, token in ipairs(tokens) do
    if token >= o.vocab then
      fail.input(("--prompt: its tokens have the number %d; the model has %d tokens, from 0"):format(token, o.vocab))
    end
  end
  return forward.open(recipe, o, options, 1, function(message)
    if not options.quiet then io.stderr:write(message, "\n") end
  end), tokenizer, tokens
end

-- Seconds to the first token, and tokens a second after it; nil: there were none.
local function speeds(began, first, ended, count)
  return (first or ended) - began, count > 1 and (count - 1) / (ended - first) or nil
end

return function(arguments, root)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE)
  if not options then return 0 end
  if #words ~= 1 or #settings > 0 then fail.usage("one directory is needed; usage: " .. USAGE) end
  if not options.prompt then fail.usage("--prompt is needed; usage: " .. USAGE) end
  if options.tokens and options.max_tokens then fail.usage("--tokens and --max-tokens are the same; give one") end
  local wanted = options.max_tokens or options.tokens or TOKENS
  local model, tokenizer, tokens = open(words[1], root, options, wanted)
  local vocabulary, length = tokenizer:vocabulary(), model.graph:info("tokens").shape[2]
  local from = #tokens
  local shown = not options.json and typewriter(tokenizer)
  if shown then shown.add(tokens) end
  local began, first = posix.now(), nil
  sampling.extend(model.session, tokens, wanted, {
    window = length, vocabulary = vocabulary, random = uniform(options.seed or 1337),
    temperature = options.temperature, top = options.top_k, what = "--prompt",
    added = function(token)
      first = first or posix.now()
      if shown then shown.add { token } end
    end })
  if shown then
    shown.finish()
    return 0
  end
  local prefill, rate = speeds(began, first, posix.now(), #tokens - from)
  local peaks = {}
  for _, tier in ipairs { "device", "host", "disk" } do
    peaks[tier] = fail.check("usage", model.session:usage(tier)).peak_bytes
  end
  local planned = fail.check("plan", model.plan:summary()).peak_bytes
  local text = fail.check("generate", tokenizer:decode(tokens))
  io.stdout:write(json.encode(json.object {
    { "text", text }, { "tokens", json.array(tokens) }, { "prompt_tokens", from }, { "prefill_seconds", prefill },
    { "decode_tokens_per_second", rate }, { "cache_bytes", 0 }, { "peak_bytes", summary.tiers(peaks) },
    { "planned_peak_bytes", summary.tiers(planned) } }), "\n")
  return 0
end
