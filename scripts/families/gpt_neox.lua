-- GPT-NeoX and Pythia: layer norms, both parts of a block parallel, a quarter of each head's columns turn, one product
-- for queries, keys and values of each head.
return {
  words = "GPT-NeoX, Pythia",
  defaults = {
    vocab_size = 50432, hidden_size = 6144, intermediate_size = 24576, num_hidden_layers = 44, num_attention_heads = 64,
    hidden_act = "gelu", max_position_embeddings = 2048, layer_norm_eps = 1e-5, attention_bias = true,
    use_parallel_residual = true,
  },
  spelled = { rotary_pct = "partial_rotary_factor", rotary_emb_base = "rope_theta" },
  shape = function(c, a, architecture)
    a.norm = { kind = "layer", eps = c.layer_norm_eps, bias = true }
    a.bias.up, a.bias.down = true, true
    a.fused_qkv, a.gated, a.parallel = "heads", false, c.use_parallel_residual
    a.names = { tokens = "gpt_neox.embed_in", block = "gpt_neox.layers.%d", final = "gpt_neox.final_layer_norm",
                head = "embed_out", attention = "attention", qkv = "query_key_value", o = "dense", mlp = "mlp",
                up = "dense_h_to_4h", down = "dense_4h_to_h" }
    a.blocks = "gpt_neox.layers."
    a.unused = { "%.attention%.bias$", "%.attention%.masked_bias$", "%.rotary_emb%.inv_freq$" }
    architecture.rope(c, a, { share = 0.25 })
  end,
}
