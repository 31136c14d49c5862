-- Sessions: memory taken, values written and read, runs.
local ffi = require "ffi"
local core = require "cairn.core"
local instance = require "cairn.instance"
local numbers = require "cairn.numbers"
local plans = require "cairn.plan"
local C = core.C

local Session = core.class "session"

-- Takes all memory that the plan names. Returns the session, or nil, err.
function Session.new(plan, device)
  core.expect(plans.Plan, plan, "plan")
  device = core.expect(instance.Device, device or plan.device, "device")
  local out = ffi.new("cairn_session_t*[1]")
  local status = C.cairn_session_create(plan:raw(), device:raw(), out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return Session.wrap(out[0], { plan = plan, graph = plan.graph, device = device })
end

-- Sessions of all plans of one cairn.plan_set, in its order, on one store: parameters, gradients and optimizer state
-- are the same values in all of them. Returns an array, or nil, err.
function Session.set(list, device)
  local array, out = ffi.new("cairn_plan_t*[?]", math.max(#list, 1)), ffi.new("cairn_session_t*[?]", math.max(#list, 1))
  for i, plan in ipairs(list) do array[i - 1] = core.expect(plans.Plan, plan, ("plans[%d]"):format(i)):raw() end
  device = core.expect(instance.Device, device or list[1] and list[1].device, "device")
  local status = C.cairn_session_create_set(array, #list, device:raw(), out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  local sessions = {}
  for i, plan in ipairs(list) do
    sessions[i] = Session.wrap(out[i - 1], { plan = plan, graph = plan.graph, device = device })
  end
  return sessions
end

function Session:initialise(seed)
  return core.done(C.cairn_session_initialise(self:raw(), seed or 0, core.raw_error))
end

-- {name, shape, dtype, kind, bytes} of a value that can be written or read, or nil, err.
function Session:info(name)
  core.expect_type(name, "string", "name")
  return core.value_info(function(info)
    return C.cairn_session_value_info(self:raw(), name, info, core.raw_error)
  end)
end

-- dtype and element count of a value by name; what Lua has no numbers for is bytes.
local function layout(self, name)
  local info, problem = self:info(name)
  if not info then return nil, problem end
  local dtype = info.dtype or "u8"
  return dtype, info.bytes / numbers.SIZES[dtype]
end

-- Writes an input or parameter: from an array of numbers, or from an FFI buffer of size_bytes (default: the value's).
function Session:write(name, data, size_bytes)
  core.expect_type(name, "string", "name")
  local buffer = data
  if type(data) == "table" or not size_bytes then
    local dtype, count = layout(self, name)
    if not dtype then return nil, count end
    if type(data) == "table" then
      buffer, size_bytes = numbers.pack(data, dtype, count, 2)
    elseif type(data) == "cdata" then
      numbers.check_array(data, dtype, count, 2)
      size_bytes = count * numbers.SIZES[dtype]
    end
  end
  if type(buffer) ~= "cdata" then error("data: an array of numbers or an FFI buffer expected", 2) end
  return core.done(C.cairn_session_write(self:raw(), name, buffer, size_bytes, core.raw_error))
end

-- Reads an input, parameter, "NAME/gradient", output or the loss: as an array of numbers, or into an FFI buffer.
function Session:read(name, buffer, size_bytes)
  core.expect_type(name, "string", "name")
  if buffer ~= nil and size_bytes ~= nil then
    return core.done(C.cairn_session_read(self:raw(), name, buffer, size_bytes, core.raw_error))
  end
  local dtype, count = layout(self, name)
  if not dtype then return nil, count end
  local bytes = count * numbers.SIZES[dtype]
  if buffer ~= nil then
    if type(buffer) == "cdata" then numbers.check_array(buffer, dtype, count, 2) end
    return core.done(C.cairn_session_read(self:raw(), name, buffer, bytes, core.raw_error))
  end
  local made = numbers.buffer(dtype, count)
  local status = C.cairn_session_read(self:raw(), name, made, bytes, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return numbers.unpack(made, dtype, count)
end

function Session:run() return core.done(C.cairn_session_run(self:raw(), core.raw_error)) end
function Session:cancel() C.cairn_session_cancel(self:raw()) end

-- {reserved_bytes, peak_bytes, live_peak_bytes} of a tier: "device", "host" or "disk"; of the device also what its
-- driver counts, driver_before_bytes and driver_bytes (0 where it does not).
function Session:usage(tier)
  local number = core.TIER_NUMBERS[tier or "device"]
  if not number then error("tier: one of device, host, disk", 2) end
  local usage = ffi.new("cairn_tier_usage_t", { ffi.sizeof("cairn_tier_usage_t") })
  local status = C.cairn_session_usage(self:raw(), number, usage, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return { reserved_bytes = tonumber(usage.reserved_bytes), peak_bytes = tonumber(usage.peak_bytes),
           live_peak_bytes = tonumber(usage.live_peak_bytes), driver_bytes = tonumber(usage.driver_bytes),
           driver_before_bytes = tonumber(usage.driver_before_bytes) }
end

-- Whether later runs record when each op and copy ran.
function Session:trace(on) return core.done(C.cairn_session_trace(self:raw(), on and 1 or 0, core.raw_error)) end

local _, LANES = core.enum("CAIRN_LANE_", "compute copy_out copy_in host host_in host_out")
-- The spans of the last traced run: an array of {name, lane, tier, begin_seconds, end_seconds, live_bytes}.
function Session:spans()
  local list = {}
  local span = ffi.new("cairn_span_t", { ffi.sizeof("cairn_span_t") })
  while true do
    local status = C.cairn_session_span(self:raw(), #list, span, core.raw_error)
    if status == C.CAIRN_STATUS_NOT_FOUND then return list end
    if status ~= 0 then return core.failed(status) end
    list[#list + 1] = {
      name = ffi.string(span.name), lane = LANES[span.lane], tier = span.lane ~= 0 and core.TIERS[span.tier] or nil,
      begin_seconds = span.begin_seconds, end_seconds = span.end_seconds, live_bytes = tonumber(span.live_bytes),
    }
  end
end

-- XXH3-128 over all parameters, 32 hex digits.
function Session:digest()
  local hex = ffi.new("char[33]")
  local status = C.cairn_session_digest(self:raw(), hex, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return ffi.string(hex)
end

-- The same over the frozen parameters alone.
function Session:base_digest()
  local hex = ffi.new("char[33]")
  local status = C.cairn_session_base_digest(self:raw(), hex, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return ffi.string(hex)
end

-- Rows {ours, theirs, transposed, stacked} (named or by position) as the C array, with what must stay alive. stacked: a
-- row for each element of the first dimension of ours, in their order. Rows of a GGUF file may say how it has the
-- values otherwise: interleaved = heads (the halves of each head's rows take turns there) or groups, ways, unit as
-- cairn_layout_t has them, and offset (what is added there).
local function name_rows(rows)
  local array = ffi.new("cairn_name_t[?]", math.max(#(rows or {}), 1))
  local layouts = {}
  for i, row in ipairs(rows or {}) do
    array[i - 1].ours, array[i - 1].theirs = row.ours or row[1], row.theirs or row[2]
    array[i - 1].transposed = (row.transposed or row[3]) and 1 or 0
    array[i - 1].stacked = (row.stacked or row[4]) and 1 or 0
    if row.interleaved or row.ways or row.offset then layouts[#layouts + 1] = row end
  end
  local laid = ffi.new("cairn_layout_t[?]", math.max(#layouts, 1))
  for i, row in ipairs(layouts) do
    laid[i - 1] = { row.ours or row[1], row.interleaved or row.groups or 1, row.interleaved and 2 or row.ways or 1,
                    row.unit or 1, row.offset or 0 }
  end
  return array, #(rows or {}), laid, #layouts
end

-- All parameters to and from a safetensors file, under other names. An import also takes the directory of a model or a
-- GGUF file; an export makes one with `directory` among its options: {dtype, frozen_dtype (both "f32", "bf16" or
-- "f16"), directory, shard_bytes, files (paths of what is copied into it), file_name, metadata (a table of strings),
-- merges (rows {weight, a, b, magnitude, scale, table, format}: see cairn_merge_t), dequantise}, and a GGUF file with
-- `gguf`, its metadata as a text of JSON (then dtype may be "q8_0" ..., too). Returns true, or {largest, mean} of
-- merges.
function Session:export(path, rows, options)
  local array, count, laid, layouts = name_rows(rows)
  if not options then return core.done(C.cairn_session_export(self:raw(), path, array, count, core.raw_error)) end
  local files = options.files or {}
  local paths = ffi.new("const char*[?]", math.max(#files, 1), files)
  local given = ffi.new("cairn_export_options_t", {
    struct_size = ffi.sizeof("cairn_export_options_t"), dtype = options.dtype, frozen_dtype = options.frozen_dtype,
    directory = options.directory and 1 or 0, shard_bytes = options.shard_bytes or 0, files = paths,
    file_count = #files, file_name = options.file_name, dequantise = options.dequantise and 1 or 0,
    container = options.gguf and "gguf" or nil, gguf_metadata = options.gguf, layouts = laid, layout_count = layouts })
  given.metadata, given.metadata_count = core.metadata(options.metadata)
  local rows_of, anchors = options.merges or {}, { given.metadata }
  local merges, difference = ffi.new("cairn_merge_t[?]", math.max(#rows_of, 1)), ffi.new("double[2]")
  for i, row in ipairs(rows_of) do
    local to = merges[i - 1]
    to.weight, to.a, to.b, to.magnitude, to.format = row.weight, row.a, row.b, row.magnitude, row.format
    to.scale, to.kind = row.scale or 1, row.table and C.CAIRN_MERGE_TABLE or C.CAIRN_MERGE_MATRIX
  end
  given.merges, given.merge_count, given.out_difference = merges, #rows_of, difference
  local status = C.cairn_session_export_as(self:raw(), path, array, count, given, core.raw_error)
  core.alive(anchors)
  if status ~= 0 or not options.merges then return core.done(status) end
  return { largest = difference[0], mean = difference[1] }
end
-- A row without theirs: the file is not asked for this parameter, which keeps its value, and is not written.
function Session:import(path, rows)
  local array, count, laid, layouts = name_rows(rows)
  local given = ffi.new("cairn_import_options_t", { ffi.sizeof("cairn_import_options_t"), laid, layouts })
  return core.done(C.cairn_session_import_as(self:raw(), path, array, count, given, core.raw_error))
end

return { Session = Session }
