-- Command R7B and Command A: one norm for both parts of a block, which are parallel; rotary positions, of neighbouring
-- columns, where there is a window.
local NONE = require("families.parts.config").NONE

return {
  words = "Command R7B, Command A",
  defaults = {
    vocab_size = 256000, hidden_size = 8192, intermediate_size = 22528, num_hidden_layers = 40,
    num_attention_heads = 64,
    num_key_value_heads = NONE, hidden_act = "silu", max_position_embeddings = 8192, layer_norm_eps = 1e-5,
    attention_bias = false, tie_word_embeddings = true, logit_scale = 0.0625, sliding_window = 4096,
    sliding_window_pattern = 4, layer_types = NONE,
  },
  fixed = { rotary_pct = 1, position_embedding_type = "rope_gptj", use_gated_activation = true,
            use_parallel_block = true, use_parallel_embedding = "any", use_embedding_sharing = "any",
            order_of_interleaved_layers = "local_attn_first", layer_switch = 4, use_qk_norm = false },
  shape = function(c, a, architecture)
    a.norm = { kind = "layer", eps = c.layer_norm_eps }
    a.parallel, a.norms = true, { before_attention = "input_layernorm" }
    a.logits_scale = c.logit_scale
    local types = architecture.windows(c, a, architecture.every(c, a, 4))
    architecture.rope(c, a, { interleaved = true })
    for i, kind in ipairs(types) do
      if kind == "full_attention" then a.rotary[i] = nil end
    end
  end,
}
