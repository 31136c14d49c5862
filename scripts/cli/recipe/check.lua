-- What a recipe must look like, as tables: every mistake in one is told with its place, what was given, what is wanted
-- and what to write instead.
local args = require "cli.base.args"
local core = require "cairn.core"
local fail = require "cli.base.fail"
local graphs = require "cairn.graph"
local nearest = require "cli.base.nearest"

local check = {}

-- A value as a message shows it.
function check.shown(value)
  local kind = type(value)
  if kind == "nil" then return "nothing" end
  if kind == "string" then return ("'%s', a string"):format(#value > 60 and value:sub(1, 57) .. "..." or value) end
  if kind == "number" or kind == "boolean" then return ("%s, a %s"):format(tostring(value), kind) end
  if core.is(graphs.Value, value) then return "a value of a graph" end
  if kind == "cdata" then return "an FFI object" end
  return "a " .. kind
end

local function refuse(place, what, value, wanted)
  fail.input(("%s: %s is %s; wanted: %s"):format(place, what, check.shown(value), wanted))
end

local function sorted_keys(list)
  local keys = {}
  for key in pairs(list) do keys[#keys + 1] = tostring(key) end
  table.sort(keys)
  return keys
end

-- name, type, wanted, whether it must be there.
local PARTS = {
  { "model", "function", "function(o, graph) that builds the graph and returns { loss =, weight = }", true },
  { "dataset", "function", "function(o, run) that returns { batch = function(index) ... end, batches = N }", true },
  { "options", "table", 'a list of rows { name, default, words }, as { { "width", 32, "of the hidden layer" } }' },
  { "training", "table", "a table of defaults, as { steps = 100, rate = 3e-4 }" },
  { "generator", "function", "function(o, graph) that returns { outputs = { logits } }" },
  { "texts", "function", "function(o, graph, shape) that returns { outputs = { logits } }" },
  { "begins", "function", "function(o) that returns { first =, last = }, tokens of texts that follow from a source" },
  { "predictor", "function", "function(o, graph) that returns { outputs = { name = value } }" },
  { "settle", "function", "function(o, run) that returns { option = value } for what data say, or nothing" },
  { "names", "function", "function(o) that returns rows { ours, theirs, transposed }" },
  { "check", "function", "function(o) that returns nothing, or what is wrong with the options" },
  { "config", "function", "function(o) that returns rows { key of config.json, value, option }" },
  { "hf_config", "function", "function(o) that returns the config.json of an exported model, as a table or a text" },
  { "unused", "function", "function(o) that returns Lua patterns of tensors in weight files that are not needed" },
  { "fresh", "function", "function(o) that returns patterns, as of --init-missing, of what weight files may lack" },
  { "no_texts", "string", "why no text is made with the generator, as 'it is an encoder'" },
  { "programs", "function", "function(o, run) that returns rows { name, length, o }, or nothing" },
  { "effective", "function", "function(o) that returns { inputs =, values = function(sums) ... end }, or nothing" },
  { "sums", "function", "function(o, graph) that returns { outputs = { name = value } }, to be summed over a step" },
  { "evaluation", "function", "function(o, run) that returns { o =, data = function() ... end }, or nothing" },
  { "groups", "function", 'function(o) that returns rows { pattern = "*.bias", optimizer =, rate_scale = }' },
  { "amp_rules", "function", 'function(o) that returns rows { op = "softmax", region = "h0", class = "full" }' },
  { "frozen", "function", "function(o) that returns a pattern of the names of parameters that are not trained, or ''" },
  { "blocks", "string", "what names of parameters begin with in place of `h.`, as 'model.layers.'" },
  { "on_step", "function", 'function(row) called after each whole step; returns "stop" to end the run there' },
  { "fit", "function", "function(shapes, o) that returns rows { option, value } by the shapes of a weight file" },
}

-- The parts of a recipe. Other fields are the recipe's own, unless they look like a part mistyped.
function check.parts(path, recipe)
  if type(recipe) ~= "table" then refuse(path, "what the recipe returns", recipe, "a table with model and dataset") end
  local known = {}
  for i, part in ipairs(PARTS) do
    local name, kind, wanted, needed = part[1], part[2], part[3], part[4]
    known[i] = name
    local value = recipe[name]
    if type(value) ~= kind and (needed or value ~= nil) then refuse(path, "'" .. name .. "'", value, wanted) end
  end
  for _, key in ipairs(sorted_keys(recipe)) do
    local part = nearest.of(key, known)
    if part and part ~= key and rawget(recipe, part) == nil then
      fail.input(("%s: '%s' is no part of a recipe; did you mean '%s'? (known: %s)"):format(path, key, part,
        table.concat(known, " ")))
    end
  end
end

local ROW = { "whole", "least", "above", "below", "most", "choices", "before" }
local ROW_TYPES = { choices = "table", whole = "boolean", before = "string" }
local KINDS = { number = true, string = true, boolean = true }

-- What keeps `value` from being one of the option `row`; nil if nothing does.
function check.problem(row, value)
  local default = row[2]
  if type(value) ~= type(default) then return "a " .. type(default) end
  if type(default) == "number" then
    if value ~= value or math.abs(value) == math.huge then return "a number" end
    if row.whole and value ~= math.floor(value) then return "a whole number" end
    if row.whole and math.abs(value) > args.MOST_WHOLE then
      return ("a whole number of at most %.0f"):format(args.MOST_WHOLE)
    end
    if row.least and value < row.least then return ("at least %.15g"):format(row.least) end
    if row.above and value <= row.above then return ("above %.15g"):format(row.above) end
    if row.below and value >= row.below then return ("below %.15g"):format(row.below) end
    if row.most and value > row.most then return ("at most %.15g"):format(row.most) end
  end
  if row.choices then
    for _, choice in ipairs(row.choices) do
      if choice == value then return nil end
    end
    return "one of " .. table.concat(row.choices, ", ")
  end
  if row.valid then return row.valid(value) end  -- of rows that are every recipe's
end

-- A row of options from one of cairn.settings(), under a name of its own.
function check.row(setting, name)
  local row = { name or setting.name, setting.default, setting.description, choices = setting.words,
                whole = setting.integer or nil }
  if type(setting.default) == "number" then
    row[setting.above and "above" or "least"] = setting.or_zero and 0 or setting.least
    row[setting.below and "below" or "most"] = setting.most
  else
    row.whole = nil
  end
  if setting.or_zero then
    row.valid = function(value)
      if value ~= 0 and value < setting.least then return ("0, or at least %g"):format(setting.least) end
    end
  end
  return row
end

local function option_row(path, at, row, seen)
  local what = ("row %d of options"):format(at)
  if type(row) ~= "table" then refuse(path, what, row, '{ name, default, words }, as { "width", 32, "of a layer" }') end
  local name = row[1]
  if type(name) ~= "string" or not name:match("^[%a_][%w_]*$") then
    refuse(path, what .. ": the name", name, "letters, digits and _, so that name=value can be written")
  end
  what = ("option '%s'"):format(name)
  if seen[name] then fail.input(("%s: %s has two rows; leave one out"):format(path, what)) end
  seen[name] = true
  if not KINDS[type(row[2])] then
    refuse(path, what .. ": the default", row[2], "a number, a string or a boolean")
  end
  if row[3] ~= nil and type(row[3]) ~= "string" then refuse(path, what .. ": the words", row[3], "a string") end
  for key, value in pairs(row) do
    if type(key) == "string" then
      local wanted = ROW_TYPES[key] or "number"
      local known = false
      for _, each in ipairs(ROW) do known = known or each == key end
      if not known then
        fail.input(("%s: %s: unknown '%s'%s (known: %s)"):format(path, what, key, nearest.hint(key, ROW),
          table.concat(ROW, " ")))
      end
      if type(value) ~= wanted then refuse(path, ("%s: %s"):format(what, key), value, "a " .. wanted) end
    elseif key ~= 1 and key ~= 2 and key ~= 3 then
      refuse(path, ("%s: field %s"):format(what, tostring(key)), value, "{ name, default, words, whole = true, ... }")
    end
  end
  local problem = check.problem(row, row[2])
  if problem then refuse(path, what .. ": the default", row[2], problem) end
end

function check.options(path, options)
  local count, seen = 0, {}
  for key in pairs(options) do
    if type(key) ~= "number" or key ~= math.floor(key) then
      refuse(path, "options." .. tostring(key), options[key],
        'rows in a list, as { { "width", 32, "of the hidden layer" } }')
    end
    count = count + 1
  end
  if count ~= #options then fail.input(path .. ": options has a hole: one of its rows is nil") end
  for at, row in ipairs(options) do option_row(path, at, row, seen) end
end

-- Defaults of the options in `rows` (which `owned` names as the recipe's own) and of steps.
function check.training(path, training, rows, owned)
  local known, by_name = { "steps" }, { steps = { "steps", 1, whole = true, least = 1 } }
  for _, row in ipairs(rows) do known[#known + 1], by_name[row[1]] = row[1], row end
  for _, name in ipairs(sorted_keys(training)) do
    local what = ("training.%s"):format(name)
    if owned[name] then
      fail.input(("%s: %s: options has a row '%s', whose default counts; leave one out"):format(path, what, name))
    end
    local row = by_name[name]
    if not row then
      fail.input(("%s: %s: there is no such default%s (known: %s)"):format(path, what, nearest.hint(name, known),
        table.concat(known, " ")))
    end
    local problem = check.problem(row, training[name])
    if problem then refuse(path, what, training[name], problem) end
  end
end

local ENDS = "{ loss =, weight = }"
local function end_of(place, name, value, graph)
  if not core.is(graphs.Value, value) then
    refuse(place, "model: " .. name, value, "a value of the graph, as graph:op(...) returns")
  end
  if value.graph ~= graph then fail.input(("%s: model: %s is a value of another graph"):format(place, name)) end
end

local METRIC = "{ sum =, weight =, better = 'lower' }, { outputs = { name = value }, measure = function(outputs, " ..
  "arrays) ... end, better = 'higher' }, { outputs =, count = } or { of = 'loss', apply = math.exp, better = 'lower' }"
local TAKEN = { step = true, loss = true, weight = true, tokens = true, seconds = true, rate = true, outcome = true,
                gradient_norm = true, stall_seconds = true }

-- What model returned as `metrics`.
local function metrics(place, list, graph)
  if type(list) ~= "table" then refuse(place, "model: metrics", list, "metrics by name, each " .. METRIC) end
  for _, name in ipairs(sorted_keys(list)) do
    local what, metric = ("model: metric '%s'"):format(name), list[name]
    if not name:match("^[%a_][%w_]*$") or TAKEN[name] then
      fail.input(("%s: %s: the name is taken, or not of letters, digits and _"):format(place, what))
    end
    if type(metric) ~= "table" then refuse(place, what, metric, METRIC) end
    if not metric.count and metric.better ~= "lower" and metric.better ~= "higher" then
      refuse(place, what .. ": better", metric.better, "'lower' or 'higher': which way it improves")
    end
    if metric.sum ~= nil then
      for _, part in ipairs { "sum", "weight" } do
        end_of(place, ("metric '%s': %s"):format(name, part), metric[part], graph)
        if #metric[part]:shape() > 0 then
          fail.input(("%s: %s: %s has the shape [%s]; wanted: a scalar, as reduce_sum makes"):format(place, what, part,
            table.concat(metric[part]:shape(), ", ")))
        end
      end
    elseif type(metric.measure or metric.count) == "function" and type(metric.outputs) == "table" then
      for key, value in pairs(metric.outputs) do
        end_of(place, ("metric '%s': outputs.%s"):format(name, tostring(key)), value, graph)
      end
    elseif type(metric.of) ~= "string" or type(metric.apply) ~= "function" then
      refuse(place, what, metric, METRIC)
    elseif metric.of ~= "loss" and not list[metric.of] then
      fail.input(("%s: %s: there is no metric '%s'"):format(place, what, metric.of))
    end
  end
end

local function outputs(place, list, graph)
  if type(list) ~= "table" or #list == 0 then
    refuse(place, "outputs", list, "a list of values of the graph, as { logits }")
  end
  for i, value in ipairs(list) do end_of(place, "outputs[" .. i .. "]", value, graph) end
end

-- What a function of a recipe returned, by the function's name: check(place, result, its arguments).
check.returns = {
  model = function(place, made, _, graph)
    if type(made) ~= "table" or core.is(graphs.Value, made) or made.loss == nil then
      fail.input(("%s: model must return %s, values of the graph; it returned %s"):format(place, ENDS,
        type(made) == "table" and made.loss == nil and not core.is(graphs.Value, made) and "no loss"
        or check.shown(made)))
    end
    end_of(place, "loss", made.loss, graph)
    if made.weight ~= nil then end_of(place, "weight", made.weight, graph) end
    if made.outputs ~= nil then outputs(place, made.outputs, graph) end
    if made.metrics ~= nil then metrics(place, made.metrics, graph) end
  end,
  evaluation = function(place, made)
    if made == nil then return end
    if type(made) ~= "table" or type(made.data) ~= "function" or (made.o ~= nil and type(made.o) ~= "table") then
      refuse(place, "what evaluation returns", made,
        "{ o = option values, data = function() that returns { batch =, batches = } }, or nothing")
    end
  end,
  generator = function(place, made, _, graph)
    if type(made) ~= "table" then refuse(place, "what generator returns", made, "{ outputs = { logits } }") end
    outputs(place, made.outputs, graph)
  end,
  predictor = function(place, made, _, graph)
    local wanted = "{ outputs = { name = value } }, and inputs and answers in lists where rows are no arrays"
    if type(made) ~= "table" or type(made.outputs) ~= "table" or next(made.outputs) == nil then
      refuse(place, "what predictor returns", made, wanted)
    end
    for name, value in pairs(made.outputs) do end_of(place, "outputs." .. tostring(name), value, graph) end
    for _, part in ipairs { "inputs", "answers" } do
      if made[part] ~= nil and type(made[part]) ~= "table" then
        refuse(place, "predictor: " .. part, made[part], wanted)
      end
    end
  end,
  settle = function(place, made)
    if made ~= nil and type(made) ~= "table" then
      refuse(place, "what settle returns", made, "{ option = value }, or nothing")
    end
  end,
  dataset = function(place, made)
    if type(made) ~= "table" then
      refuse(place, "what dataset returns", made, "{ batch = function(index) ... end, batches = N }")
    end
    if type(made.batch) ~= "function" then
      refuse(place, "dataset: batch", made.batch, "function(index) that returns arrays by input name, and their tokens")
    end
    local batches = made.batches
    if batches ~= nil and (type(batches) ~= "number" or batches ~= math.floor(batches) or batches < 1
                           or batches > args.MOST_WHOLE) then
      refuse(place, "dataset: batches", batches,
        "a whole number of at least 1: micro-batches of an epoch; or leave it out")
    end
  end,
  names = function(place, rows)
    if type(rows) ~= "table" then refuse(place, "what names returns", rows, "rows { ours, theirs, transposed }") end
    for i, row in ipairs(rows) do
      local ours = type(row) == "table" and (row.ours or row[1])
      local theirs = type(row) == "table" and (row.theirs or row[2])
      if type(ours) ~= "string" or type(theirs) ~= "string" then
        refuse(place, ("names: row %d"):format(i), row, '{ "ours", "theirs", transposed }')
      end
    end
  end,
  programs = function(place, rows)
    if rows == nil then return end
    if type(rows) ~= "table" or #rows == 0 then
      refuse(place, "what programs returns", rows, "rows { name, length, o }")
    end
    for i, row in ipairs(rows) do
      if type(row) ~= "table" or type(row.name) ~= "string" or type(row.o) ~= "table" then
        refuse(place, ("programs: row %d"):format(i), row, "{ name, length, o }")
      end
    end
  end,
  groups = function(place, rows)
    if rows == nil then return end
    if type(rows) ~= "table" then
      refuse(place, "what groups returns", rows, 'rows { pattern = "*.bias", optimizer =, rate_scale = }')
    end
    for i, row in ipairs(rows) do
      if type(row) ~= "table" or type(row.pattern) ~= "string" then
        refuse(place, ("groups: row %d"):format(i), row, '{ pattern = "*.bias", optimizer =, rate_scale = }')
      end
      for _, key in ipairs(sorted_keys(row)) do
        local what, value = ("groups: row %d, '%s': %s"):format(i, row.pattern, key), row[key]
        if key == "optimizer" and type(value) ~= "string" then
          refuse(place, what, value, "the name of an optimizer; cairn ops --optimizers lists them")
        elseif key ~= "pattern" and key ~= "optimizer" and type(value) ~= "number" and type(value) ~= "boolean" then
          refuse(place, what, value, "a number: the hyper-parameter of that name")
        end
      end
    end
  end,
  amp_rules = function(place, rows)
    if rows == nil then return end
    local wanted = 'rows { op = "softmax", region = "h0", class = "full" }; cairn ops --amp lists the classes'
    if type(rows) ~= "table" then refuse(place, "what amp_rules returns", rows, wanted) end
    for i, row in ipairs(rows) do
      local what = ("amp_rules: row %d"):format(i)
      if type(row) ~= "table" then refuse(place, what, row, wanted) end
      for _, key in ipairs(sorted_keys(row)) do
        if key ~= "op" and key ~= "region" and key ~= "class" then
          fail.input(("%s: %s: unknown '%s'; wanted: %s"):format(place, what, key, wanted))
        end
        if type(row[key]) ~= "string" then refuse(place, ("%s: %s"):format(what, key), row[key], "a string") end
      end
      if row.class == nil then refuse(place, what .. ": class", nil, wanted) end
    end
  end,
  config = function(place, rows)
    if type(rows) ~= "table" then refuse(place, "what config returns", rows, "rows { key, value, option }") end
    for i, row in ipairs(rows) do
      local kind = type(row) == "table" and type(row[1]) == "string" and type(row[2])
      if not kind or not (KINDS[kind] or kind == "nil" or kind == "function" and type(row[4]) == "string") then
        refuse(place, ("config: row %d"):format(i), row, "{ key of config.json, value, option }")
      end
    end
  end,
}

-- What batch(index) returned, against the graph's inputs ({name, shape, dtype} by name and in order).
function check.batch(place, index, arrays, tokens, inputs, batches)
  local what = ("micro-batch %d"):format(index)
  local names, by_name = {}, {}
  for i, input in ipairs(inputs) do names[i], by_name[input.name] = input.name, input end
  if type(arrays) ~= "table" then
    local hint = batches and index >= batches
      and ("; batches = %d, and the index goes on over all epochs: take index %% batches"):format(batches) or ""
    fail.input(("%s: %s: batch returned %s; wanted: arrays by input name (%s)%s"):format(place, what,
      check.shown(arrays), table.concat(names, ", "), hint))
  end
  for _, name in ipairs(sorted_keys(arrays)) do
    if not by_name[name] then
      fail.input(("%s: %s: '%s' is no input of the graph%s (inputs: %s)"):format(place, what, name,
        nearest.hint(name, names), table.concat(names, ", ")))
    end
  end
  if tokens ~= nil and (type(tokens) ~= "number" or tokens ~= tokens or tokens < 0 or tokens == math.huge) then
    refuse(place, what .. ": the number of tokens (batch's second result)", tokens,
      "a number of at least 0, or nothing")
  end
end

-- Whether batch gave all inputs: one that it leaves out would be trained on with what the last micro-batch left there.
function check.complete(place, index, arrays, inputs)
  for _, input in ipairs(inputs) do
    if arrays[input.name] == nil then
      fail.input(("%s: micro-batch %d: batch gave nothing for input '%s', %s[%s]; every micro-batch needs every input")
        :format(place, index, input.name, input.dtype, table.concat(input.shape, ", ")))
    end
  end
end

return check
