-- Option values that a recipe's `settle` fills in from the data: a run keeps them, so that they are found out once.
local fail = require "cli.base.fail"
local sources = require "cli.data.sources"

local MOST_BYTES = 2 ^ 20  -- of one value in a checkpoint

-- Completes the option values of a recipe that has been loaded.
return function(recipe, values)
  local found = recipe.settle and recipe.call("settle", values, sources.add { note = function() end,
    directory = recipe.directory and recipe.directory.path })
  for name, value in pairs(found or {}) do
    if values[name] == nil then
      fail.input(("%s: settle returned '%s', which is no option"):format(recipe.path, tostring(name)))
    end
    if type(value) ~= type(values[name]) then
      fail.input(("%s: settle returned a %s for '%s', a %s"):format(recipe.path, type(value), name,
        type(values[name])))
    end
    if type(value) == "string" and #value > MOST_BYTES then
      fail.input(("%s: %s, which checkpoints keep, takes %d bytes for these data; at most %d: leave columns or " ..
        "labels out"):format(recipe.name, name, #value, MOST_BYTES))
    end
    values[name] = value
  end
end
