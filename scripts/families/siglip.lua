-- SigLIP: a tower of patches, pooled by a learned query, and a tower of tokens, read at the last one.
local two_towers = require "families.parts.towers_config"

return {
  words = "SigLIP: which picture and which text belong together",
  recipe = "siglip", of_pictures = true, learned = true,
  defaults = { text_config = two_towers.NONE, vision_config = two_towers.NONE },
  fixed = { initializer_factor = "any" },
  shape = function(c, a) two_towers.shape(c, a, "siglip") end,
}
