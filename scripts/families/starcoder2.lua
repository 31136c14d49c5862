-- StarCoder2: layer norms, biases by a flag, a plain feed-forward layer.
local NONE = require("families.parts.config").NONE

return {
  words = "StarCoder2",
  defaults = {
    vocab_size = 49152, hidden_size = 3072, intermediate_size = 12288, num_hidden_layers = 30, num_attention_heads = 24,
    num_key_value_heads = 2, hidden_act = "gelu_pytorch_tanh", max_position_embeddings = 4096, norm_epsilon = 1e-5,
    use_bias = true, sliding_window = NONE, tie_word_embeddings = true,
  },
  fixed = { mlp_type = "default", norm_type = "layer_norm" },
  shape = function(c, a, architecture)
    local b = c.use_bias
    a.norm = { kind = "layer", eps = c.norm_epsilon, bias = true }
    a.bias = { q = b, k = b, v = b, o = b, up = b, down = b }
    a.gated, a.names.up, a.names.down = false, "c_fc", "c_proj"
    architecture.rope(c, a)
    architecture.fill(a.windows, a.layers, c.sliding_window)
  end,
}
