-- Gemma 2: Gemma, with norms after both parts of a block, too, a window in every other layer, and soft caps.
local NONE = require("families.parts.config").NONE

return {
  words = "Gemma 2",
  defaults = {
    vocab_size = 256000, hidden_size = 2304, intermediate_size = 9216, num_hidden_layers = 26, num_attention_heads = 8,
    num_key_value_heads = 4, head_dim = 256, hidden_activation = "gelu_pytorch_tanh", max_position_embeddings = 8192,
    rms_norm_eps = 1e-6, attention_bias = false, tie_word_embeddings = true, query_pre_attn_scalar = 256,
    sliding_window = 4096, layer_types = NONE, final_logit_softcapping = 30, attn_logit_softcapping = 50,
  },
  fixed = { use_bidirectional_attention = false, hidden_act = "any" },
  shape = function(c, a, architecture)
    a.activation = architecture.activation(c.hidden_activation, a.where, "hidden_activation")
    a.norm.offset, a.embedding_scale = 1, math.sqrt(a.width)
    a.norms = { before_attention = "input_layernorm", after_attention = "post_attention_layernorm",
                before_mlp = "pre_feedforward_layernorm", after_mlp = "post_feedforward_layernorm" }
    architecture.fill(a.attention_scales, a.layers, c.query_pre_attn_scalar ^ -0.5)
    a.attention_softcap, a.logits_softcap = c.attn_logit_softcapping, c.final_logit_softcapping
    architecture.rope(c, a)
    architecture.windows(c, a, architecture.every(c, a, 2))
  end,
}
