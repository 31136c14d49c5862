-- SmolLM3: Llama, with no rotary positions in every fourth layer.
local NONE = require("families.parts.config").NONE
local fail = require "cli.base.fail"

return {
  words = "SmolLM3",
  defaults = {
    vocab_size = 128256, hidden_size = 2048, intermediate_size = 11008, num_hidden_layers = 36,
    num_attention_heads = 16,
    num_key_value_heads = 4, hidden_act = "silu", max_position_embeddings = 32768, rms_norm_eps = 1e-6,
    attention_bias = false, mlp_bias = false, tie_word_embeddings = true, use_sliding_window = false,
    sliding_window = NONE, no_rope_layers = NONE, no_rope_layer_interval = 4, layer_types = NONE,
  },
  fixed = { max_window_layers = "any" },
  shape = function(c, a, architecture)
    architecture.rope(c, a, { base = 2000000 })
    local turns = c.no_rope_layers  -- 1: the layer has them
    if turns and #turns ~= a.layers then
      fail.input(("%s: no_rope_layers has %d entries, of %d layers"):format(a.where, #turns, a.layers))
    end
    for i = 1, a.layers do
      if turns and turns[i] == 0 or not turns and i % c.no_rope_layer_interval == 0 then a.rotary[i] = nil end
    end
    if not c.use_sliding_window then c.sliding_window = nil end
    architecture.windows(c, a, function(i)
      return c.sliding_window and not a.rotary[i] and "sliding_attention" or "full_attention"
    end)
  end,
}
