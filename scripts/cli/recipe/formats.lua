-- What a run stores its parameters as: what --format says, and for frozen ones what the files have that they are loaded
-- from. Rules name parameters one by one, so that all programs of a run agree.
local cairn = require "cairn"
local fail = require "cli.base.fail"
local numbers = require "cairn.numbers"
local parameters = require "cli.recipe.parameters"
local posix = require "cli.base.posix"
local unicode = require "cli.base.unicode"
local weights = require "cli.recipe.weights"

local formats = {}

local SHOWN = 6  -- names in a message
local MATRICES = { linear = true, grouped_linear = true }  -- ops whose second operand `--format NAME` means
local HALVES = { bf16 = true, f16 = true }
local NESTED_BLOCK = 16384

local function listed(words)
  if #words <= SHOWN then return table.concat(words, ", ") end
  return table.concat({ unpack(words, 1, SHOWN) }, ", ") .. (" and %d more"):format(#words - SHOWN)
end

-- Formats by name.
local function by_name()
  local rows = {}
  for _, row in ipairs(cairn.formats()) do rows[row.name] = row end
  return rows
end

-- Whether a parameter is not trained. With adapters, what they and modules_to_save do not name is frozen.
local function is_frozen(o, name, given)
  if given and given.frozen then return true end
  if (tonumber(o.lora) or 0) == 0 or name:find("%.lora_") then return false end
  for word in tostring(o.modules_to_save or ""):gmatch("[^,%s]+") do
    if name:gsub("%.weight$", ""):find(parameters.pattern(word)) then return false end
  end
  return true
end

-- The training graph of a recipe, not frozen, and its parameters: {name, shape, frozen, matrix (of a linear op)}.
local function described(recipe, o)
  local graph = fail.check("graph", cairn.graph())
  local rows, of_value, add, op = {}, {}, graph.parameter, graph.op
  function graph.parameter(self, name, dims, given)
    local value = add(self, name, dims, given)
    local row = { name = name, shape = dims, frozen = is_frozen(o, name, given) }
    rows[#rows + 1], of_value[value] = row, row
    return value
  end
  function graph.op(self, name, ...)
    local w = select(2, ...)
    if MATRICES[name] and w and of_value[w] then of_value[w].matrix = true end
    return op(self, name, ...)
  end
  recipe.call("model", o, graph, "training")
  graph.parameter, graph.op = nil, nil  -- the graph's own again
  return rows, graph
end

-- Rules for parameters by what files have. rows: {ours, dtype (a format's name), quantised}, one for each tensor of the
-- files; run: {parameters (of described), forward (the model is not trained)}.
function formats.of_source(run, rows)
  local known, rules, dtypes, trained = by_name(), {}, {}, {}
  for _, row in ipairs(rows) do
    local before = dtypes[row.ours]
    -- Parts of one parameter: scales of scales are in blocks of their own.
    local parts = before and (before.parts + 1) or 1
    dtypes[row.ours] = { dtype = (not before or before.dtype == row.dtype) and row.dtype or "several", parts = parts,
                         quantised = row.quantised }
  end
  for _, each in ipairs(run.parameters) do
    local from = dtypes[each.name]
    local format = from and known[from.dtype]
    local name = from and from.dtype
    if name == "nf4_nested" and from.parts > 1 and numbers.count(each.shape) / from.parts % NESTED_BLOCK ~= 0 then
      name = "nf4"
    end
    if from and from.quantised and not each.frozen then trained[#trained + 1] = each.name end
    local fits = format and #each.shape > 1 and each.shape[#each.shape] % format.row == 0
    if fits and each.frozen and (format.read == "dequantised" or HALVES[name] and not run.forward) then
      rules[#rules + 1] = { pattern = each.name, format = name }
    end
  end
  if #trained > 0 then
    fail.input(("this run would train parameters that the files have quantised: %s; freeze them (lora=16, or " ..
      "frozen='*'), or take the model's unquantised files"):format(listed(trained)))
  end
  return rules
end

-- Rules of `--format NAME`: frozen matrices of linear ops; those whose rows are no full blocks keep what they have.
local function of_all(rows, name, note)
  local row = by_name()[name]
  if not row then return { { pattern = "*", format = name } } end  -- the library says what is wrong
  local rules, passed, trained = {}, {}, {}
  for _, each in ipairs(rows) do
    local fits = each.shape[#each.shape] % row.row == 0
    if each.matrix and not each.frozen then
      trained[#trained + 1] = each.name
    elseif each.matrix and fits then
      rules[#rules + 1] = { pattern = each.name, format = name }
    elseif each.matrix then
      passed[#passed + 1] = each.name
    end
  end
  if #rules == 0 and #passed == 0 and #trained > 0 then
    fail.input(("--format %s: all matrices of linear ops are trained (%s), and it is for frozen ones: lora=16, or " ..
      "frozen='*'"):format(name, listed(trained)))
  end
  if #rules == 0 and #passed > 0 then
    fail.input(("--format %s stores %d values of a row together, and no row of these is a multiple of them: %s"):format(
      name, row.row, listed(passed)))
  end
  if #passed > 0 then
    note(("note: --format %s: rows of these are no blocks of %d values, and they keep their type: %s"):format(name,
      row.row, listed(passed)))
  end
  return rules
end

-- What the files at `path` have for the parameters of a graph, as formats.of_source takes it.
local function rows_of(recipe, o, graph, path, note)
  local rows, told = {}, {}
  for _, row in ipairs(weights.found({ recipe = recipe, o = o, graph = graph }, path)) do
    rows[#rows + 1] = { ours = row.ours, dtype = row.tensor.dtype, quantised = row.tensor.quantised }
    if row.tensor.note then told[#told + 1] = ("%s (%s)"):format(row.ours, row.tensor.note) end
  end
  if #told > 0 then
    note(("note: %s: quantised so that no format holds it, decoded to f32: %s"):format(unicode.shown(path),
      listed(told)))
  end
  return rows
end

-- Rules of a command (options.format), and whether one of them is without a pattern.
local function asked_of(recipe, options)
  local asked, all = parameters.formats(recipe, options or {}) or {}, false
  for _, rule in ipairs(asked) do all = all or not rule.pattern end
  return asked, all
end

-- rules, then those of a command, each for parameters (rows) or by its pattern; nil: there are none.
local function joined(rules, asked, rows, note)
  for _, rule in ipairs(asked) do
    for _, each in ipairs(rule.pattern and { rule } or of_all(rows, rule.format, note)) do rules[#rules + 1] = each end
  end
  return #rules > 0 and rules or nil
end

-- What cairn.plan takes as `formats` for a training run: what the command says after what the files have. from: where
-- its weights come from (nil: what the command says; false: nowhere, as of a run that goes on). nil: no rule.
function formats.rules(recipe, o, options, from, note)
  local asked, all = asked_of(recipe, options)
  local function tell(message) io.stderr:write(message, "\n") end
  note = options.quiet and function() end or note or tell
  if from == nil then
    from = options.init or recipe.directory and recipe.directory.tensors and recipe.directory.path
  end
  from = type(from) == "string" and posix.is_there(from) and from or nil
  if not all and not from then return joined({}, asked) end
  local rows, graph = described(recipe, o)
  local some = false
  for _, each in ipairs(rows) do some = some or each.frozen end
  local rules = {}
  if from and (some or formats.quantised(from)) then
    rules = formats.of_source({ parameters = rows }, rows_of(recipe, o, graph, from, note))
  end
  return joined(rules, asked, rows, note)
end

-- The rules for a model that is not trained: of those matrices that its files have quantised, and of a command. path:
-- of the files (optional).
function formats.forward(recipe, o, path, note, options)
  local asked, all = asked_of(recipe, options)
  local quantised = path and formats.quantised(path)
  if not all and not quantised then return joined({}, asked) end
  note = note or function() end
  local rows, graph = described(recipe, o)
  for _, each in ipairs(rows) do each.frozen = true end
  local rules = quantised and formats.of_source({ parameters = rows, forward = true },
    rows_of(recipe, o, graph, path, note))
  return joined(rules or {}, asked, rows, note)
end

-- Whether files have quantised matrices.
function formats.quantised(path)
  for _, tensor in pairs(weights.tensors(path)) do
    if tensor.quantised then return true end
  end
  return false
end

return formats
