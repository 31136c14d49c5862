-- Micro-batches of a step that are planned and run as one batch: of a recipe whose joins(o) says so, as one of a net
-- with batchnorm=effective, whose statistics are of all of them. The planner then keeps, recomputes or offloads what
-- their backward needs. People, checkpoints and results go on counting the micro-batches that were asked for.
local changed = require "cli.base.changed"
local fail = require "cli.base.fail"

local joined = {}

-- Option values and micro-batches of a step as they are run: those given, where nothing is joined.
function joined.of(recipe, o, micro_steps, options)
  local why = micro_steps > 1 and recipe.joins and recipe.call("joins", o)
  if not why then return o, micro_steps end
  if options.on_oom == "shrink" then
    fail.usage(("--on-oom shrink: with %s a step's micro-batches are run as one, which smaller ones do not " ..
      "change"):format(why))
  end
  return changed(o, { batch = o.batch * micro_steps }), 1
end

return joined
