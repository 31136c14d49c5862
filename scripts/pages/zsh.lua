-- Completion for zsh: a function for its completion system.
local words = require "pages.words"

local function described(name, help)  -- of _describe and _values
  return words.quoted(("%s:%s"):format(name, (help:gsub("\\", "\\\\"):gsub(":", "\\:"))))
end

-- The function that offers names and files, where an option takes both.
local function either(command, option)
  return ("_cairn_of_%s_%s"):format(command.name, (option.name:gsub("-", "_")))
end

-- One of _arguments: --name[help] or --name=[help]:what:action.
local function argument(command, option)
  local help = option.help:gsub("\\", "\\\\"):gsub("[%[%]:]", "\\%0")
  if option.flag then return words.quoted(("--%s[%s]"):format(option.name, help)) end
  local path = words.path(option)
  local action = option.words and (path and either(command, option) or ("(%s)"):format(table.concat(option.words, " ")))
    or path == "file" and "_files" or path == "directory" and "_files -/" or " "
  return words.quoted(("--%s=[%s]:%s:%s"):format(option.name, help, option.value:lower():gsub("[^%w]", " "), action))
end

local HEAD = [[
#compdef cairn
# zsh completion for cairn. Made from the tables of the command's options. Do not edit.
]]

local BODY = [==[

# What follows a recipe: its options, or their values after the =.
_cairn_recipe_words() {
  local recipe word
  for word in $words[2,-1]; do
    if (( ${+_cairn_recipes[(r)$word:*]} )) && [[ -n ${_cairn_recipes[(r)$word:*]} ]]; then recipe=$word; break; fi
  done
  if [[ -n $recipe && $recipe != $words[CURRENT] ]]; then
    if [[ $PREFIX == *=* ]]; then
      local key=${PREFIX%%=*}
      compset -P '*='
      local values=($(_cairn_values_of $recipe:$key))
      if (( $#values )); then compadd -- $values; else _files; fi
    else
      compadd -S '' -- $(_cairn_options_of $recipe)
    fi
  else
    _describe recipe _cairn_recipes
    _files -g '*.lua'
  fi
}

_cairn() {
  local curcontext="$curcontext" state line
  typeset -A opt_args
  _arguments -C '(- *)--help[prints the commands]' '(- *)--version[prints the version of the library in use]' \
    '1:command:->command' '*::argument:->arguments'
  case $state in
    command) _describe command _cairn_commands ;;
    arguments) (( $+functions[_cairn_of_$words[1]] )) && _cairn_of_$words[1] ;;
  esac
}
]==]

local OPERANDS = { recipe = "*:recipe:_cairn_recipe_words", file = "*:file:_files", directory = "*:directory:_files -/",
                   op = "*:op:($(_cairn_ops))" }

local function array(name, rows, help)
  local lines = { name .. "=(" }
  for _, row in ipairs(rows) do lines[#lines + 1] = "  " .. described(row.name, help(row)) end
  lines[#lines + 1] = ")"
  return table.concat(lines, "\n")
end

return function(all)
  local parts = { HEAD }
  parts[#parts + 1] = "local -a _cairn_commands _cairn_recipes"
  parts[#parts + 1] = array("_cairn_commands", all.commands, function(row) return row.summary end)
  parts[#parts + 1] = array("_cairn_recipes", all.recipes, function() return "a recipe that comes with cairn" end)
  local lines = { "_cairn_options_of() {", "  case $1 in" }
  for _, recipe in ipairs(all.recipes) do
    lines[#lines + 1] = ("    %s) echo %s ;;"):format(recipe.name, words.quoted(words.names(recipe.options, "", "=")))
  end
  lines[#lines + 1] = "  esac\n}\n_cairn_values_of() {\n  case $1 in"
  for _, recipe in ipairs(all.recipes) do
    for _, option in ipairs(recipe.options) do
      if option.words then
        lines[#lines + 1] = ("    %s:%s) echo %s ;;"):format(recipe.name, option.name,
          words.quoted(table.concat(option.words, " ")))
      end
    end
  end
  lines[#lines + 1] = "  esac\n}"
  parts[#parts + 1] = table.concat(lines, "\n")
  parts[#parts + 1] = ("_cairn_ops() { echo %s; }"):format(words.quoted(words.names(all.ops)))
  for _, command in ipairs(all.commands) do
    local arguments = {}
    for i, option in ipairs(command.options) do
      arguments[i] = "    " .. argument(command, option)
      if option.words and words.path(option) then
        parts[#parts + 1] = ("%s() {\n  compadd -- %s\n  _files\n}"):format(either(command, option),
          table.concat(option.words, " "))
      end
    end
    if command.operand then
      local operand = OPERANDS[command.operand]
      local text = command.operand == "op" and ('"%s"'):format(operand) or words.quoted(operand)
      arguments[#arguments + 1] = "    " .. text
    end
    parts[#parts + 1] = ("_cairn_of_%s() {\n  _arguments \\\n%s\n}"):format(command.name,
      table.concat(arguments, " \\\n"))
  end
  parts[#parts + 1] = BODY
  parts[#parts + 1] = '_cairn "$@"\n'
  return table.concat(parts, "\n")
end
