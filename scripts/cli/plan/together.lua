-- Options of a run that do not go together, each fine by itself: a mistake of the command line, told before anything is
-- planned.
local fail = require "cli.base.fail"

-- Rows of a condition of (options, option values, micro-batches of a step), and what is wrong: nil, where nothing is.
local RULES = {
  function(options, o)
    if options.fuse_update and (o.clip or 0) ~= 0 and not options.plans_alone then
      return ("--fuse-update updates parameters before the norm of all gradients is known, so that they cannot be " ..
        "clipped by it: clip is %g; give clip=0"):format(o.clip)
    end
  end,
  function(options, _, micro_steps)
    if options.fuse_update and micro_steps > 1 then
      return ("--fuse-update goes with one micro-batch per step, which leaves nothing to accumulate; here it is " ..
        "%d micro-batches per update"):format(micro_steps)
    end
  end,
  function(options)
    if options.fuse_update and options.amp == "fp16" then
      return "--fuse-update does not go with --amp fp16, whose loss scale skips steps once all gradients are known; " ..
        "take --amp bf16"
    end
  end,
  function(options)
    local parameters = (options.optimizer or {}).parameters
    if parameters and parameters ~= "f32" and options.amp ~= "bf16" then
      return ("parameters=%s goes with --amp bf16, whose ops read them as they lie; with --amp %s they are f32"):format(
        parameters, options.amp or "off")
    end
  end,
  function(options)
    local tiers = options.tiers and options.tiers ~= "none" and options.tiers
    for _, row in ipairs(tiers and options.region or {}) do
      local tier = row.policy:match("^offload:(%a+)$")
      if tier and not tiers:find(tier, 1, true) then
        return ("--region %s=%s: the tier %s is not among --tiers %s; give --tiers host,disk"):format(row.pattern,
          row.policy, tier, tiers)
      end
    end
  end,
}

-- Ends the command if options do not go together.
return function(options, o, micro_steps)
  for _, rule in ipairs(RULES) do
    local wrong = rule(options, o, micro_steps or 1)
    if wrong then fail.usage(wrong) end
  end
end
