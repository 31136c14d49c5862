-- cairn devices
local args = require "cli.base.args"
local cairn = require "cairn"
local fail = require "cli.base.fail"
local format = require "cli.base.format"
local json = require "cli.base.json"

local USAGE = "cairn devices [--json]"

return function(arguments)
  local options, words, settings = args.parse(arguments, args.known("json quiet"), USAGE)
  if not options then return 0 end
  if #words + #settings > 0 then fail.usage("usage: " .. USAGE) end
  local devices = fail.check("devices", cairn.devices())
  if options.json then
    io.stdout:write(json.encode(json.array(devices)), "\n")
    return 0
  end
  local rows = {}
  for i, device in ipairs(devices) do
    rows[i] = { device.name, ("%d"):format(device.threads), format.bytes(device.memory_bytes),
                device.isa, device.fast_bf16 and "yes" or "no", device.description }
  end
  io.stdout:write(format.table(rows, { "device", "threads", "memory", "isa", "fast bf16", "description" }))
  return 0
end
