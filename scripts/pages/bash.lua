-- Completion for bash: options, their values, recipes and their options. It needs nothing but bash itself.
local words = require "pages.words"

local HEAD = [[
# bash completion for cairn. Made from the tables of the command's options. Do not edit.
]]

local BODY = [==[
# The recipe among the words given, if it is one that comes with cairn.
_cairn_recipe() {
  local word
  for word in "${COMP_WORDS[@]:2}"; do
    [ -z "$(_cairn_recipe_options "$word")" ] || { echo "$word"; return; }
  done
}

_cairn_paths() {  # -f files, -d directories; a name may have blanks
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$1" -- "$current")
}

_cairn() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} key='' values
  COMPREPLY=()
  if [ "$COMP_CWORD" -le 1 ]; then
    COMPREPLY=($(compgen -W "$(_cairn_commands) --help --version" -- "$current"))
    return
  fi
  # bash takes '=' for a word of its own.
  if [ "$current" = = ]; then
    key=$before current=''
  elif [ "$before" = = ]; then
    key=${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ $before == --* ]]; then
    key=$before
  fi
  if [ -n "$key" ]; then
    if [[ $key == --* ]]; then
      values=$(_cairn_values "$command" "$key")
    else
      values=$(_cairn_recipe_values "$(_cairn_recipe)" "$key")
      [ -n "$values" ] || values=@file
    fi
    case $values in
      @flag) ;;
      @file) _cairn_paths -f; return ;;
      @file\ *)
        _cairn_paths -f
        COMPREPLY=($(compgen -W "${values#@file }" -- "$current") "${COMPREPLY[@]}")
        return
        ;;
      @directory) _cairn_paths -d; return ;;
      *) COMPREPLY=($(compgen -W "$values" -- "$current")); return ;;
    esac
  fi
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$(_cairn_options "$command")" -- "$current"))
    return
  fi
  case $(_cairn_operand "$command") in
    recipe)
      local recipe=$(_cairn_recipe)
      if [ -n "$recipe" ] && [ "$recipe" != "$current" ]; then
        compopt -o nospace 2>/dev/null
        COMPREPLY=($(compgen -W "$(_cairn_recipe_options "$recipe")" -- "$current"))
      else
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -W "$(_cairn_recipes)" -- "$current") $(compgen -d -- "$current")
                   $(compgen -f -X '!*.lua' -- "$current"))
      fi
      ;;
    op) COMPREPLY=($(compgen -W "$(_cairn_ops)" -- "$current")) ;;
    file | directory) _cairn_paths -f ;;
  esac
}

complete -F _cairn cairn
]==]

local function case(lines, pattern, text)
  lines[#lines + 1] = ("    %s) echo %s ;;"):format(pattern, words.quoted(text))
end

-- A function that says one of several texts.
local function chooser(name, subject, fill, otherwise)
  local lines = { name .. "() {", ("  case %s in"):format(subject) }
  fill(lines)
  if otherwise then lines[#lines + 1] = ("    *) echo %s ;;"):format(words.quoted(otherwise)) end
  lines[#lines + 1] = "  esac\n}"
  return table.concat(lines, "\n")
end

local function constant(name, text) return ("%s() { echo %s; }"):format(name, words.quoted(text)) end

return function(all)
  local parts = { HEAD, constant("_cairn_commands", words.names(all.commands)),
                  constant("_cairn_recipes", words.names(all.recipes)), constant("_cairn_ops", words.names(all.ops)) }
  parts[#parts + 1] = chooser("_cairn_operand", "$1", function(lines)
    for _, command in ipairs(all.commands) do
      if command.operand then case(lines, command.name, command.operand) end
    end
  end)
  parts[#parts + 1] = chooser("_cairn_options", "$1", function(lines)
    for _, command in ipairs(all.commands) do case(lines, command.name, words.names(command.options, "--")) end
  end)
  parts[#parts + 1] = chooser("_cairn_values", "$1:$2", function(lines)
    for _, command in ipairs(all.commands) do
      for _, option in ipairs(command.options) do
        local path, list = words.path(option), option.words and table.concat(option.words, " ")
        local text = option.flag and "@flag" or path and list and ("@%s %s"):format(path, list) or list
          or path and "@" .. path
        if text then case(lines, ("%s:--%s"):format(command.name, option.name), text) end
      end
    end
  end)
  parts[#parts + 1] = chooser("_cairn_recipe_options", "$1", function(lines)
    for _, recipe in ipairs(all.recipes) do case(lines, recipe.name, words.names(recipe.options, "", "=")) end
  end)
  parts[#parts + 1] = chooser("_cairn_recipe_values", "$1:$2", function(lines)
    for _, recipe in ipairs(all.recipes) do
      for _, option in ipairs(recipe.options) do
        if option.words then
          case(lines, ("%s:%s"):format(recipe.name, option.name), table.concat(option.words, " "))
        end
      end
    end
  end)
  parts[#parts + 1] = BODY
  return table.concat(parts, "\n")
end
