-- cairn logits DIR --tokens 1,2,3
local args = require "cli.base.args"
local directory = require "cli.model.directory"
local fail = require "cli.base.fail"
local forward = require "cli.model.forward"
local json = require "cli.base.json"
local models = require "cli.checkpoint.model"

local USAGE = "cairn logits DIR --tokens 1,2,3 [--positions last|all] [--json]"
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
  positions = { args.choice("last", "all"), "of which tokens the logits are: the last (default), or all" },
  json = { args.FLAG, "one JSON object on stdout: logits, an array, or with --positions all one for each token" },
  recipe = models.OPTIONS.recipe, ["recipe-changed"] = models.OPTIONS["recipe-changed"],
})

local function check_tokens(tokens, vocabulary)
  for i, token in ipairs(tokens) do
    if token >= vocabulary then
      fail.input(("--tokens: number %d is %d; the model has %d tokens, from 0"):format(i, token, vocabulary))
    end
  end
end

-- Rows of logits at `positions` (from 0) of a session whose window is `window` tokens.
local function rows_of(session, tokens, window, positions, at_once)
  local input = {}
  for i = 1, window do input[i] = tokens[i] or 0 end
  fail.check("--tokens", session:write("tokens", input))
  local rows = {}
  for first = 1, #positions, at_once do
    local part = { unpack(positions, first, first + at_once - 1) }
    fail.check("logits", session:write("position", part))
    fail.check("logits", session:run())
    local values = fail.check("logits", session:read("logits"))
    local width = #values / at_once
    for i = 1, at_once do rows[#rows + 1] = { unpack(values, (i - 1) * width + 1, i * width) } end
  end
  return rows
end

local function of_directory(name, root, options, settings, tokens, all)
  settings[#settings + 1] = { "seq", ("%d"):format(#tokens) }
  local recipe, o = forward.recipe(name, root, settings)
  check_tokens(tokens, o.vocab)
  local model = forward.open(recipe, o, options, all and #tokens or 1, function(message)
    if not options.quiet then io.stderr:write(message, "\n") end
  end)
  local positions = {}
  for i = 1, #tokens do positions[i] = i - 1 end
  if not all then positions = { #tokens - 1 } end
  return rows_of(model.session, tokens, #tokens, positions, #positions)
end

local function of_run(name, root, options, tokens, all)
  local model = models.open(name, root, options, true)
  local window = model.graph:info("tokens").shape[2]
  if #tokens > window then
    fail.input(("--tokens: %d tokens, and the model was trained with windows of %d"):format(#tokens, window))
  end
  local logits = model.graph:info("logits").shape
  check_tokens(tokens, logits[#logits])
  local positions = {}
  for i = all and 1 or #tokens, #tokens do positions[#positions + 1] = i - 1 end
  return rows_of(model.session, tokens, window, positions, 1)
end

return function(arguments, root)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE)
  if not options then return 0 end
  if #words ~= 1 then fail.usage("one directory is needed; usage: " .. USAGE) end
  if not options.tokens then fail.usage("--tokens is needed; usage: " .. USAGE) end
  local all = options.positions == "all"
  local rows
  if directory.is(words[1]) then
    rows = of_directory(words[1], root, options, settings, options.tokens, all)
  else
    if #settings > 0 then fail.usage("key=value goes with a model's directory; usage: " .. USAGE) end
    rows = of_run(words[1], root, options, options.tokens, all)
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
