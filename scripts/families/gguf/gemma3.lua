-- Gemma 3, what it does with text. What scores are scaled by is in no file, as with Gemma 2.
local keys = require "families.gguf.keys"

local LAYERS_27B, PATTERN = 62, 6

return {
  families = { "gemma3_text" },
  keys = {
    { "attention.sliding_window", "sliding_window", "u32" },
    { "final_logit_softcapping", "final_logit_softcapping", "f32" },
    { "rope.freq_base_swa", "rope_local_base_freq", "f32" },
  },
  complete = function(config, m, head_dim)
    local large = config.num_hidden_layers == LAYERS_27B
    config.query_pre_attn_scalar = large and config.hidden_size / config.num_attention_heads or head_dim
    if not keys.layer_types(config, m, PATTERN) then
      config.layer_types = {}
      for i = 1, config.num_hidden_layers do config.layer_types[i] = "full_attention" end
    end
  end,
  more = function(put, c, a)
    put("rope.freq_base", "f32", a.ropes.full_attention.base)
    put("rope.freq_base_swa", "f32", a.ropes.sliding_attention.base)
    for i = 1, a.layers do
      if (a.windows[i] ~= nil) ~= (i % PATTERN ~= 0) then return keys.put_layer_types(put, c, a) end
    end
  end,
}
