-- DINOv2: ViT whose branches are scaled, read at a class token and at the mean of all patches.
local architecture = require "families.parts.architecture"

return {
  words = "DINOv2: classes of pictures",
  recipe = "vit", of_pictures = true, learned = true,
  defaults = {
    hidden_size = 768, num_hidden_layers = 12, num_attention_heads = 12, mlp_ratio = 4, hidden_act = "gelu",
    layer_norm_eps = 1e-6, image_size = 224, patch_size = 14, num_channels = 3, layerscale_value = 1,
  },
  fixed = { qkv_bias = true, use_swiglu_ffn = false, hidden_dropout_prob = "any", attention_probs_dropout_prob = "any",
            drop_path_rate = "any", apply_layernorm = "any", reshape_hidden_states = "any", use_mask_token = "any",
            stage_names = "any", out_features = "any", out_indices = "any" },
  shape = function(c, a)
    a.width, a.layers, a.heads = c.hidden_size, c.num_hidden_layers, c.num_attention_heads
    a.hidden, a.eps, a.patch = math.floor(c.hidden_size * c.mlp_ratio), c.layer_norm_eps, c.patch_size
    a.activation, a.layer_scale = architecture.activation(c.hidden_act, a.where), c.layerscale_value
    a.root, a.pooling = "dinov2", "both"
    a.names = {
      block = "dinov2.encoder.layer.%d", before = "norm1", after = "norm2",
      q = "attention.attention.query", k = "attention.attention.key", v = "attention.attention.value",
      o = "attention.output.dense", up = "mlp.fc1", down = "mlp.fc2",
      scale1 = "layer_scale1.lambda1", scale2 = "layer_scale2.lambda1",
    }
    a.unused[#a.unused + 1] = "mask_token$"
  end,
}
