-- Modules, criterions and a trainer, by the names that people of Torch7 know.
local nn = {}
for _, part in ipairs { "layers", "containers", "criterions", "trainer" } do
  for name, value in pairs(require("cairn.nn." .. part)) do nn[name] = value end
end
-- For modules of one's own: nn.define(kind, construct(self, ...), build(self, context, x)) returns a constructor.
nn.define = require("cairn.nn.module").define
return nn
