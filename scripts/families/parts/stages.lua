-- Numbers of a net's stages: as options have them, a text like "3,3,9,3", and as a config.json has them, lists.
local fail = require "cli.base.fail"

local stages = {}

local MOST = 1000

local function is_size(value) return type(value) == "number" and value >= 1 and value == math.floor(value) end

-- The numbers of a text; nil and what is wrong with it.
function stages.numbers(name, text)
  local list = {}
  for word in (text .. ","):gmatch("([^,]*),") do
    list[#list + 1] = tonumber(word)
    if not word:find("^%d+$") or not is_size(list[#list]) or list[#list] > 2 ^ 20 then
      return nil, ("%s=%s: whole numbers with commas between them wanted, one for each stage, as 3,3,9,3"):format(name,
        text)
    end
  end
  if #list > MOST then return nil, ("%s: %d stages; at most %d"):format(name, #list, MOST) end
  return list
end

-- Ends the command where values of a config are no lists of whole numbers of one length.
function stages.check(c, names, where)
  local first = c[names[1]]
  for _, name in ipairs(names) do
    local list = c[name]
    local ok = type(list) == "table" and #list > 0 and type(first) == "table" and #list == #first
    for _, value in ipairs(ok and list or {}) do ok = ok and is_size(value) end
    if not ok then
      fail.input(("%s: %s: lists of whole numbers wanted, one for each stage"):format(where, table.concat(names, ", ")))
    end
  end
end

return stages
