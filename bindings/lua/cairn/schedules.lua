-- Schedules of the learning rate: what there is, and those of a stepper as the library takes them.
local ffi = require "ffi"
local core = require "cairn.core"
local C = core.C

local schedules = {}

-- The schedules: an array of {name, parameters, ends, description}; parameters {name, default} with a number, {name,
-- default, words} of one that is a word, {name, list = true}; ends: whether it needs to know where it ends.
function schedules.list()
  local list = {}
  while true do
    local info = ffi.new("cairn_schedule_info_t", { ffi.sizeof("cairn_schedule_info_t") })
    if not core.more(C.cairn_schedule_describe(#list, info, core.raw_error)) then return list end
    local row = { name = ffi.string(info.name), description = ffi.string(info.description), ends = info.ends ~= 0,
                  parameters = {} }
    for name, default in ffi.string(info.parameters):gmatch("(%S+)=(%S*)") do
      local parameter = { name = name, default = tonumber(default), list = default == "" or nil }
      if not parameter.default and not parameter.list then
        parameter.words = {}
        for word in default:gmatch("[^|]+") do parameter.words[#parameter.words + 1] = word end
        parameter.default = parameter.words[1]
      end
      row.parameters[#row.parameters + 1] = parameter
    end
    list[#list + 1] = row
  end
end

local function value_of(text)
  if tonumber(text) then return tonumber(text) end
  if not text:find("/", 1, true) then return text end
  local list = {}
  for word in (text .. "/"):gmatch("([^/]*)/") do
    local number = tonumber(word)
    if not number then return nil end
    list[#list + 1] = number
  end
  return list
end

-- The stages that a text names: "NAME[:STEPS][:PARAMETER=VALUE]...", several of them with "," between; elements of a
-- list with "/" between. Returns an array of { name, steps =, PARAMETER = ... }; or nil and what is wrong.
function schedules.parse(text)
  local stages = {}
  for part in (text .. ","):gmatch("([^,]*),") do
    local stage = {}
    for word in (part .. ":"):gmatch("([^:]*):") do
      local name, value = word:match("^([%a_][%w_]*)=(.+)$")
      if #stage == 0 then
        stage[1] = word:match("^[%a_][%w_]*$")
        if not stage[1] then return nil, ("'%s' is no name of a schedule"):format(word) end
      elseif name then
        stage[name] = value_of(value)
        if stage[name] == nil or name == "steps" then return nil, ("'%s' is no PARAMETER=VALUE"):format(word) end
      elseif word:match("^%d+$") and tonumber(word) > 0 and tonumber(word) < 2 ^ 53 and not stage.steps then
        stage.steps = tonumber(word)
      else
        return nil, ("'%s' is neither the steps of %s nor one of its parameters"):format(word, stage[1])
      end
    end
    stages[#stages + 1] = stage
  end
  return stages
end

local function sorted(map)
  local keys = {}
  for key in pairs(map) do
    if type(key) == "string" and key ~= "steps" then keys[#keys + 1] = key end
  end
  table.sort(keys)
  return keys
end

-- Rows {name, word or nil, number} of a stage's parameters.
local function values_of(stage)
  local rows = {}
  for _, name in ipairs(sorted(stage)) do
    local value = stage[name]
    for _, each in ipairs(type(value) == "table" and value or { value }) do
      if type(each) == "boolean" then each = tostring(each) end
      if type(each) ~= "string" and type(each) ~= "number" then
        error(("schedule %s: %s: a number or a word expected, got %s"):format(stage[1], name, type(each)), 0)
      end
      rows[#rows + 1] = { name, type(each) == "string" and each or nil, tonumber(each) or 0 }
    end
  end
  return rows
end

-- A field of options: a text as schedules.parse takes it, a stage, or an array of them.
function schedules.set(struct, given, anchors)
  if type(given) == "string" then
    local stages, problem = schedules.parse(given)
    if not stages then error(("schedule '%s': %s"):format(given, problem), 4) end
    given = stages
  end
  core.expect_type(given, "table", "schedule", 4)
  if type(given[1]) == "string" then given = { given } end
  local array = ffi.new("cairn_schedule_t[?]", math.max(#given, 1))
  for i, stage in ipairs(given) do
    core.expect_type(stage, "table", ("schedule[%d]"):format(i), 4)
    core.expect_type(stage[1], "string", ("schedule[%d]: its name"):format(i), 4)
    local rows = values_of(stage)
    local values = ffi.new("cairn_schedule_value_t[?]", math.max(#rows, 1))
    for k, row in ipairs(rows) do
      values[k - 1].name, values[k - 1].word, values[k - 1].value = row[1], row[2], row[3]
    end
    array[i - 1].name, array[i - 1].steps = stage[1], stage.steps or 0
    array[i - 1].values, array[i - 1].value_count = values, #rows
    anchors[#anchors + 1], anchors[#anchors + 2] = values, rows
  end
  struct.schedules, struct.schedule_count = array, #given
  anchors[#anchors + 1], anchors[#anchors + 2] = array, given
end

-- The rates of a stepper with `options` (a filled struct) from step `first` on, and its momenta, where the schedule has
-- them: arrays; or nil, err.
function schedules.rates(struct, first, count)
  local rates, momenta = ffi.new("double[?]", math.max(count, 1)), ffi.new("double[?]", math.max(count, 1))
  local status = C.cairn_schedule_rates(struct, first, count, rates, momenta, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  local list, moving = {}, {}
  for i = 1, count do
    list[i] = rates[i - 1]
    if momenta[i - 1] == momenta[i - 1] then moving[i] = momenta[i - 1] end
  end
  return list, moving
end

return schedules
