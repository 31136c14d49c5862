-- CLIP (Radford et al., 2021): learns which picture and which text belong together, each picture against all texts of
-- the micro-batch and each text against all pictures.
local nn = require("cairn").nn
local two_towers = require "families.parts.two_towers"

return two_towers.recipe("clip", function(measured) return nn.ContrastiveCriterion { accuracy = measured } end)
