-- Gemma: norms with 1 + w, embeddings times the root of the width, a gelu in the feed-forward layer.
local NONE = require("families.parts.config").NONE

return {
  words = "Gemma",
  defaults = {
    vocab_size = 256000, hidden_size = 3072, intermediate_size = 24576, num_hidden_layers = 28,
    num_attention_heads = 16,
    num_key_value_heads = 16, head_dim = 256, hidden_act = "gelu_pytorch_tanh", hidden_activation = NONE,
    max_position_embeddings = 8192, rms_norm_eps = 1e-6, attention_bias = false, tie_word_embeddings = true,
  },
  fixed = { use_bidirectional_attention = false },
  shape = function(c, a, architecture)
    -- "gelu" in its own files means the tanh form.
    local word = c.hidden_activation or c.hidden_act == "gelu" and "gelu_pytorch_tanh" or c.hidden_act
    a.activation = architecture.activation(word, a.where)
    a.norm.offset, a.embedding_scale = 1, math.sqrt(a.width)
    architecture.rope(c, a)
  end,
}
