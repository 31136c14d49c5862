-- Tables for recipes that predict a number: a column that is predicted from the others. Numbers are brought to mean 0
-- and deviation 1 by the rows that are trained with, names become a column for each.
local ffi = require "ffi"
local content = require "cli.data.content"
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local fields = require "cli.data.fields"
local json = require "cli.base.json"
local nearest = require "cli.base.nearest"
local numbers = require "cairn.numbers"
local random = require "cairn.random"
local rows = require "cli.data.rows"
local tables = require "cli.data.table"
local unicode = require "cli.base.unicode"

local columns = {}

local FIRST_ROWS = 1024  -- that there is room for at first
local MOST_VALUES = 256  -- names of one column
local RANDOM_ROWS, RANDOM_COLUMNS = 1024, 8  -- of data=random

local function words_of(text)
  local list = {}
  for word in text:gmatch("[^,]+") do list[#list + 1] = word end
  return list
end

-- Names of a table's columns, of JSON lines those of the first row, sorted; and whether they have an order.
local function names_of(row, reader)
  if reader.columns then return reader.columns, true end
  local names = {}
  for name in pairs(row) do names[#names + 1] = name end
  table.sort(names)
  return names, false
end

local function expect_name(name, names, what, source)
  for _, each in ipairs(names) do
    if each == name then return end
  end
  fail.usage(("%s=%s: %s has no such column%s (columns: %s)"):format(what, name, source, nearest.hint(name, names),
    unicode.shown(table.concat(names, ", "))))
end

-- What is read of a file by these options: {names (of what is predicted from), target, categorical (by name)}.
local function plan_of(o, row, reader)
  local names, ordered = names_of(row, reader)
  local left_out, plan = {}, { names = {}, categorical = {} }
  for _, name in ipairs(words_of(o.ignore)) do
    expect_name(name, names, "ignore", reader.source)
    left_out[name] = true
  end
  for _, name in ipairs(words_of(o.categorical)) do
    expect_name(name, names, "categorical", reader.source)
    plan.categorical[name] = true
  end
  if o.target ~= "" then
    expect_name(o.target, names, "target", reader.source)
    plan.target = o.target
  elseif ordered then
    plan.target = names[#names]
  else
    fail.usage(("%s: its rows have no last column; target=NAME says which is predicted (columns: %s)"):format(
      reader.source, unicode.shown(table.concat(names, ", "))))
  end
  for _, name in ipairs(names) do
    if name ~= plan.target and not left_out[name] then plan.names[#plan.names + 1] = name end
  end
  if #plan.names == 0 then
    fail.usage(("%s: besides '%s', which is predicted, there is no column to predict it from"):format(reader.source,
      unicode.shown(plan.target)))
  end
  return plan
end

local function cell(row, name, line, reader)
  local value = row[name]
  if value == nil then
    reader:refuse(line, ("there is no '%s', which the first row has"):format(unicode.shown(name)))
  end
  return value
end

-- Looks at all rows: which columns are of numbers, and how many rows there are.
local function survey(path, what, o)
  local plan, found, count = nil, {}, 0
  tables.each(path, what, function(row, line, reader)
    plan = plan or plan_of(o, row, reader)
    count = count + 1
    for _, name in ipairs(plan.names) do
      local column = found[name] or { numbers = 0, values = {}, known = {} }
      found[name] = column
      local value = cell(row, name, line, reader)
      local is_number = fields.number(value)
      if is_number then column.numbers = column.numbers + 1 end
      column.odd = column.odd or not is_number and { line = line, value = value, reader = reader } or nil
      local text = fields.name(value) or reader:refuse(line, ("'%s' is %s; wanted: a number or a name"):format(
        unicode.shown(name), fields.shown(value)))
      if not column.known[text] and #column.values <= MOST_VALUES then
        column.values[#column.values + 1], column.known[text] = text, true
      end
    end
  end)
  for _, name in ipairs(plan.names) do
    local column = found[name]
    local of_numbers = not plan.categorical[name] and column.numbers * 2 >= count
    if of_numbers and column.odd then
      column.odd.reader:refuse(column.odd.line, ("'%s' is %s; wanted: a number, as %d of %d rows have there; " ..
        "categorical=%s takes what stands in the column for names, ignore=%s leaves it out"):format(unicode.shown(name),
        fields.shown(column.odd.value), column.numbers, count, name, name))
    end
    if not of_numbers then
      plan.categorical[name] = true
      if #column.values > MOST_VALUES then
        fail.input(("%s: %s: the column '%s' has more than %d different names; ignore=%s leaves it out"):format(what,
          path, unicode.shown(name), MOST_VALUES, name))
      end
      table.sort(column.values)
    end
  end
  return plan, found, count
end

local function target_of(row, name, line, reader)
  local value = cell(row, name, line, reader)
  return fields.number(value) or reader:refuse(line, ("'%s', which is predicted, is %s; wanted: a number"):format(
    unicode.shown(name), fields.shown(value)))
end

-- Means and deviations of named columns over the rows that are trained with, by Welford's recurrence.
local function moments(path, what, plan, trained)
  local wanted, list, at = {}, { plan.target }, 0
  for _, number in ipairs(trained) do wanted[number] = true end
  for _, name in ipairs(plan.names) do
    if not plan.categorical[name] then list[#list + 1] = name end
  end
  local mean, squares, count = {}, {}, 0
  for _, name in ipairs(list) do mean[name], squares[name] = 0, 0 end
  tables.each(path, what, function(row, line, reader)
    at = at + 1
    local target = target_of(row, plan.target, line, reader)
    if not wanted[at] then return end
    count = count + 1
    for _, name in ipairs(list) do
      local value = name == plan.target and target or fields.number(row[name])
      local apart = value - mean[name]
      mean[name] = mean[name] + apart / count
      squares[name] = squares[name] + apart * (value - mean[name])
    end
  end)
  local deviation = {}
  for _, name in ipairs(list) do
    local found = math.sqrt(squares[name] / count)
    deviation[name] = found > 0 and found < math.huge and found or 1  -- a column of one number says nothing
  end
  return mean, deviation
end

local function description(inputs, target, mean, deviation)
  return json.encode(json.object { { "inputs", json.array(inputs) },
    { "answers", json.array { { kind = "number", field = target, output = "y", mean = mean, deviation = deviation } } },
  })
end

-- Fills in `statistics`, what a model needs to know of its columns, from the data.
function columns.settle(o)
  if o.statistics ~= "" then
    columns.description(o)
    return nil
  end
  local inputs, at = {}, 0
  local function add(row, width)
    row.input, row.at = "x", at
    inputs[#inputs + 1], at = row, at + width
  end
  if o.data == "" or o.data == "random" then
    for i = 1, RANDOM_COLUMNS do add({ kind = "number", field = "x" .. i, mean = 0, deviation = 1 }, 1) end
    return { statistics = description(inputs, "y", 0, 1) }
  end
  local plan, found, count = survey(o.data, "data", o)
  local mean, deviation = moments(o.data, "data", plan, (rows.split(count, o.eval_fraction)))
  for _, name in ipairs(plan.names) do
    if plan.categorical[name] then
      add({ kind = "category", field = name, values = found[name].values }, #found[name].values)
    else
      add({ kind = "number", field = name, mean = mean[name], deviation = deviation[name] }, 1)
    end
  end
  return { statistics = description(inputs, plan.target, mean[plan.target], deviation[plan.target]) }
end

-- What the option `statistics` says: {inputs, answers} as predictors have them, width (columns of the input), target.
function columns.description(o)
  local ok, read = pcall(decode, o.statistics)
  if not ok or type(read) ~= "table" or type(read.inputs) ~= "table" or type(read.answers) ~= "table"
      or type(read.answers[1]) ~= "table" then
    fail.usage("statistics: wanted: what a run has found out of its data; leave it out to find it out again")
  end
  local width = 0
  for _, row in ipairs(read.inputs) do
    width = width + (type(row) == "table" and type(row.values) == "table" and #row.values or 1)
  end
  read.width, read.target = width, read.answers[1]
  return read
end

-- Room for `count` rows of x (an array as fields write it) and y, with what is in `before`.
local function room(width, count, before)
  local made = { count = 0, room = count, y = numbers.buffer("f32", count),
                 x = { data = numbers.buffer("f32", count * width), width = width } }
  if before then
    ffi.copy(made.y, before.y, 4 * before.room)
    ffi.copy(made.x.data, before.x.data, 4 * before.room * width)
  end
  return made
end

local last  -- the file that was read last: a share of it may be held out

-- All rows of a file as the model takes them: {x, y, count}.
local function load(path, what, o)
  local key = path .. "\0" .. o.statistics
  if last and last.key == key then return last end
  local about, at = columns.description(o), 0
  local made = room(about.width, FIRST_ROWS)
  tables.each(path, what, function(row, line, reader)
    if at == made.room then made = room(about.width, 2 * at, made) end
    for _, field in ipairs(about.inputs) do
      local ok, problem = fields.inputs[field.kind].write(field, made, at, cell(row, field.field, line, reader))
      if not ok then reader:refuse(line, ("'%s': %s"):format(unicode.shown(field.field), problem)) end
    end
    local target = about.target
    made.y[at] = (target_of(row, target.field, line, reader) - target.mean) / target.deviation
    at = at + 1
  end)
  made.key, made.count = key, at
  last = made
  return made
end

-- Rows whose target is a sum over some of their columns.
local function random_rows(o, seed)
  local about, draw = columns.description(o), random(seed)
  local made = room(about.width, RANDOM_ROWS)
  made.count = RANDOM_ROWS
  for at = 0, RANDOM_ROWS - 1 do
    local sum = 0
    for i = 0, about.width - 1 do
      local value = (2 * draw() - 1) * math.sqrt(3)
      made.x.data[at * about.width + i], sum = value, sum + (i % 2) * value
    end
    made.y[at] = sum / math.sqrt(about.width / 2)
  end
  return made
end

local function source_of(found)
  local width, from = found.x.width, found.x.data
  return {
    layout = { { "x", "f32", width }, { "target", "f32", 1 }, { "weight", "f32", 1 } },
    fill = function(arrays, place, number)
      for i = 0, width - 1 do arrays.x.data[place * width + i] = number and from[(number - 1) * width + i] or 0 end
      arrays.target.data[place] = number and found.y[number - 1] or 0
      arrays.weight.data[place] = number and 1 or 0  -- what fills up a micro-batch counts for nothing
      return number and 1 or 0
    end,
  }
end

function columns.dataset(o, run)
  if o.data == "" then fail.usage("data=FILE is needed (or data=random)") end
  local drawn = o.data == "random"
  local file = not drawn and content.open(run, o.data, "data") or nil
  local found = drawn and random_rows(o, run.seed) or load(o.data, "data", o)
  local list = rows.split(found.count, o.eval_fraction)
  local made = rows.dataset(list, o, run.seed, source_of(found), "data: " .. o.data)
  made.content = file and file.content
  return made
end

local function variance(found, list)
  local mean, squares = 0, 0
  for count, number in ipairs(list) do
    local apart = found.y[number - 1] - mean
    mean = mean + apart / count
    squares = squares + apart * (found.y[number - 1] - mean)
  end
  return squares / #list
end

-- What is evaluated with: eval_data, or the share eval_fraction of data. o.variance: of what is predicted there, in
-- squares of its deviation in training.
function columns.evaluation(o, run)
  if not rows.evaluates(o) then return nil end
  local path, what = o.eval_data, "eval_data"
  if path == "" then path, what = o.data, "eval_fraction" end
  if path == "" then fail.usage("data=FILE is needed (or data=random)") end
  local file = path ~= "random" and content.open(run, path, o.eval_data == "" and "data" or what) or nil
  local found = path == "random" and random_rows(o, run.seed) or load(path, what, o)
  local list = select(2, rows.split(found.count, o.eval_data == "" and o.eval_fraction or 1))
  if #list == 0 then
    fail.input(("eval_fraction=%.15g of the %d rows of %s is none"):format(o.eval_fraction, found.count, path))
  end
  local own = {}
  for key, value in pairs(o) do own[key] = value end
  own.variance, own.dropout = variance(found, list), 0
  return { o = own, data = function()
    local made = rows.evaluation(list, o, source_of(found))
    if o.eval_data == "" and file then made.content = file.content end
    return made
  end }
end

return columns
