-- SmolLM3. Which layers have no rotary positions is in no file: every fourth.
return {
  families = { "smollm3" },
  permuted = true, turns_all = true,
  complete = function(config) config.no_rope_layer_interval = 4 end,
  more = function(put, _, a) put("rope.dimension_count", "u32", a.head_dim) end,
}
