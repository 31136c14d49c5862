-- EXAONE 4: norms after both parts of a block, and of queries and keys by head; with windows, those layers alone have
-- rotary positions.
local NONE = require("families.parts.config").NONE

return {
  words = "EXAONE 4",
  defaults = {
    vocab_size = 102400, hidden_size = 4096, intermediate_size = 16384, num_hidden_layers = 32,
    num_attention_heads = 32,
    num_key_value_heads = 32, hidden_act = "silu", max_position_embeddings = 2048, rms_norm_eps = 1e-5,
    sliding_window = 4096, sliding_window_pattern = 4, layer_types = NONE,
  },
  shape = function(c, a, architecture)
    a.qk_norm = "head"
    a.norms = { after_attention = "post_attention_layernorm", after_mlp = "post_feedforward_layernorm" }
    architecture.rope(c, a)
    local types = architecture.windows(c, a, architecture.every(c, a, 4))
    for i, kind in ipairs(types) do
      if c.sliding_window and kind == "full_attention" then a.rotary[i] = nil end
    end
  end,
}
