-- The adapters of a run, as its checkpoints tell of them (metadata `adapter`: see cli.recipe.adapters), and what of the
-- model is trained besides.
local bundle = require "cli.checkpoint.bundle"
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"

local of_run = {}

-- {r, alpha, dropout, rslora, dora, pissa, ..., modules (rows {module, kind, rank, alpha, scale, dora, a, b, magnitude,
-- weight}), graph, names, saved (parameters that are trained as they are)}; nil: the run has none.
function of_run.read(opened)
  local text = opened.text("adapter")
  if not text then return nil end
  local ok, self = pcall(decode, text)
  if not ok or type(self) ~= "table" or type(self.modules) ~= "table" then
    fail.input(("%s is damaged: what it says of its adapters is no JSON with modules"):format(opened.directory))
  end
  self.graph = fail.check(opened.directory, opened.checkpoint:graph())
  self.names = bundle.is_in(opened) and bundle.names(opened, self.graph) or {}
  local parts = {}
  for i, row in ipairs(self.modules) do
    for _, key in ipairs { "a", "b", "weight", "magnitude" } do
      local name = row[key]
      local info = type(name) == "string" and self.graph:info(name)
      if name and (not info or info.kind ~= "parameter") or not name and key ~= "magnitude" then
        fail.input(("%s is damaged: its adapter %d has no parameter for %s"):format(opened.directory, i, key))
      end
      if name and key ~= "weight" then parts[name] = true end
    end
    if type(row.scale) ~= "number" then fail.input(opened.directory .. " is damaged: an adapter has no scale") end
  end
  self.saved = {}
  for _, info in ipairs(self.graph:parameters()) do
    if not info.frozen and not parts[info.name] then self.saved[#self.saved + 1] = info.name end
  end
  return self
end

return of_run
