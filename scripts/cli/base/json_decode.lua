-- Reads JSON into Lua values; null becomes nil. For texts that cairn made itself: an error names the place.
local MOST_NESTED = 1000  -- deeper texts would end in an overflow of Lua's stack
local ESCAPES = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }

local function utf8(code)
  if code < 0x80 then return string.char(code) end
  if code < 0x800 then return string.char(0xC0 + math.floor(code / 64), 0x80 + code % 64) end
  if code < 0x10000 then
    return string.char(0xE0 + math.floor(code / 4096), 0x80 + math.floor(code / 64) % 64, 0x80 + code % 64)
  end
  return string.char(0xF0 + math.floor(code / 262144), 0x80 + math.floor(code / 4096) % 64,
    0x80 + math.floor(code / 64) % 64, 0x80 + code % 64)
end

-- What \u and its four digits stand for, of which `low` may be the next four: a character; or, of a surrogate alone,
-- the byte that it was made of (see json.bytes), or U+FFFD. The second result says that `low` belongs to it.
local function escaped(code, low)
  if code < 0xD800 or code > 0xDFFF then return utf8(code), false end
  if code < 0xDC00 and low and low >= 0xDC00 and low <= 0xDFFF then
    return utf8(0x10000 + (code - 0xD800) * 1024 + low - 0xDC00), true
  end
  if code >= 0xDC80 and code <= 0xDCFF then return string.char(code - 0xDC00), false end
  return "\239\191\189", false
end

-- null: what null becomes; default nil.
return function(text, null)
  local at, depth = 1, 0
  local value

  local function problem(what) error(("JSON: %s at byte %d"):format(what, at), 0) end
  local function skip() at = text:find("[^ \t\r\n]", at) or #text + 1 end
  local function accept(c)
    skip()
    if text:sub(at, at) ~= c then return false end
    at = at + 1
    return true
  end

  local function string_()
    local stop = text:find('[\\"]', at)
    if stop and text:sub(stop, stop) == '"' then
      local plain = text:sub(at, stop - 1)
      at = stop + 1
      return plain
    end
    local parts = {}
    while true do
      stop = text:find('[\\"]', at) or problem("a text without an end")
      parts[#parts + 1] = text:sub(at, stop - 1)
      at = stop + 1
      if text:sub(stop, stop) == '"' then return table.concat(parts) end
      local escape = text:sub(at, at)
      if escape == "u" then
        local code = tonumber(text:match("^%x%x%x%x", at + 1) or problem("a wrong escape"), 16)
        local low = text:match("^\\u(%x%x%x%x)", at + 5)
        local made, both = escaped(code, low and tonumber(low, 16))
        parts[#parts + 1] = made
        at = at + (both and 11 or 5)
      else
        parts[#parts + 1] = ESCAPES[escape] or escape
        at = at + 1
      end
    end
  end

  local function object()
    local result = {}
    if accept("}") then return result end
    repeat
      if not accept('"') then problem("a key expected") end
      local key = string_()
      if not accept(":") then problem("':' expected") end
      result[key] = value()
    until not accept(",")
    if not accept("}") then problem("'}' expected") end
    return result
  end

  local function array()
    local result, count = {}, 0
    if accept("]") then return result end
    repeat
      count = count + 1
      result[count] = value()
    until not accept(",")
    if not accept("]") then problem("']' expected") end
    return result
  end

  local WORDS = { { "true", true }, { "false", false }, { "null", null } }
  local function nested(read)
    depth = depth + 1
    if depth > MOST_NESTED then problem("more than " .. MOST_NESTED .. " levels") end
    local result = read()
    depth = depth - 1
    return result
  end
  function value()
    if accept("{") then return nested(object) end
    if accept("[") then return nested(array) end
    if accept('"') then return string_() end
    for _, word in ipairs(WORDS) do
      if text:sub(at, at + #word[1] - 1) == word[1] then
        at = at + #word[1]
        return word[2]
      end
    end
    local number = text:match("^-?[%d.]+[eE]?[+-]?%d*", at) or problem("a value expected")
    at = at + #number
    return tonumber(number) or problem("a number expected")
  end

  local result = value()
  skip()
  if at <= #text then problem("more text") end
  return result
end
