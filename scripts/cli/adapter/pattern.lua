-- Names of modules by what PEFT's configuration says: lists of names or of their ends, and keys of rank_pattern and
-- alpha_pattern, which are regular expressions of Python's.
local pattern = {}

local MAGIC = "[%(%)%%%+%-%?%[%]%^%$|{}\\]"

-- A Lua pattern for what is common in such keys: names, dots with and without a backslash, .*, \d+, [0-9]; nil: it has
-- something else.
local function of_key(key)
  local anchored, text = key:match("^(%^?)(.-)%$?$")
  local parts, at = {}, 1
  while at <= #text do
    local rest = text:sub(at)
    local class = rest:match("^%[[%w%-]+%][%*%+]?")
    if rest:find("^\\d") then
      parts[#parts + 1], at = "%d", at + 2
      local many = text:sub(at, at):match("[%*%+]")
      if many then parts[#parts + 1], at = many, at + 1 end
    elseif rest:find("^\\%.") then
      parts[#parts + 1], at = "%.", at + 2
    elseif rest:find("^%.[%*%+]") then
      parts[#parts + 1], at = rest:sub(1, 2), at + 2
    elseif class then
      parts[#parts + 1], at = class, at + #class
    elseif rest:sub(1, 1):find(MAGIC) or rest:sub(1, 1) == "*" then
      return nil
    else
      parts[#parts + 1], at = rest:sub(1, 1), at + 1
    end
  end
  return table.concat(parts), anchored ~= ""
end

-- What the first key of a table that matches a module says; nil: none does. Or nil and a key that is not understood.
function pattern.look_up(keys, name)
  local list = {}
  for key in pairs(keys or {}) do list[#list + 1] = key end
  table.sort(list)
  for _, key in ipairs(list) do
    local text, anchored = of_key(key)
    if not text then return nil, key end
    if name:find("^" .. text .. "$") or not anchored and name:find("%." .. text .. "$") then return keys[key] end
  end
end

-- Whether a list of names, or of what they end with, has a module.
function pattern.listed(list, name)
  for _, each in ipairs(list) do
    if name == each or name:sub(-#each - 1) == "." .. each then return true end
  end
  return false
end

return pattern
