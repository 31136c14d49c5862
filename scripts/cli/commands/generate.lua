-- cairn generate DIR --prompt TEXT
local args = require "cli.base.args"
local fail = require "cli.base.fail"
local json = require "cli.base.json"
local models = require "cli.checkpoint.model"
local posix = require "cli.base.posix"
local screen = require "cli.base.screen"
local sampling = require "cli.train.sampling"
local summary = require "cli.plan.summary"
local texts = require "cli.model.texts"
local trained = require "cli.model.trained"
local unicode = require "cli.base.unicode"
local uniform = require "cairn.random"

local USAGE = "cairn generate DIR --prompt TEXT [--max-tokens N] [--temperature T] [--seed N]"
local TOKENS = 200  -- unless somebody says how many
local KNOWN = args.known("device threads budget tiers amp seed json quiet", {
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

-- A text while it grows: {tokens, from (of which so many are the prompt), why it ended, text}.
local Text = {}
Text.__index = Text

local function text_of(source, tokens)
  return setmetatable({ source = source, tokens = tokens, from = #tokens }, Text)
end

-- Takes a token. Returns whether it is one of the text, and not its end.
function Text:add(token, stops)
  self.tokens[#self.tokens + 1] = token
  if self.source.ends[token] then
    self.why = "end"
    return false
  end
  if #stops == 0 then return true end
  local made = trained.decoded(self.source.tokenizer, { unpack(self.tokens, self.from + 1) })
  for _, stop in ipairs(stops) do
    local at = stop ~= "" and made:find(stop, 1, true)
    if at then self.why, self.cut = "stop", made:sub(1, at - 1) end
  end
  return self.why == nil
end

function Text:row()
  local tokens, tokenizer = self.tokens, self.source.tokenizer
  local shown = { unpack(tokens, 1, self.why == "end" and #tokens - 1 or #tokens) }
  local text = trained.decoded(tokenizer, shown)
  if self.cut then text = trained.decoded(tokenizer, { unpack(tokens, 1, self.from) }) .. self.cut end
  return { { "text", text }, { "tokens", json.array(tokens) }, { "prompt_tokens", self.from },
           { "finish_reason", self.why or "length" } }
end

-- All texts with keys and values in caches. shown(text, token) is told of each token. Returns the work, as the
-- generator has it, the session, and the peaks that were planned.
local function with_caches(source, programs, options, list, count, drawn, shown)
  local opened = texts.open(programs, options, source, source.tokenizer:vocabulary(), source.fill)
  local generator, left = opened.generator, #list
  for i, text in ipairs(list) do
    local own = {}
    for key, value in pairs(drawn) do own[key] = value end
    own.seed = drawn.seed + i - 1
    fail.check("--prompt", generator:begin(i - 1, text.tokens, own))
  end
  for _ = 1, count do
    if left == 0 then break end
    local tokens = fail.check("generate", generator:next())
    for i, text in ipairs(list) do
      if not text.why and text:add(tokens[i], options.stop or {}) then
        shown(text, tokens[i])
      elseif text.why and not text.over then
        text.over, left = true, left - 1
        fail.check("generate", generator:finish(i - 1))
      end
    end
  end
  return fail.check("generate", generator:info()), opened.session, texts.planned(opened)
end

-- One text after the other by a program of a full window, which reads all of it for each token: of models that have no
-- program with caches.
local function with_windows(source, options, list, count, drawn, shown)
  for name, plain in pairs { top_p = 1, min_p = 0, repetition_penalty = 1 } do
    if drawn[name] ~= plain then
      fail.usage(("--%s goes with models whose keys and values can be kept, which this is not"):format(
        (name:gsub("_", "-"))))
    end
  end
  local longest = 0
  for _, text in ipairs(list) do longest = math.max(longest, text.from) end
  local model = source.windowed(longest + count)
  local info = { cache_bytes = 0, decode_tokens = 0, decode_seconds = 0 }
  local window, began = model.graph:info("tokens").shape[2], posix.now()
  for i, text in ipairs(list) do
    local first, made = nil, {}
    for at, token in ipairs(text.tokens) do made[at] = token end
    sampling.extend(model.session, made, count, {
      window = window, vocabulary = source.tokenizer:vocabulary(), random = uniform(drawn.seed + i - 1),
      temperature = drawn.temperature, top = drawn.top_k, what = "--prompt",
      added = function(token)
        if not first then
          first = posix.now()
          info.prefill_seconds = info.prefill_seconds or first - began
        else
          info.decode_tokens = info.decode_tokens + 1
        end
        if not text:add(token, options.stop or {}) then return false end
        shown(text, token)
      end })
    info.decode_seconds = info.decode_seconds + posix.now() - (first or posix.now())
  end
  info.prefill_seconds = info.prefill_seconds or posix.now() - began
  return info, model.session, fail.check("plan", model.plan:summary()).peak_bytes
end

local function drawn_by(options)
  local list = { temperature = options.temperature or sampling.TEMPERATURE, top_k = options.top_k or sampling.TOP,
                 top_p = options.top_p or 1, min_p = options.min_p or 0,
                 repetition_penalty = options.repetition_penalty or 1, seed = options.seed or 1337 }
  if list.top_p == 0 or list.top_p > 1 then fail.usage("--top-p must be above 0, and at most 1") end
  if list.min_p > 1 then fail.usage("--min-p must be from 0 to 1") end
  if list.repetition_penalty == 0 then fail.usage("--repetition-penalty must be above 0") end
  return list
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
    list[i] = text_of(source, trained.encoded(source.tokenizer, prompt, "--prompt"))
    longest = math.max(longest, list[i].from)
  end
  local one = not options.json and #list == 1 and typewriter(source.tokenizer)
  if one then one.add(list[1].tokens) end
  local function shown(_, token)
    if one then one.add { token } end
  end
  local programs = texts.programs(source, { samples = #list, longest = longest,
    rows = longest + math.max(count - 1, 0), dtype = options.amp == "bf16" and "bf16" or nil })
  local info, session, planned
  if programs then
    info, session, planned = with_caches(source, programs, options, list, count, drawn, shown)
  else
    info, session, planned = with_windows(source, options, list, count, drawn, shown)
  end
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
    peaks[tier] = fail.check("usage", session:usage(tier)).peak_bytes
  end
  local rate = info.decode_tokens > 0 and info.decode_tokens / info.decode_seconds or nil
  for _, row in ipairs { { "prefill_seconds", info.prefill_seconds }, { "decode_tokens_per_second", rate },
                         { "cache_bytes", info.cache_bytes }, { "peak_bytes", summary.tiers(peaks) },
                         { "planned_peak_bytes", summary.tiers(planned) } } do
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
