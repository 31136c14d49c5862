-- Granite 3 and 4, dense.
return {
  families = { "granite" },
  permuted = true, turns_all = true,
  keys = {
    { "attention.scale", "attention_multiplier", "f32" },
    { "embedding_scale", "embedding_multiplier", "f32" },
    { "residual_scale", "residual_multiplier", "f32" },
    { "logit_scale", "logits_scaling", "f32" },
  },
  more = function(put, _, a) put("rope.dimension_count", "u32", a.head_dim) end,
}
