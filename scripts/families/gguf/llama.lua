-- Llama, Mistral and Mixtral.
return {
  families = { "llama", "mistral", "mixtral" },
  permuted = true, turns_all = true,
  keys = {
    { "expert_count", "num_local_experts", "u32", own = true },
    { "expert_used_count", "num_experts_per_tok", "u32", own = true },
    { "expert_feed_forward_length" },
  },
  family = function(m) return (m.key("expert_count") or 0) > 0 and "mixtral" or "llama" end,
  more = function(put, _, a) put("rope.dimension_count", "u32", a.head_dim) end,
}
