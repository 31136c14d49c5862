-- Modules, criterions and a trainer, by the names that people of Torch7 know.
local nn = {}
for _, part in ipairs { "layers", "spatial", "norms", "attention", "recurrent", "containers", "branches", "segments",
                       "criterions", "contrastive", "trainer" } do
  for name, value in pairs(require("cairn.nn." .. part)) do nn[name] = value end
end
-- For modules of one's own: nn.define(kind, construct(self, ...), build(self, context, x)) returns a constructor.
local module = require "cairn.nn.module"
nn.define = module.define
-- For graphs with inputs and outputs of one's own: module:build(nn.context(graph, training), x) returns the output.
nn.context = module.context
-- What all modules are; nn.is(object): whether it is one.
nn.Module, nn.is = module.Module, module.is

-- How parameters start, for modules' setting `init`: nn.init.xavierUniform(), ...
nn.init = require "cairn.nn.init"

-- Torch7's names that have another form here say which; a name that is nearly another is taken for a slip.
local nearest = require "cairn.nearest"
local torch = require "cairn.nn.torch"
return setmetatable(nn, { __index = function(_, name)
  local remedy = torch.modules[name]
  if remedy then error(("cairn.nn has no '%s': %s"):format(name, remedy), 2) end
  if type(name) ~= "string" then return nil end
  local known = {}
  for each in pairs(nn) do known[#known + 1] = each end
  for each in pairs(torch.modules) do known[#known + 1] = each end
  table.sort(known)
  local hint = nearest.hint(name, known)
  if hint ~= "" then error(("cairn.nn has no '%s'%s"):format(name, hint), 2) end
end })
