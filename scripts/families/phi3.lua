-- Phi-3, 3.5, 4 and 4-mini: Llama, with one product for queries, keys and values and one for gate and up.
local NONE = require("families.parts.config").NONE

return {
  words = "Phi-3, Phi-3.5, Phi-4, Phi-4-mini",
  defaults = {
    vocab_size = 32064, hidden_size = 3072, intermediate_size = 8192, num_hidden_layers = 32, num_attention_heads = 32,
    num_key_value_heads = NONE, hidden_act = "silu", max_position_embeddings = 4096,
    original_max_position_embeddings = 4096, rms_norm_eps = 1e-5, sliding_window = NONE,
  },
  shape = function(c, a, architecture)
    a.fused_qkv, a.fused_gate_up = "columns", true
    local given = c.rope_scaling or c.rope_parameters
    if given then  -- names of early files
      local type = given.rope_type or given.type
      given.type, given.rope_type = nil, (type == "su" or type == "yarn") and "longrope" or type
    end
    architecture.rope(c, a)
    architecture.fill(a.windows, a.layers, c.sliding_window)
  end,
}
