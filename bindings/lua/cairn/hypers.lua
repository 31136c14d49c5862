-- Optimizers: what there is, what settings may be, and hyper-parameters as the library takes them.
local ffi = require "ffi"
local core = require "cairn.core"
local bit = require "bit"
local C = core.C

local hypers = {}

-- The optimizers: an array of {name, states, hypers, description, otherwise}; states {name, when} (when: a
-- hyper-parameter without which the state is not there), hypers {name, default}; otherwise: the optimizer of the
-- parameters that this one does not take.
function hypers.optimizers()
  local list = {}
  while true do
    local info = ffi.new("cairn_optimizer_info_t", { ffi.sizeof("cairn_optimizer_info_t") })
    if not core.more(C.cairn_optimizer_describe(#list, info, core.raw_error)) then return list end
    local row = { name = ffi.string(info.name), description = ffi.string(info.description),
                  otherwise = info.otherwise[0] ~= 0 and ffi.string(info.otherwise) or nil, states = {}, hypers = {} }
    for word in ffi.string(info.states):gmatch("%S+") do
      local name, when = word:match("^([^?]+)%??(.*)$")
      row.states[#row.states + 1] = { name = name, when = when ~= "" and when or nil }
    end
    for name, default in ffi.string(info.hypers):gmatch("(%S+)=(%S+)") do
      row.hypers[#row.hypers + 1] = { name = name, default = tonumber(default) }
    end
    list[#list + 1] = row
  end
end

local KINDS = { optimizer = C.CAIRN_SETTINGS_OF_OPTIMIZER, schedule = C.CAIRN_SETTINGS_OF_SCHEDULE,
                stepper = C.CAIRN_SETTINGS_OF_STEPPER }

-- What an optimizer, a schedule (kind, and its name) or a stepper takes: an array of {name, description, allowed (in
-- words), default, least, most, above, below (whether the bound itself is out of range), integer, or_zero, list}; of
-- one that is yes or no default is a boolean; of one that is one of a few words {name, description, words, default}.
function hypers.settings(kind, owner)
  local number, list = KINDS[kind], {}
  if not number then error(("'%s' is none of: optimizer, schedule, stepper"):format(tostring(kind)), 2) end
  while true do
    local info = ffi.new("cairn_setting_info_t", { ffi.sizeof("cairn_setting_info_t") })
    if not core.more(C.cairn_setting_describe(number, owner, #list, info, core.raw_error)) then return list end
    local function is(trait) return bit.band(info.traits, trait) ~= 0 end
    local row = { name = ffi.string(info.name), description = ffi.string(info.description),
                  default = info.default_value }
    if info.words[0] ~= 0 then
      row.words = {}
      for word in ffi.string(info.words):gmatch("%S+") do row.words[#row.words + 1] = word end
      row.default = row.words[1]
    else
      row.allowed, row.least, row.most = ffi.string(info.allowed), info.least, info.most
      row.above, row.below = is(C.CAIRN_SETTING_ABOVE), is(C.CAIRN_SETTING_BELOW)
      row.integer, row.or_zero = is(C.CAIRN_SETTING_INTEGER), is(C.CAIRN_SETTING_OR_ZERO)
      row.list = is(C.CAIRN_SETTING_LIST)
      if is(C.CAIRN_SETTING_SWITCH) then row.default = info.default_value ~= 0 end
    end
    list[#list + 1] = row
  end
end

local function sorted(map)
  local keys = {}
  for key in pairs(map) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

-- Adds rows {group or nil, name, value} of `map` (name -> number) to `rows`.
local function collect(rows, map, group)
  for _, name in ipairs(sorted(map)) do
    local value = map[name]
    if type(value) == "boolean" then value = value and 1 or 0 end
    if type(value) ~= "number" then
      error(("hyper-parameter '%s' is a %s; wanted: a number"):format(name, type(value)), 0)
    end
    rows[#rows + 1] = { group, name, value }
  end
end

local function set_rows(struct, rows, anchors)
  local array = ffi.new("cairn_hyper_t[?]", math.max(#rows, 1))
  for i, row in ipairs(rows) do
    array[i - 1].group, array[i - 1].name, array[i - 1].value = row[1], row[2], row[3]
  end
  struct.hypers, struct.hyper_count = array, #rows
  anchors[#anchors + 1], anchors[#anchors + 2] = array, rows
end

-- Fields of options: `hypers` = { momentum = 0.9, ["*.bias"] = { rate_scale = 2 } }, a table being a group's.
function hypers.set(struct, map, anchors)
  core.expect_type(map, "table", "hypers", 4)
  local rows, all, groups = anchors.hypers or {}, {}, {}
  anchors.hypers = rows
  for key, value in pairs(map) do (type(value) == "table" and groups or all)[key] = value end
  local own = {}
  collect(own, all)
  for _, group in ipairs(sorted(groups)) do collect(own, groups[group], group) end
  for i = #own, 1, -1 do table.insert(rows, 1, own[i]) end  -- before those of groups
  set_rows(struct, rows, anchors)
end

-- `groups` = { { pattern = "*.bias", optimizer = "sgd", weight_decay = 0, ... }, ... }.
function hypers.set_groups(struct, list, anchors)
  core.expect_type(list, "table", "groups", 4)
  local rows = anchors.hypers or {}
  anchors.hypers = rows
  local array = ffi.new("cairn_parameter_group_t[?]", math.max(#list, 1))
  for i, group in ipairs(list) do
    local own = {}
    core.expect_type(group, "table", ("groups[%d]"):format(i), 4)
    for key, value in pairs(group) do own[key] = value end
    own.pattern, own.optimizer = nil, nil
    core.expect_type(group.pattern, "string", ("groups[%d].pattern"):format(i), 4)
    if group.optimizer ~= nil then
      core.expect_type(group.optimizer, "string", ("groups[%d].optimizer"):format(i), 4)
    end
    array[i - 1].pattern, array[i - 1].optimizer = group.pattern, group.optimizer
    collect(rows, own, group.pattern)
  end
  struct.groups, struct.group_count = array, #list
  anchors[#anchors + 1], anchors[#anchors + 2] = array, list
  set_rows(struct, rows, anchors)
end

return hypers
