-- Completion for fish.
local words = require "pages.words"

local function quoted(text) return "'" .. text:gsub("\\", "\\\\"):gsub("'", "\\'") .. "'" end

local HEAD = [[
# fish completion for cairn. Made from the tables of the command's options. Do not edit.

# Whether a recipe that comes with cairn was named: this one, or with no argument any.
function __cairn_has_recipe
  for word in (commandline -opc)[3..-1]
    if contains -- $word $argv
      return 0
    end
  end
  return 1
end

complete -c cairn -f
complete -c cairn -n __fish_use_subcommand -l help -d 'prints the commands'
complete -c cairn -n __fish_use_subcommand -l version -d 'prints the version of the library in use'
]]

return function(all)
  local lines = { HEAD }
  local function add(...) lines[#lines + 1] = (...):format(select(2, ...)) end
  local with_recipe = {}
  local recipes = words.names(all.recipes)
  for _, command in ipairs(all.commands) do
    local seen = ("__fish_seen_subcommand_from %s"):format(command.name)
    add("complete -c cairn -n __fish_use_subcommand -a %s -d %s", command.name, quoted(command.summary))
    for _, option in ipairs(command.options) do
      local path = words.path(option)
      local value = option.flag and "" or path and " -r -F" or " -x"
      if option.words then value = value .. " -a " .. quoted(table.concat(option.words, " ")) end
      add("complete -c cairn -n %s -l %s%s -d %s", quoted(seen), option.name, value, quoted(option.help))
    end
    if command.operand == "recipe" then
      with_recipe[#with_recipe + 1] = command.name
      add("complete -c cairn -n %s -F -a %s -d 'a recipe that comes with cairn'",
        quoted(("%s; and not __cairn_has_recipe %s"):format(seen, recipes)), quoted(recipes))
    elseif command.operand == "op" then
      add("complete -c cairn -n %s -a %s", quoted(seen), quoted(words.names(all.ops)))
    elseif command.operand then
      add("complete -c cairn -n %s -F", quoted(seen))
    end
  end
  local of_recipes = ("__fish_seen_subcommand_from %s"):format(table.concat(with_recipe, " "))
  for _, recipe in ipairs(all.recipes) do
    local here = quoted(("%s; and __cairn_has_recipe %s"):format(of_recipes, recipe.name))
    for _, option in ipairs(recipe.options) do
      local values = option.words or { "" }
      local list = {}
      for i, value in ipairs(values) do list[i] = option.name .. "=" .. value end
      add("complete -c cairn -n %s -a %s -d %s", here, quoted(table.concat(list, " ")), quoted(option.help))
    end
  end
  return table.concat(lines, "\n") .. "\n"
end
