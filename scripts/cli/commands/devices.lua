-- cairn devices
local args = require "cli.base.args"
local cairn = require "cairn"
local costs = require "cli.plan.costs"
local fail = require "cli.base.fail"
local format = require "cli.base.format"
local json = require "cli.base.json"

local USAGE = "cairn devices [--models] [--json]"
local KNOWN = args.known("json quiet", {
  models = { args.FLAG, "devices that `cairn plan --device-model NAME` plans for, with the rates it takes" },
})
local RATES = { "f32_flops_per_second", "bf16_flops_per_second", "f16_flops_per_second", "memory_bytes_per_second" }

local function print_devices(options)
  local devices = fail.check("devices", cairn.devices())
  if options.json then
    io.stdout:write(json.encode(json.array(devices)), "\n")
    return
  end
  local rows = {}
  for i, device in ipairs(devices) do
    rows[i] = { device.name, ("%d"):format(device.threads), format.bytes(device.memory_bytes),
                device.isa, device.fast_bf16 and "yes" or "no", device.disk_access, device.description }
  end
  io.stdout:write(format.table(rows, { "device", "threads", "memory", "isa", "fast bf16", "disk tier", "description" }))
end

local function link_json(link)
  local fields = {}
  for i, key in ipairs { "tier", "latency_seconds", "out_bytes_per_second", "in_bytes_per_second", "both_ways_factor",
                         "capacity_bytes" } do
    fields[i] = { key, link[key] or key == "capacity_bytes" and 0 or nil }
  end
  return json.object(fields)
end

local function print_models(options, root)
  local rows = {}
  for i, name in ipairs(costs.known(root)) do
    local model = costs.model(name, root)
    if options.json then
      local fields = { { "model", name }, { "name", model.name }, { "memory_bytes", model.memory_bytes } }
      for _, key in ipairs(RATES) do fields[#fields + 1] = { key, model[key] } end
      local links = {}
      for k, link in ipairs(model.links) do links[k] = link_json(link) end
      fields[#fields + 1] = { "links", json.array(links) }
      fields[#fields + 1] = { "sources", json.array(model.sources) }
      rows[i] = json.object(fields)
    else
      local row = { name, ("%.0f GB"):format(model.memory_bytes / 1e9) }
      for _, key in ipairs { RATES[1], RATES[2] } do row[#row + 1] = ("%.1f"):format(model[key] / 1e12) end
      row[#row + 1] = ("%.0f"):format(model.memory_bytes_per_second / 1e9)
      local link = model.links[1]
      row[#row + 1] = link and ("%.0f"):format(link.out_bytes_per_second / 1e9) or "-"
      row[#row + 1] = model.name
      rows[i] = row
    end
  end
  if options.json then
    io.stdout:write(json.encode(json.array(rows)), "\n")
  else
    io.stdout:write(format.table(rows, { "model", "memory", "f32 TFLOP/s", "bf16", "memory GB/s",
      "host GB/s", "description" }))
  end
end

return function(arguments, root)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE)
  if not options then return 0 end
  if #words + #settings > 0 then fail.usage("usage: " .. USAGE) end
  if options.models then
    print_models(options, root)
  else
    print_devices(options)
  end
  return 0
end
