-- What `cairn plan` says of a run with several programs on one store: the same set that `cairn train` takes.
local evaluation = require "cli.train.evaluation"
local format = require "cli.base.format"
local json = require "cli.base.json"
local programs = require "cli.train.programs"
local runs = require "cli.train.run"
local rates = require "cli.plan.rates"
local summary = require "cli.plan.summary"

local store = {}

-- Rows of the run's programs (cli.train.programs); nil: it has one. Data are opened where remainders are asked for,
-- whose sizes depend on them.
function store.rows(recipe, o, options, micro_steps)
  local about = { seed = options.seed or runs.DEFAULT_SEED, steps = options.steps or recipe.training.steps,
                  accumulate = micro_steps, note = function(message)
                    if not options.quiet then io.stderr:write(message, "\n") end
                  end }
  runs.helpers(about)
  local data = o.remainder == "own" and recipe.call("dataset", o, about) or nil
  local evaluates = evaluation.of(recipe, o, about)
  local forward = evaluates and { { name = "evaluation", kind = "evaluation", o = evaluates.o } } or {}
  return programs.rows(recipe, o, about, data, forward)
end

function store.names(rows)
  local names = {}
  for i, row in ipairs(rows) do names[i] = row.name end
  return table.concat(names, ", ")
end

-- Returns the plan of the largest program that trains, its numbers with the peaks of the whole store, and the list.
function store.plan(recipe, rows, device, options, micro_steps, o)
  local list, largest, peaks = runs.plan_set(recipe, rows, device, options, micro_steps, o)
  local numbers = {}
  for key, value in pairs(largest.summary) do numbers[key] = value end
  numbers.peak_bytes = peaks
  rates.tell(numbers.rates, options)
  return largest.plan, numbers, list
end

local function seconds(program, micro_steps)
  if program.kind ~= "train" then return program.summary.predicted_seconds end
  return summary.step_seconds(program.summary, program.summary.predicted_seconds, micro_steps)
end

-- What is known of each program before it runs.
function store.json(list, micro_steps)
  local rows = {}
  for i, program in ipairs(programs.in_order(list)) do
    local numbers = program.summary
    rows[i] = json.object { { "name", program.name }, { "length", program.length },
      { "batch", tonumber(program.o.batch) }, { "planned_peak_bytes", summary.tiers(numbers.peak_bytes) },
      { "activation_peak_bytes", numbers.activation_peak_bytes }, { "memory_bytes", summary.memory(numbers) },
      { "predicted_seconds", numbers.predicted_seconds },
      { "predicted_step_seconds", seconds(program, micro_steps) } }
  end
  return json.array(rows)
end

function store.text(list)
  local rows = {}
  for i, program in ipairs(programs.in_order(list)) do
    rows[i] = { program.name, format.bytes(program.summary.peak_bytes.device),
                format.bytes(program.summary.activations_bytes), format.seconds(program.summary.predicted_seconds) }
  end
  return format.table(rows, { "programs of the store", "peak", "activations", "per micro-batch" })
end

return store
