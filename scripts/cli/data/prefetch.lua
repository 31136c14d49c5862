-- --prefetch N: micro-batches of a recipe are made ahead, up to N of them, on a thread with an interpreter of its own
-- (prefetch.c, cli.data.ahead), while the model computes. batch(index) is a pure function of its number, so no bit
-- depends on who calls it. What that thread cannot make, or makes with an error, is made here, as without it.
local ffi = require "ffi"
local changed = require "cli.base.changed"
local fail = require "cli.base.fail"
local native = require "cli.native"
local numbers = require "cairn.numbers"

ffi.cdef "void free(void* block);"

local prefetch = {}

-- A table of numbers, texts, booleans and such tables as the text of a Lua expression.
local function literal(value)
  if type(value) == "number" then return ("%.17g"):format(value) end
  if type(value) == "string" then return ("%q"):format(value) end
  if type(value) ~= "table" then return tostring(value) end
  local words = {}
  for key, each in pairs(value) do
    if type(each) ~= "function" then words[#words + 1] = ("[%s]=%s,"):format(literal(key), literal(each)) end
  end
  return "{" .. table.concat(words) .. "}"
end

-- {dtype, count} by input name; parts: in how many a micro-batch of the data is trained on.
local function sizes(inputs, parts)
  local list = {}
  for _, input in ipairs(inputs) do
    list[input.name] = { dtype = input.dtype, count = numbers.count(input.shape) * parts }
  end
  return list
end

local function settings_of(run, o, about)
  local parts, inputs, measured = run.spec.parts or 1, {}, false
  for key, program in pairs(run.programs or { run }) do
    if type(program) == "table" and program.inputs then inputs[key] = sizes(program.inputs, parts) end
  end
  for _, row in ipairs(run.graph.metrics or {}) do measured = measured or row.outputs ~= nil end
  return "return " .. literal {
    path = run.recipe.path, root = run.recipe.root, o = o, inputs = inputs, measured = measured,
    about = { seed = about.seed, steps = about.steps, accumulate = about.accumulate,
              tokenizer = about.tokenizer } }
end

-- The arrays that a block holds, as batch would have returned them. They are valid until the next call.
local function unpacked(buffers, rows, block)
  local arrays = {}
  for _, row in ipairs(rows) do
    local name, kind, element, count, at, bytes = unpack(row)
    local key = ("%s %s %d"):format(name, element, count)
    local array = buffers[key] or ffi.new(element .. "[?]", math.max(count, 1))
    buffers[key] = array
    ffi.copy(array, block + at, bytes)
    arrays[name] = kind == "table" and numbers.unpack(array, "f64", count) or array
  end
  return arrays
end

-- A dataset whose micro-batches are made ahead. run: as run.open makes it, by the time of the first one; o, about: what
-- the recipe's dataset was called with; count: how many ahead.
function prefetch.dataset(data, run, o, about, count)
  local opened, alone, buffers, last = false, false, {}, nil
  local function taken(index)
    if not opened then
      opened = true
      local worker = run.recipe.root .. "/scripts/cli/data/ahead.lua"
      alone = not native.prefetch_open(worker, settings_of(run, o, about), count, index)
    end
    local header, address = native.prefetch_take(index)
    if header == false then fail.interrupted(run.recipe.path) end
    if header == nil then
      if address then
        alone = true
        run.spec.note("note: --prefetch: no micro-batch is made ahead: " .. address)
      end
      return nil
    end
    local block = ffi.gc(ffi.cast("char*", address), ffi.C.free)
    local rows, tokens, which, samples = loadstring(header)()
    return { index = index, arrays = unpacked(buffers, rows, block), tokens = tokens, which = which, samples = samples }
  end
  return changed(data, { plain = data.batch, skipped = false, batch = function(index)
    if last and last.index == index then return last.arrays, last.tokens, last.which, last.samples end
    last = not alone and taken(index) or nil
    if not last then return data.batch(index) end
    return last.arrays, last.tokens, last.which, last.samples
  end })
end

function prefetch.close() native.prefetch_close() end

return prefetch
