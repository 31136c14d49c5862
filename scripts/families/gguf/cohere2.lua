-- Command R7B and Command A.
local keys = require "families.gguf.keys"

return {
  families = { "cohere2" },
  keys = {
    { "attention.layer_norm_epsilon", "layer_norm_eps", "f32" }, { "attention.layer_norm_rms_epsilon" },
    { "attention.sliding_window", "sliding_window", "u32" },
    { "logit_scale", "logit_scale", "f32" },
  },
  complete = function(config, m) keys.layer_types(config, m, 4) end,
  more = function(put, c, a)
    keys.put_layer_types(put, c, a)
    put("rope.dimension_count", "u32", a.head_dim)
    put("rope.scaling.type", "text", "none")
  end,
}
