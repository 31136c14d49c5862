-- cairn generate DIR --prompt TEXT
local args = require "cli.base.args"
local checkpoints = require "cli.checkpoint.checkpoints"
local fail = require "cli.base.fail"
local json = require "cli.base.json"
local models = require "cli.checkpoint.model"
local posix = require "cli.base.posix"
local screen = require "cli.base.screen"
local sampling = require "cli.train.sampling"
local unicode = require "cli.base.unicode"
local uniform = require "cairn.random"

local USAGE = "cairn generate DIR --prompt TEXT [--tokens N] [--temperature T] [--top-k K] [--seed N]"
local KNOWN = args.known("device threads seed json quiet", {
  prompt = { args.text, "what the text begins with", "TEXT" },
  tokens = { args.whole "tokens", "tokens to generate (default 200)" },
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

return function(arguments, root)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE)
  if not options then return 0 end
  if #words ~= 1 or #settings > 0 then fail.usage("one directory is needed; usage: " .. USAGE) end
  if not options.prompt then fail.usage("--prompt is needed; usage: " .. USAGE) end
  local model = models.open(words[1], root, options, true)
  local tokenizer = checkpoints.tokenizer(model.opened)
  local vocabulary, length = tokenizer:vocabulary(), model.graph:info("tokens").shape[2]
  local tokens = sampling.prompt(tokenizer, options.prompt, "--prompt")
  local from = #tokens
  local shown = not options.json and typewriter(tokenizer)
  if shown then shown.add(tokens) end
  sampling.extend(model.session, tokens, options.tokens or 200, {
    window = length, vocabulary = vocabulary, random = uniform(options.seed or 1337),
    temperature = options.temperature, top = options.top_k, what = "--prompt",
    added = function(token)
      if shown then shown.add { token } end
    end })
  if shown then
    shown.finish()
  else
    local text = fail.check("generate", tokenizer:decode(tokens))
    io.stdout:write(json.encode(json.object { { "text", text }, { "tokens", json.array(tokens) },
                                              { "prompt_tokens", from } }), "\n")
  end
  return 0
end
