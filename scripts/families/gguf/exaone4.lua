-- EXAONE 4.
local keys = require "families.gguf.keys"

return {
  families = { "exaone4" },
  keys = { { "attention.sliding_window", "sliding_window", "u32" } },
  complete = function(config, m)
    if not keys.layer_types(config, m, 4) then config.sliding_window = require("cli.base.json").raw("null") end
  end,
  more = keys.put_layer_types,
}
