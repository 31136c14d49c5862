-- Whether a run fits at all, asked before anything is taken or planned at length. run: cli.train.run.
local cairn = require "cairn"
local changed = require "cli.base.changed"
local fail = require "cli.base.fail"
local format = require "cli.base.format"
local progress = require "cli.train.progress"
local refusal = require "cli.plan.refusal"

local fits = { LOOKING = "looking for what would fit" }

local CROWDED = 4  -- times the weights: a budget above that has room for states and gradients of most optimizers

-- Ends the command before anything is taken if a plan needs more memory than the device has.
function fits.device(run, plan, summary, options, micro_steps, of)
  local need = summary.peak_bytes.device
  for _, info in ipairs(fail.check("devices", cairn.devices())) do
    if info.name == (options.device or "cpu") and info.memory_bytes > 0 and need > info.memory_bytes then
      local asked = ("the run takes %s (%.0f bytes) of device '%s', which has %s (%.0f bytes)"):format(
        format.bytes(need), need, info.name, format.bytes(info.memory_bytes), info.memory_bytes)
      progress.meanwhile(options, fits.LOOKING, refusal.fail, asked, run, plan, options, micro_steps, of,
        info.memory_bytes, refusal.at_least(summary, options), need)
    end
  end
end

-- Ends the command if a budget is less than what weights, states and gradients take: finding the best plan for what no
-- plan does may take minutes.
function fits.budget(run, graph, device, options, wanted, of)
  local bytes, stored = wanted.budget_bytes, 0
  if not bytes then return end
  for _, parameter in ipairs(graph:parameters()) do stored = stored + parameter.bytes end
  if stored * CROWDED < bytes then return end
  local plan = cairn.plan(graph, device, changed(wanted, { budget_bytes = 0 }))
  if not plan then return end  -- whatever keeps it from being planned is told of the plan that was asked for
  local at_least = refusal.at_least(fail.check("plan", plan:summary()), options)
  if at_least and at_least > bytes then
    progress.meanwhile(options, fits.LOOKING, refusal.fail, "plan: " .. refusal.asked(options.budget, bytes), run, plan,
      options, wanted.micro_steps, of, bytes, at_least)
  end
  plan:free()
end

return fits
