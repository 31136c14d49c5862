-- Tensors as Lua arrays: flat, row-major, from 1. For larger data pass FFI buffers, which are copied as they are.
local ffi = require "ffi"

local numbers = {}

local PLAIN = { f32 = "float", f64 = "double", i32 = "int32_t", i64 = "int64_t", u8 = "uint8_t" }
-- The least and most of each kind of whole numbers that an array of Lua numbers can give.
local WHOLE = { i32 = { -2 ^ 31, 2 ^ 31 - 1 }, i64 = { -2 ^ 53, 2 ^ 53 }, u8 = { 0, 255 } }
local SIZES = { f32 = 4, f64 = 8, i32 = 4, i64 = 8, u8 = 1, bf16 = 2, f16 = 2 }
numbers.SIZES = SIZES

function numbers.count(shape)
  local count = 1
  for _, dim in ipairs(shape) do count = count * dim end
  return count
end

local view = ffi.new("union { float real; uint32_t bits; }")

-- A buffer of `count` elements and its size in bytes.
function numbers.buffer(dtype, count)
  local ctype = PLAIN[dtype] or "uint16_t"
  return ffi.new(ctype .. "[?]", math.max(count, 1)), count * SIZES[dtype]
end

function numbers.pack(list, dtype, count, level)
  if #list ~= count then error(("%d numbers given, %d needed"):format(#list, count), level + 1) end
  local buffer, bytes = numbers.buffer(dtype, count)
  for i = 1, count do
    if type(list[i]) ~= "number" then error(("number %d is a %s"):format(i, type(list[i])), level + 1) end
  end
  if WHOLE[dtype] then
    local least, most = WHOLE[dtype][1], WHOLE[dtype][2]
    for i = 1, count do
      local value = list[i]
      if not (value >= least and value <= most) or value ~= math.floor(value) then
        error(("number %d is %.15g; %s holds whole numbers from %.0f to %.0f"):format(i, value, dtype, least, most),
          level + 1)
      end
      buffer[i - 1] = value
    end
  elseif PLAIN[dtype] then
    for i = 1, count do buffer[i - 1] = list[i] end
  elseif dtype == "bf16" then
    for i = 1, count do  -- to nearest, ties to even
      view.real = list[i]
      local low, high = view.bits % 65536, math.floor(view.bits / 65536)
      if low > 32768 or (low == 32768 and high % 2 == 1) then high = high + 1 end
      buffer[i - 1] = high
    end
  else
    error(("arrays of %s cannot be given as Lua numbers"):format(dtype), level + 1)
  end
  return buffer, bytes
end

-- Checks an FFI array against what is needed: its size, and that its elements are of the right type, or bytes. Of a
-- pointer nothing is known.
function numbers.check_array(data, dtype, count, level)
  local element = tostring(ffi.typeof(data)):match("^ctype<([%w_ ]+) %[")
  if not element then return end
  element = element:gsub("^const ", "")
  local known, each = pcall(ffi.typeof, element)
  local wanted, size, bytes = PLAIN[dtype] or "uint16_t", ffi.sizeof(data), count * SIZES[dtype]
  if known and ffi.sizeof(each) > 1 and each ~= ffi.typeof(wanted) then
    error(("an array of %s given, %s needed for %s"):format(element, wanted, dtype), level + 1)
  end
  if size ~= bytes then
    error(("an array of %d bytes given, %d needed: %d of %s"):format(size, bytes, count, dtype), level + 1)
  end
end

function numbers.unpack(buffer, dtype, count)
  local list = {}
  for i = 1, count do
    if dtype == "bf16" then
      view.bits = buffer[i - 1] * 65536
      list[i] = view.real
    else
      list[i] = tonumber(buffer[i - 1])
    end
  end
  return list
end

return numbers
