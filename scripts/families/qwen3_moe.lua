-- Qwen3 with experts: Qwen3, with a router and experts in the place of most feed-forward layers.
local NONE = require("families.parts.config").NONE
local fail = require "cli.base.fail"

return {
  words = "Qwen3 (mixture of experts)",
  defaults = {
    vocab_size = 151936, hidden_size = 2048, intermediate_size = 6144, num_hidden_layers = 24, num_attention_heads = 32,
    num_key_value_heads = 4, hidden_act = "silu", max_position_embeddings = 32768, rms_norm_eps = 1e-6,
    attention_bias = false, use_sliding_window = false, sliding_window = 4096, decoder_sparse_step = 1,
    moe_intermediate_size = 768, num_experts_per_tok = 8, num_experts = 128, norm_topk_prob = false,
    output_router_logits = false, router_aux_loss_coef = 0.001, mlp_only_layers = NONE,
  },
  spelled = { num_local_experts = "num_experts" },
  fixed = { max_window_layers = "any" },
  shape = function(c, a, architecture)
    a.qk_norm = "head"
    architecture.rope(c, a)
    architecture.fill(a.windows, a.layers, c.use_sliding_window and c.sliding_window or nil)
    architecture.experts(c, a, { count = c.num_experts, hidden = c.moe_intermediate_size, split = true,
      normalise = c.norm_topk_prob, router = "gate", gate = "gate_proj", up = "up_proj", down = "down_proj" })
    local dense = {}  -- layers that have no experts
    for _, layer in ipairs(c.mlp_only_layers or {}) do
      if type(layer) ~= "number" or layer < 0 or layer >= a.layers or layer ~= math.floor(layer) then
        fail.input(("%s: mlp_only_layers names layer %s; wanted: 0 to %d"):format(a.where, tostring(layer),
          a.layers - 1))
      end
      dense[layer + 1] = true
    end
    for i = 1, a.layers do
      a.experts.layers[i] = not dense[i] and i % c.decoder_sparse_step == 0
    end
  end,
}
