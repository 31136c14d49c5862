-- Granite 3 and the dense Granite 4: Llama, with scales of embeddings, scores, logits and of what blocks add.
local NONE = require("families.parts.config").NONE

return {
  words = "Granite 3, 4 (dense)",
  defaults = {
    vocab_size = 32000, hidden_size = 4096, intermediate_size = 11008, num_hidden_layers = 32, num_attention_heads = 32,
    num_key_value_heads = NONE, hidden_act = "silu", max_position_embeddings = 2048, rms_norm_eps = 1e-6,
    attention_bias = false, mlp_bias = false, embedding_multiplier = 1, logits_scaling = 1, residual_multiplier = 1,
    attention_multiplier = 1,
  },
  shape = function(c, a, architecture)
    architecture.rope(c, a)
    architecture.fill(a.attention_scales, a.layers, c.attention_multiplier)
    a.embedding_scale, a.residual_scale = c.embedding_multiplier, c.residual_multiplier
    a.logits_scale = c.logits_scaling ~= 1 and 1 / c.logits_scaling or nil
  end,
}
