-- Costs: seconds of ops and links that plans are made with; a measured profile, or the model of another device.
local ffi = require "ffi"
local core = require "cairn.core"
local instance = require "cairn.instance"
local C = core.C

local Costs = core.class "costs"

-- An empty profile of a device, to be filled by measure_link and add_run. Returns it, or nil, err.
function Costs.new(device)
  core.expect(instance.Device, device, "device")
  local out = ffi.new("cairn_costs_t*[1]")
  local status = C.cairn_costs_create(device:raw(), out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return Costs.wrap(out[0])
end

-- From JSON, "cairn.profile/1" or "cairn.device-model/1". Returns the costs, or nil, err.
function Costs.read(json)
  core.expect_type(json, "string", "json")
  local out = ffi.new("cairn_costs_t*[1]")
  local status = C.cairn_costs_read(instance.get(), json, #json, out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return Costs.wrap(out[0])
end

-- Measures copies to and from a tier, "host" or "disk". Returns true, or nil, err.
function Costs:measure_link(device, tier)
  core.expect(instance.Device, device, "device")
  local number = core.LOWER_TIERS[tier]
  if not number then error("tier: one of host, disk", 2) end
  return core.done(C.cairn_costs_measure_link(self:raw(), device:raw(), number, core.raw_error))
end

-- Times what the kernels of a plan have to choose from on the device (GPUs), and puts what is faster than the device's
-- own choice into the profile; plans made with it take that. Returns how many ops were timed, or nil, err.
function Costs:measure_kernels(plan, device)
  core.expect(instance.Device, device, "device")
  local count = ffi.new("uint64_t[1]")
  local status = C.cairn_costs_measure_kernels(self:raw(), plan:raw(), device:raw(), count, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return tonumber(count[0])
end

-- Adds a session's last traced run, and what is known of the step around it. Returns true, or nil, err.
function Costs:add_run(session, step_seconds, optimizer_seconds)
  return core.done(C.cairn_costs_add_run(self:raw(), session:raw(), step_seconds or 0, optimizer_seconds or 0,
    core.raw_error))
end

-- The profile as JSON.
function Costs:json()
  local out = ffi.new("cairn_text_t*[1]")
  local status = C.cairn_costs_json(self:raw(), out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return core.take_text(out)
end

return { Costs = Costs }
