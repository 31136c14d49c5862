-- OLMo 2: norms after both parts of a block and over all of queries and of keys.
local NONE = require("families.parts.config").NONE

return {
  words = "OLMo 2",
  defaults = {
    vocab_size = 50304, hidden_size = 4096, intermediate_size = 11008, num_hidden_layers = 32, num_attention_heads = 32,
    num_key_value_heads = NONE, hidden_act = "silu", max_position_embeddings = 2048, rms_norm_eps = 1e-5,
    attention_bias = false,
  },
  shape = function(c, a, architecture)
    a.qk_norm = "whole"
    a.norms = { after_attention = "post_attention_layernorm", after_mlp = "post_feedforward_layernorm" }
    architecture.rope(c, a)
  end,
}
