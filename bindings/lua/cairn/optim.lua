-- Optimizer and schedule settings by Torch7's keys, as options for cairn.stepper.
local optim = {}

local NAMES = { learningRate = "rate", minimumRate = "minimum_rate", beta1 = "beta1", beta2 = "beta2", epsilon = "eps",
                weightDecay = "weight_decay", clipNorm = "clip_norm", schedule = "schedule", warmup = "warmup_steps",
                totalSteps = "total_steps", accumulate = "micro_steps", seed = "seed" }

-- optim.adamw{learningRate = 3e-4, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weightDecay = 0.1, clipNorm = 1.0,
-- accumulate = 1, seed = 0} and one of the schedules below merged in by optim.with.
function optim.adamw(settings)
  local options = {}
  for key, value in pairs(settings or {}) do
    if not NAMES[key] then
      local known = {}
      for name in pairs(NAMES) do known[#known + 1] = name end
      table.sort(known)
      error(("unknown setting '%s' (known: %s)"):format(tostring(key), table.concat(known, " ")), 2)
    end
    options[NAMES[key]] = value
  end
  return options
end

-- Schedules: pure functions of the step, given as options to be merged.
function optim.constant(warmup) return { schedule = "constant", warmup_steps = warmup or 0 } end
function optim.cosine(total, warmup, minimum)
  return { schedule = "cosine", total_steps = total, warmup_steps = warmup or 0, minimum_rate = minimum or 0 }
end
function optim.linear(total, warmup, minimum)
  return { schedule = "linear", total_steps = total, warmup_steps = warmup or 0, minimum_rate = minimum or 0 }
end

-- The settings of `options` and of all that follow, the last one winning.
function optim.with(options, ...)
  local merged = {}
  for _, each in ipairs { options, ... } do
    for key, value in pairs(each) do merged[key] = value end
  end
  return merged
end

return optim
