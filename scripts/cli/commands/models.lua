-- cairn models: the families of models whose directories may stand in a recipe's place.
local args = require "cli.base.args"
local config = require "families.parts.config"
local fail = require "cli.base.fail"
local format = require "cli.base.format"
local json = require "cli.base.json"

local USAGE = "cairn models [FAMILY ...] [--json]"
local KNOWN = args.known("json quiet", {
  json = { args.FLAG, "one JSON object on stdout: models, an array of model_type, models, recipe, keys " ..
    "(of config.json)" },
})

-- Keys of config.json that a family reads or knows, sorted, as the file spells them.
local function keys_of(family)
  local spelled, keys = {}, {}
  for theirs, ours in pairs(family.spelled or {}) do spelled[ours] = theirs end
  for _, key in ipairs(config.keys(family)) do keys[#keys + 1] = spelled[key] or key end
  table.sort(keys)
  return keys
end

local function rows()
  local list = {}
  for _, name in ipairs(config.families()) do
    local family = require("families." .. name)
    list[#list + 1] = { name = name, words = family.words, recipe = family.recipe, keys = keys_of(family) }
  end
  for name, wrapper in pairs(config.WRAPPERS) do
    local inner = require("families." .. wrapper.family)
    list[#list + 1] = { name = name, words = inner.words .. ", as text_config; its pictures are left out",
                        keys = { "text_config", "tie_word_embeddings" } }
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

return function(arguments)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE)
  if not options then return 0 end
  if #settings > 0 then fail.usage("usage: " .. USAGE) end
  local wanted, list = {}, {}
  for _, word in ipairs(words) do wanted[word] = true end
  for _, row in ipairs(rows()) do
    if #words == 0 or wanted[row.name] then
      list[#list + 1], wanted[row.name] = row, nil
    end
  end
  local missing = next(wanted)
  if missing then config.family(missing, "cairn models") end
  if options.json then
    for i, row in ipairs(list) do
      list[i] = json.object { { "model_type", row.name }, { "models", row.words },
                              { "recipe", row.recipe or "decoder" }, { "keys", json.array(row.keys) } }
    end
    io.stdout:write(json.encode(json.object { { "models", json.array(list) } }), "\n")
    return 0
  end
  local columns = format.columns(1)
  for _, row in ipairs(list) do
    io.stdout:write(("%-13s %s\n"):format(row.name, row.words))
    if #words > 0 then
      io.stdout:write("  ", format.wrapped("config.json: " .. table.concat(row.keys, " "), columns, 2, 2), "\n")
    end
  end
  return 0
end
