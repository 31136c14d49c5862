-- Mixed precision as the command line and a recipe ask for it: --amp, and the recipe's `amp_rules`.
local cairn = require "cairn"
local fail = require "cli.base.fail"
local json = require "cli.base.json"

-- LOSS_SCALE: options of every recipe that only --amp fp16 has a use for.
local precision = { LOSS_SCALE = {} }
for _, setting in ipairs(cairn.settings("stepper")) do
  if setting.name:find("^loss_scale") then table.insert(precision.LOSS_SCALE, setting.name) end
end

-- What cairn.plan takes as `amp`, from options of a command; options.amp_rules: what precision.rules makes.
function precision.of(options)
  local rules = options.amp_rules or {}
  if #rules == 0 then return options.amp end
  local list = { options.amp or "off" }
  for i, rule in ipairs(rules) do list[i + 1] = rule end
  return list
end

-- The rules of a recipe under these option values; nil: it has none.
function precision.rules(recipe, o) return recipe.amp_rules and recipe.call("amp_rules", o) end

-- Ends the command if its settings {key, text} are of the loss scale and there is none.
function precision.check(recipe, settings, amp)
  for _, setting in ipairs(settings) do
    for _, name in ipairs(amp == "fp16" and {} or precision.LOSS_SCALE) do
      if setting[1] == name and recipe.common[name] then
        fail.usage(("%s=%s counts with --amp fp16; here it is --amp %s"):format(name, setting[2], amp or "off"))
      end
    end
  end
end

local function words(rule)
  return (rule.op and ("op=%s "):format(rule.op) or "") .. (rule.region and ("region=%s "):format(rule.region) or "") ..
    "class=" .. rule.class
end

-- Of rules, as one text; "none" without any.
function precision.text(rules)
  local list = {}
  for i, rule in ipairs(rules or {}) do list[i] = words(rule) end
  return #list > 0 and table.concat(list, "; ") or "none"
end

-- By rule, how many ops of the plan's graph have their class from it.
local function counts(plan, rules)
  local list = {}
  for i = 1, #rules do list[i] = 0 end
  for _, op in ipairs(fail.check("plan", plan:ops())) do
    if op.amp_rule then list[op.amp_rule] = list[op.amp_rule] + 1 end
  end
  return list
end

-- What `cairn plan` says of it where there are rules: lines, and an object for --json.
function precision.lines(plan, options)
  local rules = options.amp_rules or {}
  if #rules == 0 then return "" end
  local lines = {}
  for i, count in ipairs(counts(plan, rules)) do
    lines[i] = ("%-17s %s: %d op%s\n"):format(i == 1 and "precision, " .. (options.amp or "off") or "", words(rules[i]),
      count, count == 1 and "" or "s")
  end
  return table.concat(lines)
end

function precision.json(plan, options)
  local rows = {}
  for i, count in ipairs(counts(plan, options.amp_rules)) do
    local rule = options.amp_rules[i]
    rows[i] = json.object { { "op", rule.op }, { "region", rule.region }, { "class", rule.class }, { "ops", count } }
  end
  return json.object { { "mode", options.amp or "off" }, { "rules", json.array(rows) } }
end

return precision
