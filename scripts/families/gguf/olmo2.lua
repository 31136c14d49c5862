-- OLMo 2, and OLMo 3, which has windows.
local keys = require "families.gguf.keys"

return {
  families = { "olmo2", "olmo3" },
  keys = { { "attention.sliding_window", "sliding_window", "u32", own = true } },
  family = function(m) return (m.key("attention.sliding_window") or 0) > 0 and "olmo3" or "olmo2" end,
  complete = function(config, m) keys.layer_types(config, m, 4) end,
  more = keys.put_layer_types,
}
