-- gpt-oss 20b and 120b: experts with biases and a clamped gate, a learned sink for each head's scores, a window in
-- every other layer, yarn without rounding.
local NONE = require("families.parts.config").NONE

return {
  words = "gpt-oss 20b, 120b",
  defaults = {
    vocab_size = 201088, hidden_size = 2880, intermediate_size = 2880, num_hidden_layers = 36, num_attention_heads = 64,
    num_key_value_heads = 8, head_dim = 64, hidden_act = "silu", max_position_embeddings = 131072,
    rms_norm_eps = 1e-5, attention_bias = true, sliding_window = 128, layer_types = NONE, num_local_experts = 128,
    num_experts_per_tok = 4, swiglu_limit = 7, output_router_logits = false, router_aux_loss_coef = 0.001,
    separate_experts = false,  -- of GGUF files: gate and up are matrices of their own, [out, in]
  },
  spelled = { num_experts = "num_local_experts" },
  -- experts_per_token and initial_context_length say again what other keys say.
  fixed = { swiglu_alpha = 1.702, experts_per_token = "any", initial_context_length = "any" },
  shape = function(c, a, architecture)
    a.sinks = true
    architecture.rope(c, a, { base = 150000, parameters = {
      rope_type = "yarn", factor = 32, beta_fast = 32, beta_slow = 1, truncate = false,
      original_max_position_embeddings = 4096,
    } })
    architecture.windows(c, a, architecture.every(c, a, 2))
    -- In Transformers' files columns of gate and up take turns, and all matrices are [in, out], but in MXFP4.
    local own = c.separate_experts
    architecture.experts(c, a, { count = c.num_local_experts, hidden = a.hidden, normalise = true, bias = true,
      limit = c.swiglu_limit, router = "router", gate_up = not own and "gate_up_proj" or nil, down = "down_proj",
      gate = own and "gate_proj" or nil, up = own and "up_proj" or nil, by_rows = c.quantised == "mxfp4" })
  end,
}
