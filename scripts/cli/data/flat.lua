-- Numbers one after the other, in as many bytes each as the largest needs, which grow without being copied in Lua.
local ffi = require "ffi"
require "cli.base.posix"  -- declares free

ffi.cdef "void* realloc(void* block, size_t bytes);"

local flat = {}
flat.__index = flat

local FIRST = 65536  -- bytes

-- An empty list of whole numbers from 0 to `most`.
function flat.new(most)
  local kind = most < 2 ^ 8 and "uint8_t" or most < 2 ^ 16 and "uint16_t" or most < 2 ^ 31 and "int32_t" or "double"
  return setmetatable({ pointer = ffi.typeof("$*", ffi.typeof(kind)), width = ffi.sizeof(kind), count = 0, room = 0 },
    flat)
end

-- Room for `more` numbers behind those that are there.
function flat:reserve(more)
  local needed = (self.count + more) * self.width
  if needed <= self.room then return end
  local room = math.max(FIRST, math.ceil(self.room * 1.5), needed)
  local block = ffi.C.realloc(self.block and ffi.gc(self.block, nil) or nil, room)
  if block == nil then
    if self.block then ffi.gc(self.block, ffi.C.free) end
    error("not enough memory", 0)
  end
  self.block, self.room = ffi.gc(block, ffi.C.free), room
  self.data = ffi.cast(self.pointer, block)
end

function flat:add(number)
  self:reserve(1)
  self.data[self.count] = number
  self.count = self.count + 1
end

-- Adds `count` numbers of an int32 array.
function flat:append(array, count)
  self:reserve(count)
  local data, first = self.data, self.count
  for i = 0, count - 1 do data[first + i] = array[i] end
  self.count = first + count
end

-- Leaves the first `count`.
function flat:cut(count) self.count = count end

return flat
