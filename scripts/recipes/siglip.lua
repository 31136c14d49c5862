-- SigLIP (Zhai et al., 2023): learns which picture and which text belong together, each pair of the micro-batch by
-- itself.
local nn = require("cairn").nn
local two_towers = require "families.parts.two_towers"

return two_towers.recipe("siglip", function() return nn.SigLIPCriterion() end)
