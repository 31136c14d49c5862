-- The kinds of data that recipes are given to make datasets of, beside running text.
local sources = {}

local KINDS = { labelled = "cli.data.labelled", columns = "cli.data.columns", pairs = "cli.data.pairs",
                instruction = "cli.instruct.dataset" }

-- Adds to `about`, what a recipe is given of a run, a table for each kind: labelled (texts with labels), columns (a
-- table with a column to predict), pairs (texts to read and to write) and instruction (conversations, prompts with
-- answers), each with dataset(o) and evaluation(o), and settle(o) where data say options.
function sources.add(about)
  for name, module in pairs(KINDS) do
    about[name] = {}
    for _, part in ipairs { "settle", "dataset", "evaluation" } do
      about[name][part] = function(o) return require(module)[part](o, about) end
    end
  end
  return about
end

return sources
