-- The instance and its devices. One instance per Lua state and process, made when it is first needed: what was made
-- before a fork stays with the process that made it.
local ffi = require "ffi"
local core = require "cairn.core"
local C = core.C

local instance = {}
local Device = core.class "device"
instance.Device = Device

ffi.cdef "int getpid(void);"
local shared, owner
function instance.get()
  if not shared or owner ~= ffi.C.getpid() then
    if shared then ffi.gc(shared, nil) end
    local out = ffi.new("cairn_instance_t*[1]")
    local status = C.cairn_instance_create(nil, out, core.raw_error)
    if status ~= 0 then error(tostring(select(2, core.failed(status))), 0) end
    shared, owner = ffi.gc(out[0], C.cairn_instance_release), ffi.C.getpid()
  end
  return shared
end

-- Devices of this machine: an array of {name, description, memory_bytes, threads, fast_bf16, isa, disk_access}.
function instance.devices()
  local list = {}
  while true do
    local info = ffi.new("cairn_device_info_t", { ffi.sizeof("cairn_device_info_t") })
    local status = C.cairn_instance_device(instance.get(), #list, info, core.raw_error)
    if status == C.CAIRN_STATUS_NOT_FOUND then return list end
    if status ~= 0 then return core.failed(status) end
    list[#list + 1] = {
      name = ffi.string(info.name), description = ffi.string(info.description),
      memory_bytes = tonumber(info.memory_bytes), threads = info.threads, fast_bf16 = info.fast_bf16 ~= 0,
      isa = ffi.string(info.isa),
      disk_access = ffi.string(info.disk_access),
    }
  end
end

local OPTIONS = { threads = "threads", verify = "verify", link_bytes_per_second = "link_bytes_per_second",
                  disk_directory = "disk_directory", rates = "rates" }

-- Opens "cpu", "reference" or "cuda:N". options: threads, verify, link_bytes_per_second, disk_directory, rates
-- ("cache", "measure", "model" or a file, as cairn.h says). Returns the device, or nil, err.
function instance.device(name, options)
  name = core.expect_type(name or "cpu", "string", "device name")
  local struct, anchors = core.options("cairn_device_options_t", options, OPTIONS)
  local out = ffi.new("cairn_device_t*[1]")
  local status = C.cairn_device_open(instance.get(), name, struct, out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return Device.wrap(out[0], { name = name, anchors = anchors })
end

return instance
