-- What is said of a plan that its budget refuses, beside what the library says: what would help.
local cairn = require "cairn"
local changed = require "cli.base.changed"
local costs = require "cli.plan.costs"
local fail = require "cli.base.fail"
local levers = require "cli.plan.levers"

local refusal = {}

-- A plan of the run with a lever's changes, under a budget of `bytes`; true, or nil, err.
local function try(run, device, options, micro_steps, of, row, bytes)
  local with = changed(options, row.options or {})
  if with.tiers and options.closed then with.costs = options.closed.open end
  local wanted = run.plan_options(with, row.micro_steps or micro_steps)
  wanted.budget_share, wanted.budget_bytes = nil, bytes
  if of.plan then
    local plans, err = of.plan(wanted)
    for _, plan in ipairs(plans or {}) do plan:free() end
    return plans and true, err
  end
  local o, recipe = changed(of.o, row.o or {}), of.recipe
  if row.freezes then
    local whole = run.graph(recipe, o)
    recipe = levers.freezing(recipe, #whole:parameters())
    whole:free()
  end
  local graph = run.graph(recipe, o)
  local plan, err = cairn.plan(graph, device, wanted)
  if plan then plan:free() end
  graph:free()
  return plan and true, err
end

-- The end of the message of a refusal. run: cli.train.run; budget, smallest: what was given, and what the refused plan
-- needs; of: {recipe, o}, or {o, plan = function(wanted) -> plans, err} of several programs; nil: what it is of is not
-- known.
function refusal.advice(run, device, options, micro_steps, budget, smallest, of)
  if not of or options.on_oom == "shrink" then return "" end
  return levers.advice {
    options = options, o = of.o, micro_steps = micro_steps or 1, budget = budget, smallest = smallest,
    model = options.device_model and costs.variants(options) or nil, whole = not of.plan,
    smallest_of = function(row)
      local tried, made, err = pcall(try, run, device, options, micro_steps, of, row, 1)
      if not tried then
        if fail.is(made) and not made.interrupted then return nil end  -- the recipe does not go with the lever
        error(made, 0)
      end
      if made or err.status ~= "OVER_BUDGET" or not err.fault then return nil end
      local bytes = err.fault.smallest_budget_bytes
      -- Programs that share a store may need more than the one that was refused first.
      if of.plan and bytes <= budget and not try(run, device, options, micro_steps, of, row, budget) then return nil end
      return bytes
    end,
  }
end

-- The error of cairn.plan, with the smallest budget and what would help in its message, if it is a refusal.
function refusal.explained(run, err, device, options, micro_steps, of)
  local fault = err.status == "OVER_BUDGET" and err.fault
  local smallest = fault and fault.smallest_budget_bytes or 0
  if smallest == 0 then return err end
  if not err.message:find(("%d"):format(smallest), 1, true) then
    err.message = ("%s; the smallest budget that fits is %d bytes"):format(err.message, smallest)
  end
  err.message = err.message ..
    refusal.advice(run, device, options, micro_steps, fault.budget_bytes, smallest, of)
  return err
end

return refusal
