-- Modules, criterions and a trainer, by the names that people of Torch7 know.
local nn = {}
for _, part in ipairs { "layers", "containers", "segments", "criterions", "trainer" } do
  for name, value in pairs(require("cairn.nn." .. part)) do nn[name] = value end
end
-- For modules of one's own: nn.define(kind, construct(self, ...), build(self, context, x)) returns a constructor.
local module = require "cairn.nn.module"
nn.define = module.define
-- For graphs with inputs and outputs of one's own: module:build(nn.context(graph, training), x) returns the output.
nn.context = module.context
-- What all modules are; nn.is(object): whether it is one.
nn.Module, nn.is = module.Module, module.is

-- Torch7's names that have another form here say which.
local torch = require "cairn.nn.torch"
return setmetatable(nn, { __index = function(_, name)
  local remedy = torch.modules[name]
  if remedy then error(("cairn.nn has no '%s': %s"):format(name, remedy), 2) end
end })
