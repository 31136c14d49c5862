-- What all chapters of the binding share: the library, errors, and objects over handles.
-- Expected failures come back as nil, err; err is a table {code, status, message, fault} that prints as its message.
-- Misuse of the binding itself (a wrong type, an object that was freed) raises an error at the caller's line.
local ffi = require "ffi"

ffi.cdef(require "cairn.cdef")

local core = {}

local MAJOR = 1  -- of the versions whose functions have the arguments that cdef.lua says

-- The library at `path`, or nil and what is wrong with it.
local function load_path(path)
  local ok, found = pcall(ffi.load, path)
  if not ok then return nil, tostring(found) end
  local has, number = pcall(function() return found.cairn_version_number() end)
  if not has then return nil, path .. ": this is not libcairn" end
  if math.floor(number / 10000) == MAJOR then return found end
  return nil, ("%s: this is cairn %s; the binding needs libcairn %d.x"):format(path, ffi.string(found.cairn_version()),
    MAJOR)
end

-- The library: $CAIRN_LIBRARY and no other if it is set; else the one the running program is linked with, beside an
-- installed binding, the system's.
local function load_library()
  local given = os.getenv("CAIRN_LIBRARY")
  if given and given ~= "" then
    local found, problem = load_path(given)
    if found then return found end
    error(("CAIRN_LIBRARY=%s: %s; set it to the path of a libcairn.so.%d, or not at all"):format(given, problem,
      MAJOR), 0)
  end
  local linked, linked_path = pcall(require, "cairn.library")
  local here = debug.getinfo(1, "S").source:match("^@(.*/)cairn/core%.lua$")
  local tried = {}
  local name, candidates = "libcairn.so." .. MAJOR, { linked and linked_path or nil }
  if here then  -- PREFIX/share/cairn/bindings/lua, PREFIX/share/lua/5.1
    for _, folder in ipairs { "", "../../../../lib/", "../../../lib/" } do
      candidates[#candidates + 1] = here .. folder .. name
    end
  end
  candidates[#candidates + 1] = name
  for _, path in ipairs(candidates) do
    local found, problem = load_path(path)
    if found then return found end
    tried[#tried + 1] = problem
  end
  error(("libcairn %d.x was not found; install it, or set CAIRN_LIBRARY to the path of a libcairn.so.%d:\n  %s"):format(
    MAJOR, MAJOR, table.concat(tried, "\n  ")), 0)
end

local C = load_library()
core.C = C

-- Sees errors that a call of the binding passes on, where they are raised: what is raised again has lost the place.
function core.explain(problem) return core.on_error and core.on_error(problem) or problem end

local Error = {}
Error.__index = Error
Error.__tostring = function(self) return self.message end
Error.__concat = function(a, b) return tostring(a) .. tostring(b) end
core.Error = Error

-- The header's constants PREFIX + WORD: numbers by word, and words by number.
function core.enum(prefix, words)
  local numbers, names = {}, {}
  for word in words:gmatch("%S+") do
    local number = tonumber(C[prefix .. word:upper()])
    numbers[word], names[number] = number, word
  end
  return numbers, names
end

local TIER_NUMBERS, TIERS = core.enum("CAIRN_TIER_", "device host disk")
core.TIERS = TIERS
-- A tier that something may be offloaded to, by its name.
core.LOWER_TIERS = { host = TIER_NUMBERS.host, disk = TIER_NUMBERS.disk }
core.TIER_NUMBERS = TIER_NUMBERS

-- One error object for all calls: a Lua state runs one call at a time.
local raw_error = ffi.gc(C.cairn_error_create(), C.cairn_error_release)
core.raw_error = raw_error

local function read_fault()
  local fault = ffi.new("cairn_memory_fault_t", { ffi.sizeof("cairn_memory_fault_t") })
  if C.cairn_error_memory_fault(raw_error, fault) ~= 0 then return nil end
  return {
    requested_bytes = tonumber(fault.requested_bytes), in_use_bytes = tonumber(fault.in_use_bytes),
    budget_bytes = tonumber(fault.budget_bytes), smallest_budget_bytes = tonumber(fault.smallest_budget_bytes),
    tier = TIERS[fault.tier], region = ffi.string(fault.region),
  }
end

function core.make_error(status, message, fault)
  return setmetatable({ code = status, status = ffi.string(C.cairn_status_name(status)), message = message,
                        fault = fault }, Error)
end

-- nil, err of the call that just gave `status`.
function core.failed(status)
  local message = ffi.string(C.cairn_error_message(raw_error))
  local about_memory = status == C.CAIRN_STATUS_OUT_OF_MEMORY or status == C.CAIRN_STATUS_OVER_BUDGET
  return nil, core.make_error(status, message, about_memory and read_fault() or nil)
end

-- true, or nil, err.
function core.done(status)
  if status == 0 then return true end
  return core.failed(status)
end

-- Whether a table of the library's has one more row, by the status of the call that asked for it: a call that fails for
-- another reason, such as memory, is no end of the table.
function core.more(status)
  if status ~= 0 and status ~= C.CAIRN_STATUS_NOT_FOUND then error(tostring(select(2, core.failed(status))), 0) end
  return status == 0
end

-- A class of objects that hold one reference to a handle. The finalizer is a safety net: the collector does not see the
-- library's bytes, so call :free() when memory matters. Freeing twice is nothing.
function core.class(name)
  local class = {}
  class.__index = class
  class.__tostring = function(self)
    return ("cairn.%s%s"):format(name, self.handle == nil and " (freed)" or "")
  end
  local release = C["cairn_" .. name .. "_release"]
  function class.wrap(handle, fields)
    fields = fields or {}
    fields.handle = ffi.gc(handle, release)
    return setmetatable(fields, class)
  end
  function class:free()
    local handle = self.handle
    if handle == nil then return end
    self.handle = nil
    release(ffi.gc(handle, nil))
  end
  -- The handle, or an error at the line that called the method which asks.
  function class:raw(level)
    local handle = self.handle
    if handle == nil then error(("this %s was freed"):format(name), (level or 2) + 1) end
    return handle
  end
  return class
end

function core.is(class, object) return type(object) == "table" and getmetatable(object) == class end

function core.expect(class, object, what, level)
  if not core.is(class, object) then
    error(("%s expected, got %s"):format(what, type(object)), (level or 2) + 1)
  end
  return object
end

function core.expect_type(value, kind, what, level)
  if type(value) ~= kind then
    error(("%s: %s expected, got %s"):format(what, kind, type(value)), (level or 2) + 1)
  end
  return value
end

-- A struct with struct_size from a table of options: every key must be in `known`, as a field's name or as a function
-- that sets it.
function core.options(ctype, options, known, level)
  local struct = ffi.new(ctype)
  struct.struct_size = ffi.sizeof(ctype)
  local anchors = {}
  for key, value in pairs(options or {}) do
    local field = known[key]
    if field == nil then
      local names = {}
      for name in pairs(known) do names[#names + 1] = name end
      table.sort(names)
      error(("unknown option '%s' (known: %s)"):format(tostring(key), table.concat(names, " ")), (level or 2) + 1)
    end
    if type(field) == "function" then
      field(struct, value, anchors)
    else
      if type(value) == "boolean" then value = value and 1 or 0 end
      local ok, problem = pcall(function() struct[field] = value end)
      if not ok then error(("option '%s': %s"):format(key, problem), (level or 2) + 1) end
      if type(value) == "number" then
        local held = tonumber(struct[field])
        if held ~= value and (held == held or value == value) then  -- cut to a whole number: -1 to 2^32 - 1, 2.5 to 2
          error(("option '%s' is %.15g; %s expected"):format(key, value, value > held and value == math.floor(value)
            and "a smaller number" or "a whole number of at least 0"), (level or 2) + 1)
        end
      end
      anchors[#anchors + 1] = value
    end
  end
  return struct, anchors
end

-- Keeps what a struct points to until here.
function core.alive() end

-- A field that takes one of a few words.
function core.word(field, words)
  return function(struct, value)
    local number = words[value]
    if number == nil then
      local names = {}
      for name in pairs(words) do names[#names + 1] = name end
      table.sort(names)
      error(("'%s' is none of: %s"):format(tostring(value), table.concat(names, ", ")), 4)
    end
    struct[field] = number
  end
end

-- A text made by the library, as a Lua string.
function core.take_text(out)
  local text = ffi.string(C.cairn_text_data(out[0]), C.cairn_text_size(out[0]))
  C.cairn_text_release(out[0])
  return text
end

core.DTYPES = { f32 = 0, bf16 = 1, f16 = 2, f64 = 3, i32 = 4, i64 = 5, u8 = 6 }
core.DTYPE_NAMES = {}
for name, number in pairs(core.DTYPES) do core.DTYPE_NAMES[number] = name end

local KINDS = { [0] = "input", "parameter", "activation", "statistic", "cache" }
-- {name, shape, dtype, kind, bytes} of the value that fill(info) tells of, or nil, err.
function core.value_info(fill)
  local info = ffi.new("cairn_value_info_t", { ffi.sizeof("cairn_value_info_t") })
  local status = fill(info)
  if status ~= 0 then return core.failed(status) end
  local shape = {}
  for i = 1, info.rank do shape[i] = tonumber(info.dims[i - 1]) end
  return { name = ffi.string(info.name), shape = shape, dtype = core.DTYPE_NAMES[info.dtype],
           kind = KINDS[info.kind], bytes = tonumber(info.bytes), frozen = info.frozen ~= 0 }
end

-- A table of strings as the C array, in the order of its keys, and how many there are. The strings must stay alive.
function core.metadata(words)
  local keys = {}
  for key in pairs(words or {}) do keys[#keys + 1] = key end
  table.sort(keys)
  local rows = ffi.new("cairn_metadata_t[?]", math.max(#keys, 1))
  for i, key in ipairs(keys) do
    rows[i - 1].key, rows[i - 1].value = key, core.expect_type(words[key], "string", "metadata " .. key)
  end
  return rows, #keys
end

return core
