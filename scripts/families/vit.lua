-- ViT and DeiT: a transformer over patches of a picture, read at a class token.
local architecture = require "families.parts.architecture"

return {
  words = "ViT: classes of pictures",
  recipe = "vit", of_pictures = true, learned = true,
  -- Of a tower (families.parts.tower).
  NAMES = {
    block = "vit.encoder.layer.%d", before = "layernorm_before", after = "layernorm_after",
    q = "attention.attention.query", k = "attention.attention.key", v = "attention.attention.value",
    o = "attention.output.dense", up = "intermediate.dense", down = "output.dense",
    scale1 = "layer_scale1.lambda1", scale2 = "layer_scale2.lambda1",
  },
  defaults = {
    hidden_size = 768, num_hidden_layers = 12, num_attention_heads = 12, intermediate_size = 3072, hidden_act = "gelu",
    layer_norm_eps = 1e-12, image_size = 224, patch_size = 16, num_channels = 3,
  },
  fixed = { qkv_bias = true, encoder_stride = "any", hidden_dropout_prob = "any", attention_probs_dropout_prob = "any",
            pooler_output_size = "any", pooler_act = "any" },
  shape = function(c, a)
    a.width, a.layers, a.heads = c.hidden_size, c.num_hidden_layers, c.num_attention_heads
    a.hidden = c.intermediate_size
    a.eps, a.activation, a.patch = c.layer_norm_eps, architecture.activation(c.hidden_act, a.where), c.patch_size
    a.root, a.pooling, a.names = "vit", "cls", require("families.vit").NAMES
    a.unused[#a.unused + 1] = "^vit%.pooler%."
  end,
}
