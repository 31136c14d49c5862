-- Phi-3, 3.5, 4 and 4-mini. A window of 0 is none.
return {
  families = { "phi3" },
  keys = {
    { "attention.sliding_window", "sliding_window", "u32" },
    { "rope.scaling.original_context_length", "original_max_position_embeddings", "u32" },
  },
  complete = function(config)
    if config.sliding_window == 0 then config.sliding_window = nil end
    config.original_max_position_embeddings = config.original_max_position_embeddings or config.max_position_embeddings
  end,
  more = function(put, c, a)
    put("attention.sliding_window", "u32", c.sliding_window or 0)
    put("rope.dimension_count", "u32", a.ropes.all.dim)
  end,
}
