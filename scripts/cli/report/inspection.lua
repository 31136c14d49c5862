-- What `cairn inspect` says for people: facts, and a table of what a file holds.
local decode = require "cli.base.json_decode"
local format = require "cli.base.format"
local numbers = require "cairn.numbers"
local recipes = require "cli.recipe.load"
local unicode = require "cli.base.unicode"

local inspection = {}

local function sorted(list, before)
  local keys = {}
  for key in pairs(list or {}) do keys[#keys + 1] = key end
  table.sort(keys, before)
  return keys
end

-- h.2 before h.10.
local function natural(name)
  return (name:gsub("%d+", function(digits) return ("%012d"):format(tonumber(digits) or 0):sub(-12) end))
end
local function by_name(a, b)
  local x, y = natural(a), natural(b)
  if x == y then return a < b end
  return x < y
end

-- A value on a line; nil: it is no such value.
local function scalar(value)
  if type(value) == "table" then return nil end
  return unicode.shown(recipes.value_text(value))
end

local Lines = {}
Lines.__index = Lines
function Lines:add(what, text) self[#self + 1] = ("%-17s %s"):format(what, text) end

local MOST_ITEMS, MOST_LETTERS = 8, 160  -- of a list and of a text that a line of metadata shows

-- A value of metadata on a line, shortened where it is long.
local function shortened(value)
  local text = scalar(value)
  if text and #text > MOST_LETTERS then
    return ("%s... %s bytes"):format(text:sub(1, MOST_LETTERS), format.count(#value))
  end
  if text then return text end
  local words = {}
  for i = 1, math.min(#value, MOST_ITEMS) do words[i] = scalar(value[i]) or "[...]" end
  local more = #value > MOST_ITEMS and (", ... %s in all"):format(format.count(#value)) or ""
  return "[" .. table.concat(words, ", ") .. more .. "]"
end

-- All scalars of an object, by name; `skip`: those that were told of.
function Lines:scalars(list, skip)
  for _, key in ipairs(sorted(list)) do
    local text = scalar(list[key])
    if text and not (skip and skip[key]) then self:add(unicode.shown(tostring(key)), text) end
  end
end

-- Option values that a checkpoint keeps, as they are typed.
function Lines:options(metadata)
  local words = {}
  for _, key in ipairs(sorted(metadata)) do
    local name = key:match("^option%.(.*)$")
    local text = name and scalar(metadata[key])
    if text and text ~= "" then words[#words + 1] = unicode.shown(name) .. "=" .. text end
  end
  if #words > 0 then self:add("options", format.wrapped(table.concat(words, " "), format.columns(1), 18, 18)) end
end

local function shape_of(dims)
  local words = {}
  for i, dim in ipairs(dims or {}) do words[i] = ("%d"):format(dim) end
  return "[" .. table.concat(words, ", ") .. "]"
end

-- Rows of tensors {dtype, shape, bytes or offset} by name; a checkpoint's as they lie in it.
local function tensors_text(list, checkpoint)
  local names = sorted(list, function(a, b)
    local x, y = list[a].offset, list[b].offset
    if checkpoint and x ~= y then return x < y end
    return by_name(a, b)
  end)
  local rows, all = {}, 0
  for i, name in ipairs(names) do
    local row = list[name]
    local bytes = row.bytes or numbers.count(row.shape) * (numbers.SIZES[row.dtype] or 0)
    all = all + bytes
    rows[i] = { unicode.shown(name), unicode.shown(row.dtype), shape_of(row.shape), format.count(bytes) }
  end
  rows[#rows + 1] = { ("%s tensors"):format(format.count(#names)), "", "", format.count(all) }
  return format.table(rows, { "tensor", "type", "shape", "bytes" })
end

-- How many parameters there are of what was read; nil: nothing says so.
function inspection.parameter_count(read)
  if read.model then return read.model.parameter_count end
  if read.kind ~= "safetensors" and read.kind ~= "gguf" then return nil end
  local count = 0
  for _, row in pairs(read.tensors) do count = count + numbers.count(row.shape) end
  return count
end

-- The library's JSON with the number of parameters.
function inspection.json(text)
  local count = inspection.parameter_count(decode(text))
  if not count then return text end
  return (text:gsub('^({"kind": "%w+")', ('%%1, "parameter_count": %d'):format(count), 1))
end

local TOLD = { step = true, kind = true, parameter_count = true }
local FIRST = { "recipe", "cairn", "device", "seed", "accumulate", "amp", "amp.rules", "steps", "base.path",
                "base.digest" }
local HIDDEN = { ["recipe.text"] = true }  -- a program, which a line does not hold

function inspection.text(path, text)
  local read = decode(text)
  local lines = setmetatable({}, Lines)
  lines:add(unicode.shown(read.kind), unicode.shown(path))
  local state, metadata = read.state or {}, read.metadata or {}
  if state.step then
    lines:add("step", ("%d%s"):format(state.step, (state.micro or 0) > 0
      and (", and %d micro-batches of the next"):format(state.micro) or ""))
  end
  for _, key in ipairs(FIRST) do
    if metadata[key] then lines:add(key, scalar(metadata[key]) or "") end
  end
  lines:options(metadata)
  local count = inspection.parameter_count(read)
  if count then lines:add("parameters", format.parameters(count)) end
  lines:scalars(state, TOLD)
  for i, group in ipairs(state.groups or {}) do
    local words = { unicode.shown(group.optimizer) }
    for _, key in ipairs(sorted(group.hypers)) do words[#words + 1] = key .. "=" .. scalar(group.hypers[key]) end
    lines:add(i == 1 and "optimizer" or "", format.wrapped((group.pattern ~= "" and unicode.shown(group.pattern) .. ": "
      or "") .. table.concat(words, " "), format.columns(1), 18, 18))
  end
  local skip = {}
  for _, key in ipairs(FIRST) do skip[key] = true end
  for _, key in ipairs(sorted(metadata)) do
    if not skip[key] and not HIDDEN[key] and not key:find("^option%.") then
      lines:add(unicode.shown(key), read.kind == "gguf" and shortened(metadata[key]) or scalar(metadata[key]) or "")
    end
  end
  lines:scalars(read.model, { parameter_count = true })
  lines:scalars(read.plan)
  for _, tier in ipairs(sorted(read.plan and read.plan.peak_bytes)) do
    lines:add("peak, " .. unicode.shown(tier), format.count(read.plan.peak_bytes[tier]) .. " bytes")
  end
  lines:scalars(read, TOLD)
  for _, key in ipairs(sorted(read.files)) do
    lines:add("file", ("%s, %s bytes"):format(unicode.shown(key), format.count(read.files[key].bytes)))
  end
  for _, key in ipairs(sorted(read.model and read.model.inputs)) do
    local input = read.model.inputs[key]
    lines:add("input", ("%s, %s %s"):format(unicode.shown(key), unicode.shown(input.dtype), shape_of(input.shape)))
  end
  local tensors = read.tensors or read.model and read.model.parameters
  local all = table.concat(lines, "\n") .. "\n"
  return tensors and all .. "\n" .. tensors_text(tensors, read.tensors and read.kind == "checkpoint") or all
end

return inspection
