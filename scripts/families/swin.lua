-- Swin: a transformer over patches of a picture with attention in windows, which are shifted in every second block.
local architecture = require "families.parts.architecture"
local stages = require "families.parts.stages"

return {
  words = "Swin: classes of pictures",
  recipe = "swin", of_pictures = true, learned = true,
  defaults = {
    num_channels = 3, patch_size = 4, embed_dim = 96, depths = { 2, 2, 6, 2 }, num_heads = { 3, 6, 12, 24 },
    window_size = 7, mlp_ratio = 4, hidden_act = "gelu", layer_norm_eps = 1e-5, image_size = 224,
  },
  fixed = { qkv_bias = true, use_absolute_embeddings = false, path_norm = true, hidden_dropout_prob = "any",
            attention_probs_dropout_prob = "any", drop_path_rate = "any", encoder_stride = "any", num_layers = "any",
            hidden_size = "any", stage_names = "any", out_features = "any", out_indices = "any" },
  shape = function(c, a)
    stages.check(c, { "depths", "num_heads" }, a.where)
    a.width, a.depths, a.heads, a.window, a.patch = c.embed_dim, c.depths, c.num_heads, c.window_size, c.patch_size
    a.ratio, a.eps, a.activation = c.mlp_ratio, c.layer_norm_eps, architecture.activation(c.hidden_act, a.where)
    a.unused[#a.unused + 1] = "relative_position_index$"
  end,
}
