-- Llama 2 to 3.3, TinyLlama, SmolLM2, Yi and what was distilled into them.
return {
  words = "Llama 2 to 3.3, TinyLlama, SmolLM2, Yi",
  defaults = {
    vocab_size = 32000, hidden_size = 4096, intermediate_size = 11008, num_hidden_layers = 32, num_attention_heads = 32,
    num_key_value_heads = require("families.parts.config").NONE, hidden_act = "silu", max_position_embeddings = 2048,
    rms_norm_eps = 1e-6, attention_bias = false, mlp_bias = false,
  },
  shape = function(c, a, architecture) architecture.rope(c, a) end,
}
