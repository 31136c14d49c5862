-- Names of tensors in files of weights beside those of the recipe.
local renames = {}

-- How the names of a file may differ from the recipe's: of the body alone, or of a model with other parts around it.
renames.LIST = {
  function(name) return name end,
  function(name) return "transformer." .. name end,
  function(name) return (name:gsub("^model%.", "")) end,
  function(name) return "language_model." .. name end,
  function(name) return (name:gsub("^model%.", "model.language_model.")) end,
  function(name) return (name:gsub("^bert%.", "")) end,
  function(name) return (name:gsub("LayerNorm%.weight$", "LayerNorm.gamma")
                             :gsub("LayerNorm%.bias$", "LayerNorm.beta")) end,
}
-- And back: what the recipe may call a tensor of a file.
function renames.plain(name, rename)
  local list = {}
  for _, plain in ipairs { name, (name:gsub("^transformer%.", "")), "model." .. name,
                           "bert." .. name, (name:gsub("^language_model%.", "")),
                           (name:gsub("^model%.language_model%.", "model.")) } do
    if rename(plain) == name then list[#list + 1] = plain end
  end
  return list
end

-- The one that finds most of what the model needs: rows {theirs}.
function renames.pick(rows, tensors)
  local best, most
  for _, rename in ipairs(renames.LIST) do
    local found = 0
    for _, row in ipairs(rows) do found = found + (tensors[rename(row.theirs)] and 1 or 0) end
    if not most or found > most then best, most = rename, found end
  end
  return best
end

return renames
