-- Where a plan's seconds come from, as words: rates that were measured here once, a profile, a model.
local format = require "cli.base.format"

local rates = {}
local told = false

local SOURCES = {
  measured = "measured now", cached = "measured earlier on this machine", file = "from a file",
  profile = "from a profile", model = "the model's own: nothing was measured",
  ["device-model"] = "of a device model",
}

local function flops(rate) return ("%.3g GFLOP/s"):format(rate / 1e9) end

-- One line: what the rates are, and where they stand.
function rates.line(found)
  local text = ("%s; products %s in float32, %s in bfloat16, memory %s/s"):format(SOURCES[found.source],
    flops(found.f32_flops_per_second), flops(found.bf16_flops_per_second),
    format.bytes(found.memory_bytes_per_second))
  if found.path ~= "" then text = text .. (" (%s)"):format(found.path) end
  return text
end

-- Says once what measuring took, where its result is kept, and what somebody should know of that.
function rates.tell(found, options)
  if told or options.quiet or (found.notice == "" and (options.json or found.source ~= "measured")) then return end
  told = true
  if found.notice ~= "" then return io.stderr:write("note: ", found.notice, "\n") end
  io.stderr:write(("measured this machine's rates in %s, once; they are kept in %s\n"):format(
    format.seconds(found.measuring_seconds), found.path))
end

return rates
