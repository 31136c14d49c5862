-- What a plan is of, as the lines that stand below the title of its page: options, device, where its seconds come from.
local cairn = require "cairn"
local fail = require "cli.base.fail"
local format = require "cli.base.format"
local parameters = require "cli.recipe.parameters"
local precision = require "cli.recipe.precision"
local rates = require "cli.plan.rates"
local recipes = require "cli.recipe.load"
local summary = require "cli.plan.summary"

-- Of the options that every recipe has, dozens, those that say how any run was trained; others where they differ.
local LONGEST = 256  -- characters of a value, beyond which it is a file's text
local ALWAYS = { rate = true, schedule = true, optimizer = true }

local function settings(recipe, o)
  local words = { recipe.name }
  for _, row in ipairs(recipe.rows) do
    local value = o[row[1]]
    local plain = recipe.common[row[1]] and not ALWAYS[row[1]] and value == row[2]
    local text = value ~= nil and recipes.value_text(value) or ""
    if text ~= "" and #text <= LONGEST and not plain then
      words[#words + 1] = ("%s=%s"):format(row[1], text)
    end
  end
  return table.concat(words, " ")
end

local function device(options)
  local name = options.device or "cpu"
  if options.device_model then return ("%s, which need not be there"):format(options.device_model) end
  for _, found in ipairs(fail.check("devices", cairn.devices())) do
    if found.name == name then
      return ("%s, %s%s"):format(name, found.description,
        options.threads and (", of which %d are used"):format(options.threads) or "")
    end
  end
  return name
end

local function seconds(options, plan)
  if options.device_model then return ("the device model %s, by the work of each op"):format(options.device_model) end
  if options.profile then
    return ("measured for %d of %d ops (%s), by their work for others"):format(
      plan.counters.measured_ops, plan.op_count, options.profile)
  end
  if plan.rates.source == "model" then return "an analytic guide: nothing was measured (cairn profile does that)" end
  return "by the rates of this machine, " .. rates.line(plan.rates)
end

local function wishes(options)
  local budget = options.budget or {}
  local words = { budget.bytes and ("budget %s bytes"):format(format.count(budget.bytes))
                  or budget.share and ("budget %g%%"):format(100 * budget.share) or "no budget" }
  words[#words + 1] = "policy " .. (options.policy or "auto")
  for _, row in ipairs(options.region or {}) do
    words[#words + 1] = ("regions %s %s"):format(row.pattern, row.policy)
  end
  words[#words + 1] = "tiers " .. (options.tiers or "none given")
  words[#words + 1] = "mixed precision " .. (options.amp or "off")
  if options.amp_rules then words[#words + 1] = "precision by rule " .. precision.text(options.amp_rules) end
  if options.formats then words[#words + 1] = "parameters stored as " .. parameters.text(options.formats) end
  if options.fuse_update then words[#words + 1] = "update inside backward" end
  return table.concat(words, ", ")
end

-- Title and facts for plan:render. plan: its summary; micro_steps: micro-batches of a step.
return function(title, recipe, o, options, plan, micro_steps)
  local step = summary.step_seconds(plan, plan.predicted_seconds, micro_steps)
  return table.concat({
    title,
    "model: " .. settings(recipe, o),
    "plan: " .. wishes(options),
    "device: " .. device(options),
    "seconds: " .. seconds(options, plan),
    ("step: %s predicted for %d micro-batch%s, each one forward and backward, and the update"):format(
      format.seconds(step), micro_steps, micro_steps == 1 and "" or "es"),
    "counters: " .. summary.counters_text(plan),
  }, "\n")
end
