-- Seed-OSS: Llama, with biases of queries, keys and values.
return {
  words = "Seed-OSS",
  defaults = {
    vocab_size = 155136, hidden_size = 4096, intermediate_size = 27648, num_hidden_layers = 64,
    num_attention_heads = 80,
    num_key_value_heads = 8, head_dim = 128, hidden_act = "silu", max_position_embeddings = 524288,
    rms_norm_eps = 1e-6, attention_bias = true, attention_out_bias = false, mlp_bias = false,
  },
  shape = function(c, a, architecture)
    a.bias.o = c.attention_out_bias
    architecture.rope(c, a)
  end,
}
