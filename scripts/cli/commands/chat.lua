-- cairn chat DIR|FILE.gguf|RUN
local args = require "cli.base.args"
local attach = require "cli.adapter.attach"
local chat = require "cli.data.chat"
local conversation = require "cli.model.conversation"
local fail = require "cli.base.fail"
local json = require "cli.base.json"
local models = require "cli.checkpoint.model"
local posix = require "cli.base.posix"
local screen = require "cli.base.screen"
local texts = require "cli.model.texts"
local trained = require "cli.model.trained"
local unicode = require "cli.base.unicode"

local USAGE = "cairn chat DIR|FILE.gguf|RUN [template=FILE] [--adapter RUN] [--system TEXT] [--prompt TEXT] " ..
  "[--length N]"
local LENGTH = 512  -- tokens of an answer, unless somebody says how many
local KNOWN = args.known("device threads budget tiers link amp seed json quiet", {
  system = { args.text, "what the conversation begins with, as the system's message", "TEXT" },
  prompt = { args.one_of_several, "say this, write the answer, and end; several are turns one after the other",
    "TEXT" },
  adapter = attach.OPTION,
  length = { args.whole "tokens", "tokens of an answer at most (default " .. LENGTH .. ")", "N" },
  context = { args.whole "tokens", "tokens of the conversation at most (default: what the model was made for, " ..
    "at most " .. conversation.CONTEXT .. ")", "N" },
  ["sample-temperature"] = { args.real, "of the draws; 0: always the likeliest; default 0.8", "T" },
  temperature = { args.real, "the same", "T" },
  ["top-k"] = { args.whole "top-k", "draw among the K likeliest; 0: all (default 40)" },
  ["top-p"] = { args.real, "draw among the fewest of the likeliest that have this probability together; default 1" },
  seed = { args.whole "seed", "of the draws (default 1337)" },
  json = { args.FLAG, "a JSON object on stdout for each turn: text, tokens, prompt_tokens, read_tokens (of the " ..
    "prompt; the others were in the caches), finish_reason, seconds" },
  recipe = models.OPTIONS.recipe, ["recipe-changed"] = models.OPTIONS["recipe-changed"],
  base = models.OPTIONS.base, ema = models.OPTIONS.ema,
})

local function template_of(settings)
  local template = ""
  for _, setting in ipairs(settings) do
    if setting[1] ~= "template" then
      fail.usage(("unknown option '%s' (known: template); usage: %s"):format(unicode.shown(setting[1]), USAGE))
    end
    template = setting[2]
  end
  return template
end

local function drawn_by(options)
  if options.temperature and options.sample_temperature then
    fail.usage("--temperature and --sample-temperature are the same; give one")
  end
  local top_p = options.top_p or 1
  if top_p == 0 or top_p > 1 then fail.usage("--top-p must be above 0, and at most 1") end
  return { temperature = options.sample_temperature or options.temperature or texts.TEMPERATURE,
           top_k = options.top_k or texts.TOP, top_p = top_p, seed = options.seed or 1337 }
end

local function write(text)
  local out = posix.is_terminal(1) and io.stdout or screen.stdout  -- elsewhere the text is exact
  local ok, problem = out:write(text)
  if ok then ok, problem = out:flush() end
  if not ok then fail.with(5, "stdout: " .. tostring(problem)) end
end

local function nothing() end

-- One turn on the terminal, or as JSON. Returns nil, and what is wrong with what was said.
local function turn(talk, said, options)
  local characters = unicode.stream()
  local function shown(part) write(characters.feed(part)) end
  local answer, problem = talk:say(said, options.json and nothing or shown)
  if not answer then return nil, problem end
  if options.json then
    write(json.encode(json.object { { "text", answer.text }, { "tokens", json.array(answer.tokens) },
      { "prompt_tokens", answer.prompt_tokens }, { "read_tokens", answer.read_tokens or 0 },
      { "finish_reason", answer.why }, { "seconds", answer.seconds } }) .. "\n")
    return answer
  end
  write(characters.finish() .. "\n")
  if answer.why == "context" and not options.quiet then
    io.stderr:write("the context is full; /reset begins again\n")
  end
  return answer
end

-- Lines from stdin, a turn each, until they end.
local function interactive(talk, options)
  local asks = posix.is_terminal(0)
  while true do
    if asks then io.stderr:write("> ") end
    local line = io.stdin:read "*l"
    if not line or line == "/exit" then break end
    if line == "/reset" then
      talk:reset()
    elseif line:find "%S" then
      local answer, problem = turn(talk, line, options)
      if not answer then io.stderr:write(problem, "\n") end
    end
  end
  if asks then io.stderr:write("\n") end
end

return function(arguments, root)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE)
  if not options then return 0 end
  if #words ~= 1 then fail.usage("one model is needed; usage: " .. USAGE) end
  local template, drawn = template_of(settings), drawn_by(options)
  options.length = options.length or LENGTH
  local source = trained.open(words[1], root, options)
  if source.begins then
    fail.input(("%s answers a source, and holds no conversation: `cairn generate` writes its text"):format(
      unicode.shown(words[1])))
  end
  local kept = source.o and source.o.template
  local directory = posix.no_file(words[1]) ~= "a directory" and words[1]
    or posix.is_there(words[1] .. "/config.json") and words[1] or nil
  local opened = chat.open({ template = template ~= "" and template or not directory and kept or "" },
    { directory = directory }, { kind = source.tokenizer.kind, opened = source.tokenizer })
  if not opened.has_template then
    fail.input(("%s has no chat template; template=FILE names one"):format(unicode.shown(words[1])))
  end
  local talk = conversation.open(source, opened, options, drawn)
  if not options.prompt then
    interactive(talk, options)
    return 0
  end
  for _, said in ipairs(options.prompt) do
    local answer, problem = turn(talk, said, options)
    if not answer then fail.input("--prompt: " .. problem) end
  end
  return 0
end
