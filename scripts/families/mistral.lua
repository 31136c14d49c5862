-- Mistral 7B, Nemo and Small: Llama, with a window in the first version.
return {
  words = "Mistral 7B, Nemo, Small",
  defaults = {
    vocab_size = 32000, hidden_size = 4096, intermediate_size = 14336, num_hidden_layers = 32, num_attention_heads = 32,
    num_key_value_heads = 8, hidden_act = "silu", max_position_embeddings = 131072, rms_norm_eps = 1e-6,
    sliding_window = 4096,
  },
  shape = function(c, a, architecture)
    architecture.rope(c, a)
    architecture.fill(a.windows, a.layers, c.sliding_window)
  end,
}
