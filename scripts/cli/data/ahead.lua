-- What the thread of prefetch.c runs: a recipe's data, opened a second time in an interpreter of its own, and a
-- micro-batch of them packed into one block of memory. Called with the text of a table (cli.data.prefetch writes it);
-- returns a function that makes a micro-batch by its number.
local ffi = require "ffi"
local numbers = require "cairn.numbers"
local recipes = require "cli.recipe.load"
local runs = require "cli.train.run"

ffi.cdef "void* malloc(size_t size);"

local ALIGNMENT = 64  -- bytes, of each array in the block

-- What is to be copied of an array: {kind, element, count, from}. input: {dtype, count} of the graph's input.
local function described(array, input, measured)
  if type(array) == "table" then
    if measured then  -- a recipe's measure sees the numbers that batch gave, not what is left of them in the input
      local list = ffi.new("double[?]", math.max(#array, 1))
      for i = 1, #array do list[i - 1] = array[i] end
      return { "table", "double", #array, list }
    end
    local packed = numbers.pack(array, input.dtype, #array, 1)
    return { "array", tostring(ffi.typeof(packed)):match("^ctype<([%w_ ]+) %["), #array, packed }
  end
  local element = tostring(ffi.typeof(array)):match("^ctype<([%w_ ]+) [%[%*]"):gsub("^const ", "")
  local sized = tostring(ffi.typeof(array)):find("[", 1, true)
  return { "array", element, sized and ffi.sizeof(array) / ffi.sizeof(element) or input.count, array }
end

local function pack(settings, arrays, tokens, which, samples)
  local inputs = settings.inputs[which == nil and 1 or which]
  local rows, bytes = {}, 0
  for name, array in pairs(arrays) do
    local row = described(array, inputs[name], settings.measured)
    row.name, row.at, row.bytes = name, bytes, row[3] * ffi.sizeof(row[2])
    bytes = math.ceil((bytes + row.bytes) / ALIGNMENT) * ALIGNMENT
    rows[#rows + 1] = row
  end
  local block = ffi.cast("char*", ffi.C.malloc(math.max(bytes, 1)))
  if block == nil then error("not enough memory") end
  local words = { "return {" }
  for _, row in ipairs(rows) do
    ffi.copy(block + row.at, row[4], row.bytes)
    words[#words + 1] = ("{%q,%q,%q,%.0f,%.0f,%.0f},"):format(row.name, row[1], row[2], row[3], row.at, row.bytes)
  end
  local function literal(value) return type(value) == "string" and ("%q"):format(value) or tostring(value) end
  words[#words + 1] = ("},%s,%s,%s"):format(literal(tokens), literal(which), literal(samples))
  return table.concat(words), tonumber(ffi.cast("uintptr_t", block))
end

local settings = assert(loadstring((...)))()
local opened, data = pcall(function()
  local recipe = recipes.load(settings.path, settings.root)
  local about = runs.helpers(settings.about)
  about.note = function() end  -- said where the run opened them
  return recipe.call("dataset", settings.o, about)
end)
if not opened then error(tostring(data), 0) end  -- a text is all that leaves this interpreter

return function(index) return pack(settings, data.batch(index)) end
