-- Ministral 3: Mistral, with yarn and queries that grow with their position.
local NONE = require("families.parts.config").NONE

return {
  words = "Ministral 3",
  defaults = {
    vocab_size = 131072, hidden_size = 4096, intermediate_size = 14336, num_hidden_layers = 34,
    num_attention_heads = 32,
    num_key_value_heads = 8, head_dim = 128, hidden_act = "silu", max_position_embeddings = 262144,
    rms_norm_eps = 1e-5, sliding_window = NONE,
  },
  shape = function(c, a, architecture)
    local parameters = architecture.rope(c, a, {
      extra = { "llama_4_scaling_beta", "max_position_embeddings" },
      parameters = {
        type = "yarn", rope_theta = 1e6, factor = 16, original_max_position_embeddings = 16384, beta_fast = 32,
        beta_slow = 1, mscale_all_dim = 1, mscale = 1, llama_4_scaling_beta = 0.1,
      } })
    local beta = parameters.llama_4_scaling_beta
    if beta then a.query_growth = { beta = beta, original = a.ropes.all.original } end
    architecture.fill(a.windows, a.layers, c.sliding_window)
  end,
}
