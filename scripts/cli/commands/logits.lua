-- cairn logits DIR --tokens 1,2,3
local args = require "cli.base.args"
local attach = require "cli.adapter.attach"
local directory = require "cli.model.directory"
local fail = require "cli.base.fail"
local forward = require "cli.model.forward"
local json = require "cli.base.json"
local models = require "cli.checkpoint.model"
local recipes = require "cli.recipe.load"
local runs = require "cli.train.run"
local slice = require "cli.base.slice"
local teacher = require "cli.instruct.teacher"

local USAGE = "cairn logits DIR --tokens 1,2,3 [--decoder-tokens 0,4] [--positions last|all] [--json], or cairn " ..
  "logits DIR data=FILE --top N --out FILE"
local MOST_TOKENS = 2 ^ 20

-- Ids with commas between.
local function ids(text, what)
  local list = {}
  for word in (text .. ","):gmatch("([^,]*),") do
    local id = word:match("^%s*(%d+)%s*$")
    if not id or tonumber(id) > 2 ^ 31 - 1 then
      fail.usage(("%s %s: '%s' is no token; wanted: whole numbers with commas between"):format(what, text, word))
    end
    list[#list + 1] = tonumber(id)
  end
  if #list > MOST_TOKENS then fail.usage(("%s: %d tokens; at most %d"):format(what, #list, MOST_TOKENS)) end
  return list
end

local KNOWN = args.known("device threads budget tiers amp json quiet", {
  tokens = { ids, "what the model reads: numbers of tokens, with commas between", "IDS" },
  ["decoder-tokens"] = { ids, "of a model with an encoder and a decoder: what the decoder has written, after the " ..
    "token that begins texts; --positions are of these", "IDS" },
  top = { args.whole(1, 1024), "with data=FILE, rows: so many of the likeliest tokens after each token go into --out",
    "N" },
  out = { args.text, "file of a teacher, for objective=distill teacher=FILE", "FILE" },
  positions = { args.choice("last", "all"), "of which tokens the logits are: the last (default), or all" },
  json = { args.FLAG, "one JSON object on stdout: logits, an array, or with --positions all one for each token" },
  recipe = models.OPTIONS.recipe, ["recipe-changed"] = models.OPTIONS["recipe-changed"],
  base = models.OPTIONS.base, ema = models.OPTIONS.ema, adapter = attach.OPTION,
})

local function check_tokens(tokens, vocabulary, what)
  for i, token in ipairs(tokens or {}) do
    if token >= vocabulary then
      fail.input(("%s: number %d is %d; the model has %d tokens, from 0"):format(what, i, token, vocabulary))
    end
  end
end

-- What a graph reads besides positions, by input: tokens filled up to its windows. given: tokens, decoder (tokens
-- that a decoder has written, which reads what an encoder made of the others; nil: there is none).
local function fill(graph, given)
  local function window(name, tokens, what)
    local size, list = graph:info(name).shape[2], {}
    if #tokens > size then
      fail.input(("%s: %d tokens, and the model was trained with windows of %d"):format(what, #tokens, size))
    end
    for i = 1, size do list[i] = tokens[i] or 0 end
    return list
  end
  if given.decoder then
    return { source = window("source", given.tokens, "--tokens"), source_lengths = { #given.tokens },
             tokens = window("tokens", given.decoder, "--decoder-tokens") }
  end
  local inputs = { tokens = window("tokens", given.tokens, "--tokens") }
  if graph:info("lengths") then inputs.lengths = { #given.tokens } end
  if graph:info("share") then
    inputs.share = {}
    for i = 1, #inputs.tokens do inputs.share[i] = i <= #given.tokens and 1 / #given.tokens or 0 end
  end
  return inputs
end

-- Ends the command where tokens of a decoder are missing, or there is no decoder that reads an encoder's.
local function check_decoder(has, given)
  if has and not given.decoder then
    fail.usage("the model has an encoder and a decoder: --decoder-tokens is needed, too; usage: " .. USAGE)
  end
  if given.decoder and not has then
    fail.usage("--decoder-tokens goes with a model that has an encoder and a decoder")
  end
end

-- Rows of logits at `positions` (from 0) of a model {session, graph}. One that tells texts apart has one row, and no
-- position.
local function rows_of(model, given, positions, at_once)
  local session, rows = model.session, {}
  for name, input in pairs(fill(model.graph, given)) do fail.check("--tokens", session:write(name, input)) end
  if not model.graph:info("position") then
    fail.check("logits", session:run())
    return { fail.check("logits", session:read("logits")) }
  end
  for first = 1, #positions, at_once do
    local part = slice(positions, first, first + at_once - 1)
    fail.check("logits", session:write("position", part))
    fail.check("logits", session:run())
    local values = fail.check("logits", session:read("logits"))
    local width = #values / at_once
    for i = 1, at_once do rows[#rows + 1] = slice(values, (i - 1) * width + 1, i * width) end
  end
  return rows
end

local function of_directory(name, root, options, settings, given, all)
  settings[#settings + 1] = { "seq", ("%d"):format(#given.tokens) }
  if given.decoder then settings[#settings + 1] = { "target_seq", ("%d"):format(#given.decoder) } end
  local recipe, has = recipes.load(name, root), false
  if options.adapter then settings = attach.to(recipe, options.adapter, settings) end
  for _, row in ipairs(recipe.rows) do has = has or row[1] == "target_seq" end
  check_decoder(has, given)
  local o = recipes.resolve(recipe, settings, nil, false)
  check_tokens(given.tokens, o.vocab, "--tokens")
  check_tokens(given.decoder, o.vocab, "--decoder-tokens")
  local tokens = given.decoder or given.tokens
  local model = forward.open(recipe, o, options, all and #tokens or 1, function(message)
    if not options.quiet then io.stderr:write(message, "\n") end
  end)
  local positions = {}
  for i = 1, #tokens do positions[i] = i - 1 end
  if not all then positions = { #tokens - 1 } end
  return rows_of(model, given, positions, #positions)
end

local function of_run(name, root, options, given, all)
  local model = models.open(name, root, options, true)
  check_decoder(model.graph:info("source") ~= nil, given)
  local logits = model.graph:info("logits").shape
  local known = not model.graph:info("lengths") and logits[#logits] or math.huge  -- of encoders they may be labels
  check_tokens(given.tokens, known, "--tokens")
  check_tokens(given.decoder, known, "--decoder-tokens")
  local tokens, positions = given.decoder or given.tokens, {}
  for i = all and 1 or #tokens, #tokens do positions[#positions + 1] = i - 1 end
  return rows_of(model, given, positions, 1)
end

-- What a model expects of instruction data, for one that learns it.
local function write_teacher(name, root, options, settings)
  if not directory.is(name) or not options.top or not options.out then
    fail.usage("--top N and --out FILE go together, with a model's directory and data=FILE; usage: " .. USAGE)
  end
  local recipe = recipes.load(name, root)
  local o = recipes.resolve(recipe, settings, nil, false)
  if not recipe.likeliest then fail.usage("--top goes with decoders") end
  if o.form ~= "rows" then fail.usage("--top: data=FILE with rows (.jsonl, .csv, .tsv) is needed; usage: " .. USAGE) end
  local count = math.min(options.top, o.vocab)
  local about = { seed = 0, steps = 1, accumulate = 1, directory = recipe.directory.path, note = function(message)
    if not options.quiet then io.stderr:write(message, "\n") end
  end }
  local total = teacher.write(recipe, o, options, count, options.out, runs.helpers(about))
  if options.json then
    io.stdout:write(json.encode(json.object { { "file", options.out }, { "tokens", total }, { "top", count } }), "\n")
  end
  return 0
end

return function(arguments, root)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE)
  if not options then return 0 end
  if #words ~= 1 then fail.usage("one directory is needed; usage: " .. USAGE) end
  if options.top or options.out then return write_teacher(words[1], root, options, settings) end
  if not options.tokens then fail.usage("--tokens is needed; usage: " .. USAGE) end
  local all = options.positions == "all"
  local rows
  local given = { tokens = options.tokens, decoder = options.decoder_tokens }
  if directory.is(words[1]) then
    rows = of_directory(words[1], root, options, settings, given, all)
  else
    if options.adapter then fail.usage("--adapter goes with a model's directory; usage: " .. USAGE) end
    if #settings > 0 then fail.usage("key=value goes with a model's directory; usage: " .. USAGE) end
    rows = of_run(words[1], root, options, given, all)
  end
  for _, row in ipairs(rows) do
    for _, value in ipairs(row) do
      if value ~= value or math.abs(value) == math.huge then fail.with(7, "the model's logits are not finite") end
    end
  end
  if options.json then
    local list = {}
    for i, row in ipairs(rows) do list[i] = json.array(row) end
    io.stdout:write(json.encode(json.object { { "logits", all and json.array(list) or list[1] } }), "\n")
  else
    for _, row in ipairs(rows) do
      local words_of = {}
      for i, value in ipairs(row) do words_of[i] = ("%.9g"):format(value) end
      io.stdout:write(table.concat(words_of, " "), "\n")
    end
  end
  return 0
end
