-- TensorBoard's event files: records of a length, a checksum of it, the bytes of an Event message (protocol buffers),
-- and a checksum of these. Checksums are CRC-32C, rotated by 15 bits and shifted by a constant.
local bit = require "bit"
local ffi = require "ffi"
local posix = require "cli.base.posix"

local tensorboard = {}

local POLYNOMIAL = 0x82f63b78  -- CRC-32C (Castagnoli), reflected
local MASK = 0xa282ead8
local ROW = ffi.new("int32_t[256]")
for byte = 0, 255 do
  local crc = byte
  for _ = 1, 8 do
    local low = bit.band(crc, 1)
    crc = bit.rshift(crc, 1)
    if low == 1 then crc = bit.bxor(crc, POLYNOMIAL) end
  end
  ROW[byte] = crc
end

-- CRC-32C of a text, as an unsigned number.
function tensorboard.crc(text)
  local crc, bytes = bit.tobit(0xffffffff), ffi.cast("const uint8_t*", text)
  for i = 0, #text - 1 do
    local at = bit.band(bit.bxor(crc, bytes[i]), 255)
    crc = bit.bxor(bit.rshift(crc, 8), ROW[at])
  end
  return tonumber(ffi.cast("uint32_t", bit.bnot(crc)))
end

local CELLS = { float = ffi.new "float[1]", double = ffi.new "double[1]", uint32_t = ffi.new "uint32_t[1]",
                uint64_t = ffi.new "uint64_t[1]" }
-- A number's bytes, the lowest first.
local function number(ctype, value)
  local cell = CELLS[ctype]
  cell[0] = value
  return ffi.string(cell, ffi.sizeof(cell))
end

local function masked(text)
  local crc = bit.tobit(tensorboard.crc(text))
  local turned = bit.bor(bit.rshift(crc, 15), bit.lshift(crc, 17))
  return number("uint32_t", (tonumber(ffi.cast("uint32_t", turned)) + MASK) % 2 ^ 32)
end

local function record(data)
  local length = number("uint64_t", #data)
  return length .. masked(length) .. data .. masked(data)
end

-- Fields of a message: tag and wire type, then the value.
local VARINT, DOUBLE, BYTES, FLOAT = 0, 1, 2, 5

local function varint(value)
  local bytes = {}
  repeat
    local low = value % 128
    value = (value - low) / 128
    bytes[#bytes + 1] = string.char(value > 0 and low + 128 or low)
  until value == 0
  return table.concat(bytes)
end
local function field(tag, kind, data) return varint(tag * 8 + kind) .. data end
local FLOAT_VALUE = field(2, FLOAT, "")
local function text_field(tag, text) return field(tag, BYTES, varint(#text) .. text) end

-- message Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5;
-- SessionLog session_log = 7; }
local function event(seconds, step, rest)
  return record(field(1, DOUBLE, number("double", seconds)) .. (step and field(2, VARINT, varint(step)) or "") .. rest)
end

-- The field of a value's tag, made once.
local tags = setmetatable({}, { __index = function(self, name)
  self[name] = text_field(1, name)
  return self[name]
end })

-- A record of scalars {name, value} of a step; values that are no finite numbers are kept, as TensorBoard shows them.
-- message Summary { repeated Value value = 1; }, Value { string tag = 1; float simple_value = 2; }
function tensorboard.scalars(seconds, step, rows)
  local values = {}
  for i, row in ipairs(rows) do
    values[i] = text_field(1, tags[row[1]] .. FLOAT_VALUE .. number("float", row[2]))
  end
  return event(seconds, step, text_field(5, table.concat(values)))
end

-- What a file begins with. from: the first step of what follows, where the run goes on: what older files of the
-- directory hold of that step and later ones is then passed over (SessionLog { SessionStatus status = 1; }, START = 1).
function tensorboard.head(seconds, from)
  local version = event(seconds, nil, text_field(3, "brain.Event:2"))
  return from and version .. event(seconds, from, text_field(7, field(1, VARINT, varint(1)))) or version
end

local PREFIX = "events.out.tfevents."

-- The name of a new file in `directory`.
function tensorboard.path(directory)
  local number_of_file = 0
  repeat
    local path = ("%s/%s%010d.%s.%d.%d"):format(directory, PREFIX, math.floor(posix.wall()), posix.host() or "host",
      posix.pid(), number_of_file)
    if not posix.is_there(path) then return path end
    number_of_file = number_of_file + 1
  until false
end

-- Event files in a directory.
function tensorboard.files(directory)
  local found = {}
  for _, name in ipairs(posix.list(directory) or {}) do
    if name:sub(1, #PREFIX) == PREFIX then found[#found + 1] = directory .. "/" .. name end
  end
  return found
end

return tensorboard
