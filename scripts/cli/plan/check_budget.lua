-- A budget that no plan can have, seen before any is looked for.
local cairn = require "cairn"
local costs = require "cli.plan.costs"
local fail = require "cli.base.fail"
local progress = require "cli.train.progress"
local refusal = require "cli.plan.refusal"

local LOOKING = "looking for what would fit"
local CROWDED = 4  -- times the weights: a budget above that has room for states and gradients of most optimizers

-- Ends the command if a budget is less than what weights, states and gradients take: finding the best plan for what no
-- plan does may take minutes.
return function(run, graph, device, options, wanted, of)
  local memory, stored = options.device_model and costs.variants(options).memory_bytes or nil, 0
  local bytes, share = wanted.budget_bytes or memory, wanted.budget_share
  if not bytes or (memory and bytes > memory) then return end  -- more than there is: the library says so
  for _, parameter in ipairs(graph:parameters()) do stored = stored + parameter.bytes end
  if not share and stored * CROWDED < bytes then return end
  local plan = cairn.plan(graph, device, refusal.unlimited(wanted, options))
  if not plan then return end  -- whatever keeps it from being planned is told of the plan that was asked for
  local free = fail.check("plan", plan:summary())
  if share then bytes = math.min(memory, math.max(1, math.floor(free.budget_bytes * share))) end
  local at_least = refusal.at_least(free, options, wanted.micro_steps)
  if at_least and at_least > bytes then
    progress.meanwhile(options, LOOKING, refusal.fail, "plan: " .. refusal.asked(options.budget, bytes), run, plan,
      options, wanted.micro_steps, of, bytes, at_least)
  end
  plan:free()
end
