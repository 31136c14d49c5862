-- What a plan holds for backward and how long its ops take, summed by op type, region and layer type.
local decode = require "cli.base.json_decode"

local sums = {}

local NUMBERS = { "values", "keep", "recompute", "host", "disk", "forward", "again", "backward" }
local SAME = 1e-9  -- relative: sums of the same seconds in another order

local function blank(name)
  local row = { name = name }
  for _, key in ipairs(NUMBERS) do row[key] = 0 end
  return row
end

local function add(row, other)
  for _, key in ipairs(NUMBERS) do row[key] = row[key] + other[key] end
end

function sums.seconds(row) return row.forward + row.again + row.backward end

-- Rows by name, in the order in which names come.
local function groups()
  local list, by_name = {}, {}
  return list, function(name)
    if not by_name[name] then
      by_name[name] = blank(name)
      list[#list + 1] = by_name[name]
    end
    return by_name[name]
  end
end

-- The op of the graph that an op of the problem belongs to: itself, or what it is the backward part of, whose name is
-- that of the op and a part behind a dot. nil: it belongs to none.
local function owner(ops, name)
  while name do
    if ops[name] then return ops[name] end
    name = name:match("^(.*)%.[^.]*$")
  end
end

-- Type and region of an op of the problem. An op that is of a value and of no op, as an update inside backward, is
-- named "adamw NAME"; it belongs where the value is first read. readers: by the name of a value.
local function place(ops, readers, op)
  local of = owner(ops, op.name)
  if of then return { type = of.op, region = of.region } end
  local kind, value = op.name:match("^(%S+) (.+)$")
  local reader = value and readers[(value:gsub("/gradient$", ""))]
  if not reader then return { type = op.name, region = op.region or "" } end
  local region = owner(ops, reader)
  return { type = kind, region = region and region.region or "" }
end

local function top(region) return region:match("^[^/]*") end
local function layer(region) return (region:gsub("%d+%f[/%z]", "*")) end

local function equal(one, other)
  for _, key in ipairs(NUMBERS) do
    if math.abs(one[key] - other[key]) > SAME * math.abs(one[key]) then return false end
  end
  return true
end

-- Joins neighbours that are numbered one after the other and have equal sums.
local function joined(list)
  local out, first, last = {}, nil, nil
  for _, row in ipairs(list) do
    local stem, number = row.name:match("^(.-)(%d+)$")
    number = tonumber(number)
    if last and stem == last.stem and number == last.number + 1 and equal(row, first) then
      add(out[#out], row)
      out[#out].name = ("%s to %s"):format(first.name, row.name)
      last = { stem = stem, number = number }
    else
      first, last = row, stem and { stem = stem, number = number } or nil
      out[#out + 1] = blank(row.name)
      add(out[#out], row)
    end
  end
  return out
end

local function slowest_first(list)
  table.sort(list, function(a, b)
    local x, y = sums.seconds(a), sums.seconds(b)
    if x ~= y then return x > y end
    return a.name < b.name
  end)
  return list
end

-- Sums of a micro-batch of a plan: {total, types, regions, layers, waiting_seconds}. total and the rows of the three
-- lists have a name, the values held for backward (how many, and bytes by what becomes of them: keep, recompute, host,
-- disk) and seconds (forward, again: run once more for backward, backward). Seconds of backward count with the op that
-- they are of. nil, err: this library writes no plan as a text.
function sums.of(plan)
  local texts = {}
  for i, kind in ipairs { "problem", "json" } do
    local text, err = plan:render(kind)
    if not text then return nil, err end
    texts[i] = decode(text)
  end
  local problem, steps = texts[1], texts[2].steps
  local found, err = plan:values()
  if not found then return nil, err end
  local of_graph, by_name = {}, {}
  for _, op in ipairs(plan:ops()) do of_graph[op.name] = op end
  local total = blank("in all")
  local types, type_of = groups()
  local regions, region_of = groups()
  local layers, layer_of = groups()
  local function count(at, key, amount)
    for _, row in ipairs { total, type_of(at.type), region_of(top(at.region)), layer_of(layer(at.region)) } do
      row[key] = row[key] + amount
    end
  end
  local values = {}
  for _, value in ipairs(found) do values[value.name] = value end
  local readers, read = {}, {}  -- by the name of a value: the first op that reads it; whether backward does
  for i, op in ipairs(problem.ops) do
    for _, name in ipairs(op.inputs) do
      readers[name] = readers[name] or op.name
      read[name] = read[name] or i > problem.turnaround
    end
  end
  for i, op in ipairs(problem.ops) do
    local at = place(of_graph, readers, op)
    by_name[op.name] = { at = at, seconds = op.seconds, forward = i <= problem.turnaround }
    for _, name in ipairs(i <= problem.turnaround and op.outputs or {}) do
      local value = values[name]
      if read[name] and value.decision ~= "persistent" then
        count(at, "values", 1)
        count(at, value.tier or value.decision, value.bytes)
      end
    end
  end
  for _, step in ipairs(steps) do
    local op = step[1] == "run" and by_name[step[2]]
    if op then
      count(op.at, not op.forward and "backward" or op.ran and "again" or "forward", op.seconds)
      op.ran = true
    end
  end
  for i = #types, 1, -1 do  -- what stands for the end of a step does nothing
    if types[i].values == 0 and sums.seconds(types[i]) == 0 then table.remove(types, i) end
  end
  local waiting = texts[2].predicted_seconds - sums.seconds(total)
  return { total = total, types = slowest_first(types), regions = joined(regions), layers = slowest_first(layers),
           waiting_seconds = waiting > SAME * texts[2].predicted_seconds and waiting or 0 }
end

return sums
