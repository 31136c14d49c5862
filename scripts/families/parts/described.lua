-- What recipes of models that a config.json describes share: how options lead to the architecture.
local architecture = require "families.parts.architecture"
local changed = require "cli.base.changed"
local fail = require "cli.base.fail"
local files = require "cli.base.files"

local MOST_BYTES = 2 ^ 20  -- of a config, which checkpoints keep

local described = {
  MODEL = { "model", "", "config.json of the model, or its text: which family, and how large" },
  TIED = { "tied", "auto", "the head is the token table; auto: as config.json says",
           choices = { "auto", "true", "false" } },
  MODEL_NAME = { "model_name", "", "what messages call the model's config" },
}

-- A function from options to the architecture (families.parts.architecture), of the recipe with this name. add(a, o):
-- what more of it follows from options (optional).
function described.by(recipe, add)
  local made = {}  -- the last one, for it is asked for again and again
  return function(o)
    local key = ("%s %s %.17g %s"):format(o.model, o.tied, o.dropout, o.balance or "")
    if made.key ~= key then
      local a = architecture.of(o.model, o.model_name ~= "" and o.model_name or "model")
      architecture.check_recipe(a, recipe)
      if o.tied ~= "auto" then a.tied = o.tied == "true" end
      a.dropout = o.dropout
      if add then add(a, o) end
      made = { key = key, architecture = a }
    end
    return made.architecture
  end
end

-- The options that a config settles, and the architecture. A config is kept as its text.
function described.settled(o, architecture_of)
  if o.model == "" then
    fail.usage("model=config.json is needed, or a directory with that file in the recipe's place")
  end
  local text, name = o.model, o.model_name
  if not text:find("^%s*{") then
    text, name = files.read(text, "model", MOST_BYTES), text
  end
  local a = architecture_of(changed(o, { model = text, model_name = name }))
  return { model = text, model_name = name, vocab = o.vocab > 0 and o.vocab or a.vocab }, a
end

return described
