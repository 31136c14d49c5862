-- Optimizer and schedule settings by Torch7's keys: options for cairn.plan and cairn.stepper (optim.split).
local hypers = require "cairn.hypers"

local optim = {}

local NAMES = { learningRate = "rate", minimumRate = "minimum_rate", otherwiseRate = "otherwise_rate",
                clipNorm = "clip_norm", schedule = "schedule", warmup = "warmup_steps", totalSteps = "total_steps",
                accumulate = "micro_steps", seed = "seed" }
local HYPERS = {}

local function options_of(optimizer, settings)
  local options = { optimizer = optimizer }
  if settings ~= nil and type(settings) ~= "table" then
    error(("settings of an optimizer expected, got a %s: updates are the trainer's (nn.Trainer { optim = optim.sgd " ..
      "{ learningRate = 0.1 }, ... }), which calls no function for losses and gradients"):format(type(settings)), 2)
  end
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

-- Of each optimizer of cairn.optimizers() a function: optim.adamw{learningRate = 3e-4, weightDecay = 0.1,
-- clipNorm = 1.0, accumulate = 1, seed = 0}. Hyper-parameters are written as Torch7 writes them: weight_decay as
-- weightDecay, eps as epsilon. otherwiseRate: of the parameters that the optimizer leaves to another, where it is not
-- learningRate.
for i, row in ipairs(hypers.optimizers()) do
  for _, hyper in ipairs(row.hypers) do
    local name = hyper.name:gsub("%f[%a]eps$", "epsilon"):gsub("_(%l)", string.upper)
    if hyper.name ~= "rate_scale" then NAMES[name], HYPERS[hyper.name] = hyper.name, true end
  end
  local named = i > 1 and row.name or nil  -- a plan's own is the first
  optim[row.name] = function(settings) return options_of(named, settings) end
end

-- The group of the parameters that an optimizer leaves to another; nil: it takes all.
function optim.rest(optimizer)
  for _, row in ipairs(hypers.optimizers()) do
    if row.name == optimizer then return row.otherwise and "/" .. row.otherwise end
  end
end

-- Adds to hyper-parameters of cairn.plan that parameters which an optimizer leaves to another have `scale` times the
-- rate: those of the model, and those of each of `groups` (rows of cairn.plan; optional) with that optimizer, times the
-- group's own rate_scale.
function optim.scale_rests(hypers_of_plan, optimizer, scale, groups)
  local rest, rows, rests = optim.rest(optimizer), { { pattern = "" } }, {}
  for _, group in ipairs(type(groups) == "table" and groups or {}) do
    -- What is no group is refused where groups are taken.
    if type(group) == "table" and type(group.pattern) == "string" then rows[#rows + 1] = group end
  end
  for _, row in ipairs(rows) do rests[row.pattern .. rest] = true end
  for _, row in ipairs(rows) do
    if (row.optimizer or optimizer) == optimizer and not rests[row.pattern] then
      hypers_of_plan[row.pattern .. rest] = { rate_scale = scale * (tonumber(row.rate_scale) or 1) }
    end
  end
end

-- What of these options the plan takes (optimizer, hypers), and what the stepper. groups: the plan's (optional).
function optim.split(options, groups)
  local plan, stepper = { optimizer = options.optimizer, hypers = {} }, {}
  for key, value in pairs(options) do
    if HYPERS[key] then
      plan.hypers[key] = value
    elseif key == "otherwise_rate" then
      local group = optim.rest(options.optimizer)
      if not group then error(("%s takes all parameters: otherwiseRate is of none"):format(options.optimizer), 2) end
      if not (options.rate and options.rate > 0) then error("otherwiseRate goes with a learningRate above 0", 2) end
      optim.scale_rests(plan.hypers, options.optimizer, value / options.rate, groups)
    elseif key ~= "optimizer" then
      stepper[key] = value
    end
  end
  return plan, stepper
end

-- Schedules: pure functions of the step, given as options to be merged. settings: total, warmup, minimum, and the
-- schedule's own parameters, which cairn.schedules() lists: optim.schedule("onecycle", { total = 9, pct_start = 0.2 }).
function optim.schedule(name, settings)
  local stage, options = { name }, { total_steps = 0, warmup_steps = 0, minimum_rate = 0 }
  local fields = { total = "total_steps", warmup = "warmup_steps", minimum = "minimum_rate" }
  for key, value in pairs(settings or {}) do
    if fields[key] then options[fields[key]] = value else stage[key] = value end
  end
  options.schedule = stage
  return options
end
-- Several, one after the other: { "linear", steps = 100, start_factor = 0.1 }, { "cosine" }; settings as above.
function optim.joined(stages, settings)
  local options = optim.schedule("constant", settings)
  options.schedule = stages
  return options
end
-- A rate for batches of `batch` samples that was found with `base` of them: "linear" or "sqrt".
local SCALES = { linear = function(x) return x end, sqrt = math.sqrt }
function optim.scaled(rate, rule, batch, base)
  local scale = SCALES[rule] or error(("unknown rule '%s' (known: linear sqrt)"):format(tostring(rule)), 2)
  if not (batch > 0 and base > 0) then error("batch and base must be above 0", 2) end
  return rate * scale(batch / base)
end
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
  for _, each in ipairs { options or {}, ... } do
    for key, value in pairs(each) do merged[key] = value end
  end
  return merged
end

return optim
