-- Values of a complete step that training needs from its first micro-batch on: a forward program (the recipe's `sums`)
-- runs over all micro-batches of the step first, and what it sums over them becomes inputs of the graphs that train.
local cairn = require "cairn"
local changed = require "cli.base.changed"
local fail = require "cli.base.fail"

local effective = {}

local function sorted(list)
  local names = {}
  for name in pairs(list) do names[#names + 1] = name end
  table.sort(names)
  return names
end

-- What option values of a recipe may say of a step, which follows from --accumulate: whether it has one micro-batch
-- alone, and how many it has, for the op `effective`.
effective.TOLD = { one_micro_batch = true, micro_steps = true }

-- Option values that say so, for a recipe that asks: it has a function or an option `effective`.
function effective.told(recipe, o, micro_steps)
  if not recipe.effective and o.effective == nil then return o end
  return changed(o, { one_micro_batch = micro_steps == 1, micro_steps = micro_steps })
end

-- Those for a graph that does not train, whose micro-batches are by themselves.
function effective.alone(o) return o.micro_steps and changed(o, { micro_steps = 1 }) or o end

-- {inputs (a set of names), values(sums by name) -> arrays by input, without (options that ask for none, in words;
-- optional)}; nil: these options ask for none.
function effective.of(recipe, o)
  local made = recipe.effective and recipe.call("effective", o)
  if not made then return nil end
  if type(made) ~= "table" or type(made.inputs) ~= "table" or type(made.values) ~= "function" or not recipe.sums then
    fail.input(recipe.path .. ": effective must return { inputs = { name, ... }, values = function(sums) ... end }, " ..
      "and the recipe have a function sums(o, graph)")
  end
  local inputs = {}
  for _, name in ipairs(made.inputs) do inputs[name] = true end
  return { inputs = inputs, values = made.values, without = made.without }
end

-- The rows of programs with one more behind each that trains.
function effective.add(rows)
  for i = 1, #rows do
    local row = rows[i]
    if row.kind == "train" then
      rows[#rows + 1] = { name = row.name .. "-sums", length = row.length, kind = "sums", o = row.o }
    end
  end
end

-- The forward graph that a function of the recipe builds. graph.sums: names of its values by what they are. first: the
-- graph whose parameters are frozen that are frozen here (optional).
function effective.forward_graph(recipe, name, o, first)
  local graph = fail.check("graph", cairn.graph())
  local add = graph.parameter
  if first then
    function graph.parameter(self, parameter, dims, given)
      local info = first:info(parameter)
      return add(self, parameter, dims, changed(given or {}, { frozen = info and info.frozen or nil }))
    end
  end
  local ends = recipe.call(name, o, graph)
  if type(ends) ~= "table" or type(ends.outputs) ~= "table" then
    fail.input(("%s: %s must return { outputs = { name = value } }"):format(recipe.path, name))
  end
  graph.parameter = nil  -- the graph's own again
  local outputs, names = {}, {}
  for i, key in ipairs(sorted(ends.outputs)) do
    outputs[i], names[key] = ends.outputs[key], ends.outputs[key]:name()
  end
  graph.sums = names
  return fail.check("graph", graph:freeze { outputs = outputs })
end

-- The graph that sums.
function effective.graph(recipe, o) return effective.forward_graph(recipe, "sums", o) end

-- Of a graph's inputs those that a micro-batch gives.
function effective.given(inputs, self)
  local list = {}
  for _, input in ipairs(inputs) do
    if not (self and self.inputs[input.name]) then list[#list + 1] = input end
  end
  return list
end

-- Of a micro-batch's arrays those that a program reads.
function effective.taken(arrays, inputs)
  local list = {}
  for _, input in ipairs(inputs) do list[input.name] = arrays[input.name] end
  return list
end

local function add(sums, name, values)
  local into = sums[name] or {}
  for i, value in ipairs(values) do into[i] = (into[i] or 0) + value end
  sums[name] = into
end

-- Runs the first pass over a step's micro-batches, which begin with number `first`. Returns the arrays by input; nil if
-- it was stopped.
function effective.run(self, run, first, stop)
  local sums, last = {}, first + run.spec.accumulate - 1
  local batches = run.data.batches
  if batches then last = math.min(last, first - first % batches + batches - 1) end  -- the step ends with the epoch
  for index = first, last do
    if stop and stop() then return nil end
    local program, _, tokens = run:fill(run.data, index, nil, true)
    if not program then return nil end
    local ran, err = program.session:run()
    if not ran and err.status == "CANCELLED" then return nil end
    fail.check("step", ran, err)
    for name, value in pairs(program.plan.graph.sums) do
      add(sums, name, fail.check("step", program.session:read(value)))
    end
    program.micro_batches, program.tokens = program.micro_batches + 1, program.tokens + tokens
  end
  return run.recipe.guard(self.values, sums)
end

return effective
