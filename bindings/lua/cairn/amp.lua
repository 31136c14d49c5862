-- Mixed precision: the classes of ops, and rules that give ops another one.
local ffi = require "ffi"
local core = require "cairn.core"
local C = core.C

local amp = {}

local set_mode = core.word("amp", (core.enum("CAIRN_AMP_", "off bf16 fp16")))

-- The classes that ops have: an array of {name, description, by_rule (whether a rule may give it)}.
function amp.classes()
  local list = {}
  while true do
    local info = ffi.new("cairn_amp_class_info_t", { ffi.sizeof("cairn_amp_class_info_t") })
    if not core.more(C.cairn_amp_class_describe(#list, info, core.raw_error)) then return list end
    list[#list + 1] = { name = ffi.string(info.name), description = ffi.string(info.description),
                        by_rule = info.by_rule ~= 0 }
  end
end

local FIELDS = { op = "op", region = "region", class = "amp_class" }

local function set_rule(slot, rule, what)
  core.expect_type(rule, "table", what, 5)
  for key, value in pairs(rule) do
    if not FIELDS[key] then error(("%s: unknown '%s' (known: class op region)"):format(what, tostring(key)), 5) end
    core.expect_type(value, "string", ("%s.%s"):format(what, key), 5)
    slot[FIELDS[key]] = value
  end
  core.expect_type(rule.class, "string", what .. ".class", 5)
end

-- The option `amp`: "bf16", or a list that begins with that word, as { "bf16", { op = "softmax", class = "half" },
-- { region = "h0", class = "full" } }.
function amp.set(struct, value, anchors)
  if type(value) ~= "table" then return set_mode(struct, value) end
  set_mode(struct, value[1])
  local count = #value - 1
  for key in pairs(value) do
    if type(key) ~= "number" or key < 1 or key > #value then
      error(("amp: unknown '%s'; wanted: a list of the mode and rules { op =, region =, class = }")
        :format(tostring(key)), 4)
    end
  end
  local array = ffi.new("cairn_amp_rule_t[?]", math.max(count, 1))
  for i = 1, count do set_rule(array[i - 1], value[i + 1], ("amp[%d]"):format(i + 1)) end
  struct.amp_rules, struct.amp_rule_count = array, count
  anchors[#anchors + 1], anchors[#anchors + 2] = array, value
end

return amp
