-- GLM-4-0414: norms before and after both parts, one product for gate and up, neighbouring columns that turn.
return {
  words = "GLM-4-0414",
  defaults = {
    vocab_size = 151552, hidden_size = 4096, intermediate_size = 13696, num_hidden_layers = 40,
    num_attention_heads = 32,
    num_key_value_heads = 2, head_dim = 128, hidden_act = "silu", max_position_embeddings = 131072,
    rms_norm_eps = 1.5625e-7, attention_bias = true,
  },
  shape = function(c, a, architecture)
    a.fused_gate_up, a.bias.o = true, false
    a.norms.after_attention, a.norms.after_mlp = "post_self_attn_layernorm", "post_mlp_layernorm"
    architecture.rope(c, a, { share = 0.5, interleaved = true })
  end,
}
