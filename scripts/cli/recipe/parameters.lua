-- Parameters by patterns of their names, in which * stands for any text and ? for one character: which of them are
-- frozen, and what they are stored as (--format).
local fail = require "cli.base.fail"
local unicode = require "cli.base.unicode"

local parameters = {}
local SHOWN = 6  -- names in a message

-- A pattern as names have it: `h.` at its beginning stands for what the recipe calls its blocks.
local function named(recipe, pattern)
  local rest = recipe.blocks and pattern:match("^h%.(.*)$")
  return rest and recipe.blocks .. rest or pattern
end

-- The Lua pattern of one of ours.
function parameters.pattern(text)
  return "^" .. text:gsub("[^%w_]", "%%%0"):gsub("%%%*", ".*"):gsub("%%%?", ".") .. "$"
end

parameters.named = named

local GRAPHS = { model = true, generator = true, predictor = true, texts = true, sums = true }

-- Calls a part of a recipe, as guarded(path, fn, ...) does. prepare(recipe, guarded, o, graph, trains) has a graph
-- first that the part is to build. Its parameters whose names match what the recipe's `frozen` says are not trained.
function parameters.call(recipe, part, guarded, prepare, o, graph, ...)
  if GRAPHS[part] then prepare(recipe, guarded, o, graph, part == "model" and ... ~= "evaluation") end
  local text = GRAPHS[part] and recipe.frozen and recipe.frozen(o) or ""
  if text == "" then return guarded(recipe.path, recipe[part], o, graph, ...) end
  local pattern, add, own = parameters.pattern(named(recipe, text)), graph.parameter, rawget(graph, "parameter")
  local names, found = {}, false
  function graph.parameter(self, name, dims, given)
    names[#names + 1] = name
    if not name:find(pattern) then return add(self, name, dims, given) end
    found = true
    local copy = { frozen = true }
    for key, value in pairs(given or {}) do copy[key] = value end
    return add(self, name, dims, copy)
  end
  local ends = guarded(recipe.path, recipe[part], o, graph, ...)
  rawset(graph, "parameter", own)
  if not found then
    fail.input(("frozen=%s matches no parameter; there are %s%s"):format(unicode.shown(text),
      table.concat(names, ", ", 1, math.min(SHOWN, #names)),
      #names > SHOWN and (" and %d more"):format(#names - SHOWN) or ""))
  end
  return ends
end

-- Format rules from options of a command; those without a pattern are for cli.recipe.formats. nil: none were given.
function parameters.formats(recipe, options)
  if not options.format then return nil end
  local rules = {}
  for i, rule in ipairs(options.format) do
    rules[i] = { pattern = rule.pattern and named(recipe, rule.pattern), format = rule.format }
  end
  return rules
end

-- Rules as one text, which checkpoints hold, and as --format is given: "none" without any.
function parameters.text(rules)
  local list = {}
  for i, rule in ipairs(rules or {}) do list[i] = rule.pattern .. "=" .. rule.format end
  return #list > 0 and table.concat(list, "; ") or "none"
end

-- The rules of a checkpoint's run; nil: it had none. A pattern may have a '=', and a name a ';'.
function parameters.of(opened)
  local rules = {}
  for text in (opened.text("formats") or ""):gmatch("[^\n]+") do
    local pattern, format = text:match("^(.*)=([^=]*)$")
    if not pattern then
      fail.input(("%s is damaged: its format rule '%s' has no '='"):format(opened.directory, unicode.shown(text)))
    end
    rules[#rules + 1] = { pattern = pattern, format = format }
  end
  return #rules > 0 and rules or nil
end

-- For a checkpoint; nil: none.
function parameters.metadata(rules)
  if not rules then return nil end
  local lines = {}
  for i, rule in ipairs(rules) do lines[i] = rule.pattern .. "=" .. rule.format end
  return table.concat(lines, "\n")
end

return parameters
