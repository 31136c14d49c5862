-- CLIP: a tower of patches and a causal tower of tokens.
local two_towers = require "families.parts.towers_config"

return {
  words = "CLIP: which picture and which text belong together",
  recipe = "clip", of_pictures = true, learned = true,
  defaults = { text_config = two_towers.NONE, vision_config = two_towers.NONE, projection_dim = 512,
               logit_scale_init_value = 2.6592 },
  fixed = { initializer_factor = "any" },
  shape = function(c, a) two_towers.shape(c, a, "clip") end,
}
