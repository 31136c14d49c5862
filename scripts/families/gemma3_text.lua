-- Gemma 3, what it does with text: Gemma 2 without the cap of scores, with norms of queries and keys by head, and with
-- positions of their own in layers that have a window.
local NONE = require("families.parts.config").NONE

return {
  words = "Gemma 3 (text)",
  defaults = {
    vocab_size = 262208, hidden_size = 2304, intermediate_size = 9216, num_hidden_layers = 26, num_attention_heads = 8,
    num_key_value_heads = 4, head_dim = 256, hidden_activation = "gelu_pytorch_tanh",
    max_position_embeddings = 131072, rms_norm_eps = 1e-6, attention_bias = false, tie_word_embeddings = true,
    query_pre_attn_scalar = 256, sliding_window = 4096, sliding_window_pattern = 6, layer_types = NONE,
    final_logit_softcapping = NONE, rope_local_base_freq = 10000,
  },
  spelled = { _sliding_window_pattern = "sliding_window_pattern" },
  -- Its attention takes no cap, whatever the key says.
  fixed = { use_bidirectional_attention = false, hidden_act = "any", attn_logit_softcapping = "any" },
  shape = function(c, a, architecture)
    a.activation = architecture.activation(c.hidden_activation, a.where, "hidden_activation")
    a.norm.offset, a.embedding_scale, a.qk_norm = 1, math.sqrt(a.width), "head"
    a.norms = { before_attention = "input_layernorm", after_attention = "post_attention_layernorm",
                before_mlp = "pre_feedforward_layernorm", after_mlp = "post_feedforward_layernorm" }
    architecture.fill(a.attention_scales, a.layers, c.query_pre_attn_scalar ^ -0.5)
    a.logits_softcap = c.final_logit_softcapping
    local types = architecture.windows(c, a, architecture.every(c, a, 6))
    architecture.rope_by_type(c, a, types, { full_attention = c.rope_theta or 1000000,
                                             sliding_attention = c.rope_local_base_freq })
  end,
}
