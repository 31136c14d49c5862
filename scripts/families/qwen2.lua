-- Qwen2 and Qwen2.5: Llama, with biases of queries, keys and values.
local NONE = require("families.parts.config").NONE

return {
  words = "Qwen2, Qwen2.5",
  defaults = {
    vocab_size = 151936, hidden_size = 4096, intermediate_size = 22016, num_hidden_layers = 32,
    num_attention_heads = 32,
    num_key_value_heads = 32, hidden_act = "silu", max_position_embeddings = 32768, rms_norm_eps = 1e-6,
    use_sliding_window = false, sliding_window = 4096, max_window_layers = 28, layer_types = NONE,
  },
  shape = function(c, a, architecture)
    a.bias.q, a.bias.k, a.bias.v = true, true, true
    architecture.rope(c, a)
    if not c.use_sliding_window then c.sliding_window = nil end
    architecture.windows(c, a, function(i)
      return c.sliding_window and i > c.max_window_layers and "sliding_attention" or "full_attention"
    end)
  end,
}
