-- What a run's recipe says of its model in the terms of Transformers: the config.json of what is exported.
local checkpoints = require "cli.checkpoint.checkpoints"
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"

local config = {}

-- A table or a text of JSON; the checkpoint's own words, where it has some. Or nil, and why there is none.
function config.find(opened, root, options)
  local text = opened.text("hf_config")
  if text then return text end
  local recipe = checkpoints.recipe(opened, root, options.recipe, options.recipe_changed, function(message)
    if not options.quiet then io.stderr:write(message, "\n") end
  end)
  if not recipe.hf_config then
    return nil, ("%s: its recipe says nothing of a config.json (no `hf_config`)"):format(opened.directory)
  end
  return recipe.call("hf_config", checkpoints.options(opened, recipe))
end

-- The same as an object; empty where nothing is known.
function config.object(opened, root, options)
  local found = config.find(opened, root, options)
  if type(found) == "string" then found = decode(found) end
  if found ~= nil and type(found) ~= "table" then
    fail.input(opened.directory .. " is damaged: hf_config is no object")
  end
  return found or {}
end

return config
