-- Mixtral 8x7B and 8x22B: Mistral, with two of eight experts in the place of each feed-forward layer.
local NONE = require("families.parts.config").NONE

return {
  words = "Mixtral 8x7B, 8x22B",
  defaults = {
    vocab_size = 32000, hidden_size = 4096, intermediate_size = 14336, num_hidden_layers = 32, num_attention_heads = 32,
    num_key_value_heads = 8, hidden_act = "silu", max_position_embeddings = 131072, rms_norm_eps = 1e-5,
    sliding_window = NONE, num_experts_per_tok = 2, num_local_experts = 8, output_router_logits = false,
    router_aux_loss_coef = 0.001,
  },
  spelled = { num_experts = "num_local_experts" },
  fixed = { router_jitter_noise = 0 },
  shape = function(c, a, architecture)
    architecture.rope(c, a, { base = 1000000 })
    architecture.fill(a.windows, a.layers, c.sliding_window)
    a.names.mlp = "block_sparse_moe"
    architecture.experts(c, a, { count = c.num_local_experts, hidden = a.hidden, split = true, normalise = true,
      router = "gate", gate = "w1", up = "w3", down = "w2" })
  end,
}
