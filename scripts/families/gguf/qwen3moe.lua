-- Qwen3 with experts, whose weights add up to 1 in every file.
return {
  families = { "qwen3_moe" },
  keys = {
    { "expert_count", "num_experts", "u32" },
    { "expert_used_count", "num_experts_per_tok", "u32" },
    { "expert_feed_forward_length", "moe_intermediate_size", "u32" },
  },
  complete = function(config, m)
    config.norm_topk_prob = true
    config.moe_intermediate_size = config.moe_intermediate_size or m.shape("blk.0.ffn_gate_exps.weight")[2]
  end,
}
