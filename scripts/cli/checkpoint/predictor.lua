-- What predicts: a graph whose inputs and outputs have rows as their first dimension, and the fields (cli.data.fields)
-- of a row that goes in and of the answer that comes out. As text, for checkpoints:
--   {"form": "cairn.predictor/1", "inputs": [...], "answers": [...]}
local cairn = require "cairn"
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local fields = require "cli.data.fields"
local json = require "cli.base.json"
local unicode = require "cli.base.unicode"

local predictor = {}

local FORM = "cairn.predictor/1"
local MOST_ROWS = 2 ^ 20
local READ = { f32 = true, f64 = true, i32 = true, i64 = true, u8 = true }  -- what rows of numbers are written into

-- How many rows the graph takes at a time; nil, and why it cannot be said.
local function rows_of(graph, outputs)
  local rows, of
  local function add(info)
    local first = info.shape[1]
    if not first or first > MOST_ROWS then
      return ("'%s' has the shape [%s]; wanted: rows first, and at most %d"):format(info.name,
        table.concat(info.shape, ", "), MOST_ROWS)
    end
    if not READ[info.dtype] then return ("'%s' is %s, which rows cannot be read from"):format(info.name, info.dtype) end
    if rows and rows ~= first then
      return ("'%s' has %d rows and '%s' %d; the first dimension of inputs and outputs counts the same rows"):format(of,
        rows, info.name, first)
    end
    rows, of = first, info.name
  end
  for _, info in ipairs(graph:inputs()) do
    local problem = add(info)
    if problem then return nil, problem end
  end
  if not rows then return nil, "it has no input" end
  for _, name in ipairs(outputs) do
    local info = graph:info(name)
    local problem = not info and ("it has no output '%s'"):format(unicode.shown(name)) or info and add(info)
    if problem then return nil, problem end
  end
  return rows
end

-- What keeps a list of rows from being fields of one side; nil: nothing does. Returns a list of what they name.
local function check_side(side, list, graph)
  local seen = {}
  for i, row in ipairs(list) do
    local kind = type(row) == "table" and type(row.kind) == "string" and fields[side][row.kind]
    if not kind then return ("row %d of %s is of no known kind"):format(i, side) end
    if type(row.field) ~= "string" then return ("row %d of %s names no field"):format(i, side) end
    if seen[row.field] then return ("%s have the field '%s' twice"):format(side, unicode.shown(row.field)) end
    seen[row.field] = true
    local problem = kind.check(row, graph)
    if problem then return ("%s: field '%s': %s"):format(side, unicode.shown(row.field), problem) end
  end
  if #list == 0 then return side .. ": there is no field" end
end

-- Completes made {graph, inputs, answers}; or nil, and what is wrong.
local function complete(made)
  local outputs, filled = {}, {}
  for _, side in ipairs { "inputs", "answers" } do
    local problem = check_side(side, made[side], made.graph)
    if problem then return nil, problem end
  end
  for i, row in ipairs(made.answers) do outputs[i] = row.output end
  for _, row in ipairs(made.inputs) do
    for _, name in ipairs(fields.inputs[row.kind].inputs(row)) do filled[name] = true end
  end
  for _, info in ipairs(made.graph:inputs()) do
    if not filled[info.name] then return nil, ("no field goes into the input '%s'"):format(info.name) end
  end
  local problem
  made.rows, problem = rows_of(made.graph, outputs)
  return made.rows and made, problem
end

-- Rows of a side that a recipe says nothing of: arrays by the names of the graph.
local function arrays_of(names, key)
  local list = {}
  table.sort(names)
  for i, name in ipairs(names) do list[i] = { kind = "array", field = name, [key] = name } end
  return list
end

-- {graph (frozen), rows, inputs, answers, text} of a recipe; nil if it has no predictor. mismatch(graph): what keeps
-- the graph from running with the trained parameters.
function predictor.build(recipe, o, mismatch)
  if not recipe.predictor then return nil end
  local graph = fail.check("graph", cairn.graph())
  local ends = recipe.call("predictor", o, graph)
  local function refuse(problem) fail.input(("%s: predictor: %s"):format(recipe.path, problem)) end
  local values, names = {}, {}
  for name in pairs(ends.outputs) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    local named, problem = pcall(graph.name, graph, ends.outputs[name], name)
    if not named then refuse(("outputs.%s: %s"):format(name, tostring(problem))) end
    values[i] = ends.outputs[name]
  end
  graph = fail.check("graph", graph:freeze { outputs = values })
  local inputs = {}
  for i, info in ipairs(graph:inputs()) do inputs[i] = info.name end
  local problem = mismatch(graph)
  if problem then refuse(problem) end
  local made
  made, problem = complete { graph = graph, inputs = ends.inputs or arrays_of(inputs, "input"),
                             answers = ends.answers or arrays_of(names, "output") }
  if not made then refuse(problem) end
  made.text = json.encode(json.object { { "form", FORM }, { "inputs", json.array(made.inputs) },
                                        { "answers", json.array(made.answers) } }) .. "\n"
  return made
end

-- The same from the text at `path` and its graph.
function predictor.read(path, text, graph)
  local ok, read = pcall(decode, text)
  if not ok or type(read) ~= "table" or read.form ~= FORM or type(read.inputs) ~= "table"
      or type(read.answers) ~= "table" then
    fail.input(("%s is no %s file%s"):format(path, FORM, ok and "" or ": " .. tostring(read)))
  end
  local made, problem = complete { graph = graph, inputs = read.inputs, answers = read.answers }
  if not made then fail.input(("%s does not go with the checkpoint: %s"):format(path, problem)) end
  return made
end

return predictor
