-- Hyper-parameters of optimizers as options of every recipe: names, ranges and defaults are the library's.
local cairn = require "cairn"
local check = require "cli.recipe.check"

-- NAMES: those that are options, each of the optimizers that have one of the name; and otherwise_rate, of those that
-- leave parameters to another. rows: options, with the default of the first optimizer that has it, and in the words all
-- that have it, with their defaults where these differ.
local hypers = { NAMES = {}, rows = {} }

-- No options: groups have rate_scale, and the others keep a division from 0.
local INNER = { rate_scale = true, eps = true, ns_eps = true }

local made, owners = {}, {}
for _, optimizer in ipairs(cairn.optimizers()) do
  for _, setting in ipairs(cairn.settings("optimizer", optimizer.name)) do
    local name = setting.name
    if not INNER[name] then
      if not made[name] then
        made[name], owners[name] = check.row(setting), {}
        hypers.rows[#hypers.rows + 1], hypers.NAMES[#hypers.NAMES + 1] = made[name], name
      end
      local same = setting.default == made[name][2]
      table.insert(owners[name], same and optimizer.name or ("%s: %s"):format(optimizer.name, setting.default))
    end
  end
end
for name, row in pairs(made) do row[3] = ("%s (%s)"):format(row[3], table.concat(owners[name], ", ")) end
hypers.NAMES[#hypers.NAMES + 1] = "otherwise_rate"

-- Those of NAMES that an optimizer has, or that of what it leaves, and their defaults.
function hypers.of(optimizer)
  local defaults, rows = {}, {}
  for _, row in ipairs(cairn.optimizers()) do rows[row.name] = row end
  local row = rows[optimizer]
  for _, each in ipairs { row or { hypers = {} }, row and rows[row.otherwise] } do
    for _, hyper in ipairs(each.hypers) do defaults[hyper.name] = defaults[hyper.name] or hyper.default end
  end
  if row and row.otherwise then defaults.otherwise_rate = 0 end
  local known = {}
  for _, name in ipairs(hypers.NAMES) do
    if defaults[name] then known[#known + 1] = name end
  end
  return known, defaults
end

-- Hyper-parameters that nobody stated are the optimizer's own; a recipe's are those of its optimizer.
function hypers.settle(self, values, by_name, stated)
  if values.optimizer == (self.training.optimizer or "adamw") then return end
  local _, defaults = hypers.of(values.optimizer)
  for _, name in ipairs(hypers.NAMES) do
    local default = defaults[name]
    if by_name[name] and not stated[name] and default then
      if type(values[name]) == "boolean" then default = default ~= 0 end
      values[name] = default
    end
  end
end

return hypers
