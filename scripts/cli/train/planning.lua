-- From a recipe to its plan: graph, device, the plan of one program or of several on one store. A refusal says what
-- would help.
local bundle = require "cli.checkpoint.bundle"
local cairn = require "cairn"
local check_budget = require "cli.plan.check_budget"
local effective = require "cli.train.effective"
local evaluation = require "cli.train.evaluation"
local fail = require "cli.base.fail"
local format = require "cli.base.format"
local metrics = require "cli.train.metrics"
local numbers = require "cairn.numbers"
local precision = require "cli.recipe.precision"
local prepared = require "cli.train.prepared"
local programs = require "cli.train.programs"
local progress = require "cli.train.progress"
local rates = require "cli.plan.rates"
local refusal = require "cli.plan.refusal"

local planning = {}
local LOOKING = "looking for what would fit"

-- The frozen training graph of a recipe; graph.metrics: what it measures beside the loss (cli.train.metrics). limit: is
-- told of every parameter while the graph is made, and may end the command (refusal.weights_limit; optional).
function planning.graph(recipe, o, limit)
  local graph = fail.check("graph", cairn.graph())
  local add = graph.parameter
  if limit then
    function graph.parameter(self, name, dims, given)
      local value = add(self, name, dims, given)
      limit(name, numbers.count(dims), given and given.frozen or (tonumber(o.lora) or 0) > 0)
      return value
    end
  end
  local ends = recipe.call("model", o, graph, "training")
  graph.parameter = nil  -- the graph's own again
  if limit then limit(nil, 0) end
  local rows, values = metrics.of(ends, false)
  for _, value in ipairs(ends.outputs or {}) do values[#values + 1] = value end
  graph.metrics = rows
  return fail.check("graph", graph:freeze { loss = ends.loss, weight = ends.weight, outputs = values })
end

-- Elements of all parameters of a graph, and of those that are trained.
function planning.parameter_count(graph)
  local count, trained = 0, 0
  for _, parameter in ipairs(graph:parameters()) do
    local elements = numbers.count(parameter.shape)
    count, trained = count + elements, trained + (parameter.frozen and 0 or elements)
  end
  return count, trained
end

local function checked(recipe, graph, first)
  local problem = bundle.mismatch(graph, first)
  if problem then fail.input(("%s: texts: %s"):format(recipe.path, problem)) end
  return graph
end

-- The graph of a program; row.graph: it is there. first: that of the first program, which has all parameters.
function planning.graph_of(recipe, row, first, limit)
  if row.graph then return checked(recipe, row.graph, first) end
  if row.kind == "generation" then return bundle.build_generator(recipe, row.o, first) end
  if row.kind == "evaluation" then return evaluation.graph(recipe, row.o) end
  if row.kind == "sums" then return effective.graph(recipe, row.o) end
  if row.kind == "prepared" then return prepared.graph(recipe, row.o, first) end
  return planning.graph(recipe, row.o, limit)
end

function planning.device(options)
  local settings = { threads = options.threads, link_bytes_per_second = options.link, rates = options.rates }
  local device, err = cairn.device(options.device or "cpu", settings)
  if not device and err.status == "NOT_FOUND" then fail.usage("--device: " .. err) end
  return fail.check("--device", device, err)
end

-- Ends the command before anything is taken if a plan needs more memory than the device has.
function planning.check_fits(plan, summary, options, micro_steps, of)
  local need = summary.peak_bytes.device
  for _, info in ipairs(fail.check("devices", cairn.devices())) do
    if info.name == (options.device or "cpu") and info.memory_bytes > 0 and need > info.memory_bytes then
      local asked = ("the run takes %s (%.0f bytes) of device '%s', which has %s (%.0f bytes)"):format(
        format.bytes(need), need, info.name, format.bytes(info.memory_bytes), info.memory_bytes)
      progress.meanwhile(options, LOOKING, refusal.fail, asked, planning, plan, options, micro_steps, of,
        info.memory_bytes, refusal.at_least(summary, options, micro_steps), need)
    end
  end
end

-- Options of cairn.plan from those of the command line; options.optimizer: what recipes.optimizer makes,
-- options.amp_rules: what precision.rules makes, options.formats: what parameters.formats makes. micro_steps:
-- micro-batches of a step.
function planning.plan_options(options, micro_steps)
  local budget = options.budget or {}
  local of = options.optimizer or {}
  return { optimizer = of.optimizer, hypers = of.hypers, groups = of.groups, parameters = of.parameters,
           formats = options.formats, ema = of.ema,
           budget_bytes = budget.bytes, budget_share = budget.share, amp = precision.of(options),
           policy = options.policy, regions = options.region, tiers = options.tiers, costs = options.costs,
           force_costs = options.force_profile, micro_steps = micro_steps, fuse_update = options.fuse_update }
end

local MANY_VALUES, said = 20000, false  -- from which on planning takes seconds

-- The plan of a graph; ends the command where there is none. of: {recipe, o} that the graph is of, so that a refusal
-- names what would help (optional).
function planning.plan(graph, device, options, micro_steps, of)
  if graph:count() > MANY_VALUES and not options.quiet and not said then
    said = true
    io.stderr:write(("planning a graph of %s values; this may take minutes\n"):format(format.count(graph:count())))
  end
  local wanted = planning.plan_options(options, micro_steps)
  check_budget(planning, graph, device, options, wanted, of)
  local plan, err = progress.meanwhile(options, "planning", cairn.plan, graph, device, wanted)
  fail.plan("plan", plan, plan == nil
    and progress.meanwhile(options, LOOKING, refusal.explained, planning, err, device, options,
      micro_steps, of) or nil)
  rates.tell(fail.check("plan", plan:rates()), options)
  return plan
end

-- The plans of several programs on one store, as programs.plan returns them. limit: as planning.graph takes it.
function planning.plan_set(recipe, rows, device, options, micro_steps, o, limit)
  return programs.plan(rows, device, planning.plan_options(options, micro_steps),
    function(row, first) return planning.graph_of(recipe, row, first, not first and limit or nil) end,
    function(err)
      return refusal.explained(planning, err, device, options, micro_steps, { o = o, plan = function(wanted, on)
        local graphs = {}
        for i, row in ipairs(rows) do
          graphs[i] = { name = row.name, graph = planning.graph_of(recipe, row, graphs[1] and graphs[1].graph) }
        end
        return cairn.plan_set(graphs, on, wanted)
      end })
    end)
end

return planning
