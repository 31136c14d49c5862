-- ConvNeXt: blocks of a depthwise convolution and two layers on each pixel.
local architecture = require "families.parts.architecture"
local stages = require "families.parts.stages"

return {
  words = "ConvNeXt: classes of pictures",
  recipe = "convnext", of_pictures = true, learned = true,
  defaults = {
    num_channels = 3, patch_size = 4, hidden_sizes = { 96, 192, 384, 768 }, depths = { 3, 3, 9, 3 },
    hidden_act = "gelu", layer_norm_eps = 1e-12, layer_scale_init_value = 1e-6, image_size = 224,
  },
  fixed = { num_stages = "any", drop_path_rate = "any", stage_names = "any", out_features = "any",
            out_indices = "any" },
  shape = function(c, a)
    stages.check(c, { "hidden_sizes", "depths" }, a.where)
    a.widths, a.depths, a.patch, a.last_eps = c.hidden_sizes, c.depths, c.patch_size, c.layer_norm_eps
    a.activation, a.layer_scale = architecture.activation(c.hidden_act, a.where), c.layer_scale_init_value
  end,
}
