-- Gemma 2. What scores are scaled by is in no file: the root of a head's size, but for the 27B model.
local LAYERS_27B = 46

return {
  families = { "gemma2" },
  keys = {
    { "attention.sliding_window", "sliding_window", "u32" },
    { "attn_logit_softcapping", "attn_logit_softcapping", "f32" },
    { "final_logit_softcapping", "final_logit_softcapping", "f32" },
  },
  complete = function(config, m, head_dim)
    local large = config.num_hidden_layers == LAYERS_27B
    config.query_pre_attn_scalar = large and config.hidden_size / config.num_attention_heads or head_dim
    m.key("attention.sliding_window_pattern")  -- every second layer, always
  end,
}
