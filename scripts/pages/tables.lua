-- What manual pages and completions are made of: the tables that --help prints, asked of each command as it stands.
local args = require "cli.base.args"
local cairn = require "cairn"
local commands = require "cli.commands"
local recipes = require "cli.recipe.load"

local tables = {}

-- The options and the usage line that a command gives to args.parse, as its first act.
local function asked(name, root)
  local known, usage
  local parse = args.parse
  args.parse = function(_, options, line)
    known, usage = options, line
    return nil
  end
  local ok, problem = pcall(require("cli.commands." .. name), { "--help" }, root)
  args.parse = parse
  if not ok or not usage then
    error(("scripts/cli/commands/%s.lua does not begin with args.parse: %s"):format(name, tostring(problem)), 0)
  end
  return known, usage
end

-- `names`: of a row whose value may be one of these, which stand in files of cairn's own, or a path.
local function option(name, row, root)
  local flag = row[1] == args.FLAG
  return { name = name, flag = flag, value = not flag and (row[3] or "VALUE") or nil, help = row[2],
           words = row.words or row.names and row.names(root) or args.WORDS[row[1]] }
end

local function options_of(known, root)
  local list = { { name = "help", flag = true, help = "prints the options, and those of a recipe that is named" } }
  for name, row in pairs(known) do
    if not row.elsewhere then list[#list + 1] = option(name, row, root) end
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

-- Rows { name, operands, summary, operand, usage, options } in the order of `cairn --help`. Only `lua` has no options
-- of its own: what follows its file is the program's.
function tables.commands(root)
  local list = {}
  for i, row in ipairs(commands) do
    local command = { name = row[1], operands = row[2], summary = row[3], operand = row.operand, options = {},
                      usage = ("cairn %s %s"):format(row[1], row[2]) }
    if row[1] ~= "lua" then
      local known
      known, command.usage = asked(row[1], root)
      command.options = options_of(known, root)
    end
    list[i] = command
  end
  return list
end

-- Rows { name, options = { { name, default, help, words } } } of the recipes that come with cairn.
function tables.recipes(root)
  local list = {}
  local names = {}
  for name in recipes.known(root):gmatch("%S+") do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    local options = {}
    for k, row in ipairs(recipes.load(name, root).rows) do
      options[k] = { name = row[1], default = recipes.shown_default(row), help = recipes.words(row),
                     words = recipes.choices(row) }
      if type(row[2]) == "boolean" then options[k].words = { "true", "false" } end
    end
    list[i] = { name = name, options = options }
  end
  return list
end

function tables.ops()
  local names = {}
  for i, row in ipairs(cairn.ops()) do names[i] = row.name end
  table.sort(names)
  return names
end

return tables
