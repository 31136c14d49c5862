-- gpt-oss 20b and 120b. Gate and up are matrices of their own there, and [out, in], as are all.
return {
  families = { "gpt_oss" },
  norms = { before_mlp = "post_attention_norm" },
  keys = {
    { "attention.sliding_window", "sliding_window", "u32" },
    { "expert_count", "num_local_experts", "u32" },
    { "expert_used_count", "num_experts_per_tok", "u32" },
    { "expert_feed_forward_length", "intermediate_size", "u32" },
  },
  complete = function(config)
    config.separate_experts = true
    if config.rope_scaling and config.rope_scaling.rope_type == "yarn" then config.rope_scaling.truncate = false end
  end,
}
