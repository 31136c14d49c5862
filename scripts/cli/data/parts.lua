-- Micro-batches of a dataset that are trained on in equal parts, along the first dimension of their arrays.
local ffi = require "ffi"
local changed = require "cli.base.changed"
local fail = require "cli.base.fail"

local parts = {}

-- A dataset of `count` times as many micro-batches, whose batch(index) gives the whole one that part `index` is of.
-- data.rebase(arrays, part, count): makes numbers of rows in arrays those that the rows have in that part (optional).
function parts.dataset(data, count)
  local made = changed(data, { parts = count, batches = data.batches and data.batches * count })
  function made.batch(index)
    if not data.rebase then return data.batch(math.floor(index / count)) end
    local results = { data.batch(math.floor(index / count)) }
    data.rebase(results[1], index % count, count)
    return unpack(results, 1, 4)
  end
  return made
end

local function elements(shape)
  local count = 1
  for _, dim in ipairs(shape) do count = count * dim end
  return count
end

-- How many numbers an array has; nil: it is a pointer, which does not say.
local function size_of(array)
  if type(array) == "table" then return #array end
  local element = tostring(ffi.typeof(array)):match("^ctype<([%w_ ]+) %[")
  return element and ffi.sizeof(array) / ffi.sizeof((element:gsub("^const ", "")))
end

-- Part `part` of an array of `count` parts of n numbers; all of one that has n: it is the same for every sample.
local function slice(what, array, part, count, n)
  local size = size_of(array) or count * n
  if size == n then return array end
  if size ~= count * n then
    fail.input(("%s has %d numbers, which cannot be trained on in %d parts of %d"):format(what, size, count, n))
  end
  if type(array) ~= "table" then return array + part * n end
  local list = {}
  for i = 1, n do list[i] = array[part * n + i] end
  return list
end

-- What micro-batch `index` is of the arrays by input name. inputs: of the graph that it goes into.
function parts.of(place, arrays, index, count, inputs)
  local list = {}
  for _, input in ipairs(inputs) do
    local array = arrays[input.name]
    if array ~= nil then
      list[input.name] = slice(("%s: micro-batch %d, input '%s'"):format(place, index, input.name), array,
        index % count, count, elements(input.shape))
    end
  end
  return list
end

return parts
