-- OLMo 3: OLMo 2, with a window in three of four layers, and positions that reach further in the fourth alone.
local NONE = require("families.parts.config").NONE

return {
  words = "OLMo 3",
  defaults = {
    vocab_size = 50304, hidden_size = 4096, intermediate_size = 11008, num_hidden_layers = 32, num_attention_heads = 32,
    num_key_value_heads = NONE, hidden_act = "silu", max_position_embeddings = 2048, rms_norm_eps = 1e-5,
    attention_bias = false, sliding_window = 4096, layer_types = NONE,
  },
  shape = function(c, a, architecture)
    a.qk_norm = "whole"
    a.norms = { after_attention = "post_attention_layernorm", after_mlp = "post_feedforward_layernorm" }
    local types = architecture.windows(c, a, function(i)
      return i % 4 == 0 and "full_attention" or "sliding_attention"
    end)
    local base = c.rope_theta or 500000
    architecture.rope_by_type(c, a, types, { full_attention = base, sliding_attention = base })
  end,
}
