-- cairn generate DIR --prompt TEXT
local args = require "cli.base.args"
local attach = require "cli.adapter.attach"
local fail = require "cli.base.fail"
local json = require "cli.base.json"
local models = require "cli.checkpoint.model"
local posix = require "cli.base.posix"
local screen = require "cli.base.screen"
local slice = require "cli.base.slice"
local summary = require "cli.plan.summary"
local texts = require "cli.model.texts"
local trained = require "cli.model.trained"
local unicode = require "cli.base.unicode"

local USAGE = "cairn generate DIR --prompt TEXT [--max-tokens N] [--temperature T] [--seed N]"
local TOKENS = 200  -- unless somebody says how many
local KNOWN = args.known("device threads budget tiers link amp seed json quiet", {
  prompt = { args.one_of_several, "what the text begins with; several make as many texts at once", "TEXT" },
  ["max-tokens"] = { args.whole "tokens", "tokens to generate (default 200)", "N" },
  tokens = { args.whole "tokens", "the same", "N" },
  temperature = { args.real, "0: always the likeliest; default 0.8" },
  ["top-k"] = { args.whole "top-k", "draw among the K likeliest; 0: all (default 40)" },
  ["top-p"] = { args.real, "draw among the fewest of the likeliest that have this probability together; default 1" },
  ["min-p"] = { args.real, "draw none that is less likely than this share of the likeliest; default 0" },
  ["repetition-penalty"] = { args.real, "logits of tokens that were there are divided by it, or multiplied below 0; " ..
    "default 1", "P" },
  stop = { args.one_of_several, "end before this text; may be given several times", "TEXT" },
  seed = { args.whole "seed", "of the draws (default 1337); the second of several texts has the next, and so on" },
  json = { args.FLAG, "one JSON object on stdout: text (what is no UTF-8 in it becomes U+FFFD), tokens (exact), " ..
    "seconds, bytes; of several prompts also texts" },
  recipe = models.OPTIONS.recipe, ["recipe-changed"] = models.OPTIONS["recipe-changed"],
  base = models.OPTIONS.base, ema = models.OPTIONS.ema, adapter = attach.OPTION,
})

local INCOMPLETE = "\239\191\189"  -- U+FFFD, which stands for a character of which a token has a part

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
  -- Many tokenizers decode a token otherwise at the beginning of a text, so each is decoded behind those before it:
  -- tokens from number `from` on, of which those up to `shown` are written.
  local self, tokens, from, shown = {}, {}, 1, 0
  local function write(last)
    local before = texts.decoded(tokenizer, slice(tokens, from, shown))
    local now = texts.decoded(tokenizer, slice(tokens, from))
    if not last and now:sub(-#INCOMPLETE) == INCOMPLETE then return end
    if #now > #before then from = shown + 1 end  -- of special tokens, which have no text, none is a beginning
    put(characters.feed(now:sub(#before + 1)))
    shown = #tokens
  end
  function self.add(more)
    for _, token in ipairs(more) do tokens[#tokens + 1] = token end
    write(false)
  end
  function self.finish()
    if shown < #tokens then write(true) end
    put(characters.finish() .. "\n")
  end
  return self
end

-- A text while it grows: {tokens, from (of which so many are there before it grows), prompt_tokens, shown (its first
-- token that is), why it ended, text}. One that answers a prompt, its `source`, begins with a token of its own.
local Text = {}
Text.__index = Text

local function text_of(model, prompt)
  local begins = model.begins
  local read = texts.encoded(model.tokenizer, prompt, "--prompt", begins and begins.last)
  return setmetatable({ model = model, tokens = begins and { begins.first } or read, from = begins and 1 or #read,
                        prompt_tokens = #read, shown = begins and 2 or 1, source = begins and read or nil }, Text)
end

-- Takes a token. Returns whether it is one of the text, and not its end.
function Text:add(token, stops)
  self.tokens[#self.tokens + 1] = token
  if self.model.ends[token] then
    self.why = "end"
    return false
  end
  if #stops == 0 then return true end
  local made = texts.decoded(self.model.tokenizer, slice(self.tokens, self.from + 1))
  for _, stop in ipairs(stops) do
    local at = stop ~= "" and made:find(stop, 1, true)
    if at then self.why, self.cut = "stop", made:sub(1, at - 1) end
  end
  return self.why == nil
end

function Text:row()
  local tokens, tokenizer = self.tokens, self.model.tokenizer
  local shown = slice(tokens, self.shown, self.why == "end" and #tokens - 1 or #tokens)
  local text = texts.decoded(tokenizer, shown)
  if self.cut then text = texts.decoded(tokenizer, slice(tokens, self.shown, self.from)) .. self.cut end
  return { { "text", text }, { "tokens", json.array(tokens) }, { "prompt_tokens", self.prompt_tokens },
           { "finish_reason", self.why or "length" } }
end

-- Writes all texts. shown(text, token) is told of each token. Returns the work, as the writer has it.
local function write(writer, options, list, count, drawn, shown)
  local left = #list
  for i, text in ipairs(list) do
    local own = {}
    for key, value in pairs(drawn) do own[key] = value end
    own.seed = drawn.seed + i - 1
    fail.check("--prompt", writer:begin(i - 1, text.tokens, own, text.source))
  end
  for _ = 1, count do
    if left == 0 then break end
    local tokens = fail.check("generate", writer:next())
    for i, text in ipairs(list) do
      if not text.why and text:add(tokens[i], options.stop or {}) then
        shown(text, tokens[i])
      elseif text.why and not text.over then
        text.over, left = true, left - 1
        fail.check("generate", writer:finish(i - 1))
      end
    end
  end
  return fail.check("generate", writer:info())
end

local function drawn_by(options)
  local list = { temperature = options.temperature or texts.TEMPERATURE, top_k = options.top_k or texts.TOP,
                 top_p = options.top_p or 1, min_p = options.min_p or 0,
                 repetition_penalty = options.repetition_penalty or 1, seed = options.seed or 1337 }
  if list.top_p == 0 or list.top_p > 1 then fail.usage("--top-p must be above 0, and at most 1") end
  if list.min_p > 1 then fail.usage("--min-p must be from 0 to 1") end
  if list.repetition_penalty == 0 then fail.usage("--repetition-penalty must be above 0") end
  return list
end

-- How many tokens of an answer a program of a decoder's window can make. longest: tokens of what it answers.
local function answered(graph, longest)
  local most = graph:info("source").shape[2]
  if longest > most then
    fail.input(("--prompt: %d tokens, and the model was trained with windows of %d"):format(longest, most))
  end
  return graph:info("tokens").shape[2] - 1  -- one that is cut at its beginning would be another one
end

return function(arguments, root)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE)
  if not options then return 0 end
  if #words ~= 1 or #settings > 0 then fail.usage("one directory is needed; usage: " .. USAGE) end
  if not options.prompt then fail.usage("--prompt is needed; usage: " .. USAGE) end
  if options.tokens and options.max_tokens then fail.usage("--tokens and --max-tokens are the same; give one") end
  local count, drawn = options.max_tokens or options.tokens or TOKENS, drawn_by(options)
  local source = trained.open(words[1], root, options)
  local list, longest = {}, 0
  for i, prompt in ipairs(options.prompt) do
    list[i] = text_of(source, prompt)
    longest = math.max(longest, list[i].prompt_tokens)
  end
  local one = not options.json and #list == 1 and typewriter(source.tokenizer)
  if one and not source.begins then one.add(list[1].tokens) end
  local function shown(_, token)
    if one then one.add { token } end
  end
  local programs = texts.programs(source.recipe, source.o, { samples = #list, longest = longest,
    rows = longest + math.max(count - 1, 0), dtype = options.amp == "bf16" and "bf16" or nil }, source.mismatch)
  local sessions, plans
  if programs then
    sessions, plans = texts.open(programs, options, source)
  else
    local model = source.windowed(source.begins and count + 1 or longest + count, source.begins and longest)
    sessions, plans = { model.session }, { model.plan }
    if source.begins then count = math.min(count, answered(model.graph, longest)) end
  end
  local info = write(texts.writer(sessions, programs ~= nil, source.tokenizer), options, list, count, drawn, shown)
  if one then
    one.finish()
    return 0
  end
  local rows = list[1]:row()
  if not options.json then
    for i, text in ipairs(list) do io.stdout:write(i > 1 and "\n" or "", text:row()[1][2], "\n") end
    return 0
  end
  local peaks = {}
  for _, tier in ipairs { "device", "host", "disk" } do
    peaks[tier] = fail.check("usage", sessions[1]:usage(tier)).peak_bytes
  end
  local rate = info.decode_tokens > 0 and info.decode_tokens / info.decode_seconds or nil
  for _, row in ipairs { { "prefill_seconds", info.prefill_seconds }, { "decode_tokens_per_second", rate },
                         { "cache_bytes", info.cache_bytes }, { "peak_bytes", summary.tiers(peaks) },
                         { "planned_peak_bytes", summary.tiers(texts.planned(plans)) } } do
    rows[#rows + 1] = row
  end
  if #list > 1 then
    local all = {}
    for i, text in ipairs(list) do all[i] = json.object(text:row()) end
    rows[#rows + 1] = { "texts", json.array(all) }
  end
  io.stdout:write(json.encode(json.object(rows)), "\n")
  return 0
end
