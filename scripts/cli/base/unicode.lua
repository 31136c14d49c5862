-- UTF-8 out of any bytes: what is no character becomes U+FFFD, once for each run of bytes that could have begun one.
local unicode = {}

local REPLACEMENT = "\239\191\189"

-- Of the byte that begins a character: how many follow, and the bounds of the first of them; nil: it begins none.
local function follow(lead)
  if lead < 0xC2 or lead > 0xF4 then return nil end
  if lead < 0xE0 then return 1, 0x80, 0xBF end
  if lead < 0xF0 then return 2, lead == 0xE0 and 0xA0 or 0x80, lead == 0xED and 0x9F or 0xBF end
  return 3, lead == 0xF0 and 0x90 or 0x80, lead == 0xF4 and 0x8F or 0xBF
end

-- Bytes from `at` on (the first is no ASCII) that belong together, and whether they are a character; the third result
-- says that bytes after the end of `bytes` could still make them one.
local function piece(bytes, at)
  local count, low, high = follow(bytes:byte(at))
  if not count then return 1, false, false end
  for i = 1, count do
    local byte = bytes:byte(at + i)
    if not byte then return i, false, true end
    if byte < low or byte > high then return i, false, false end
    low, high = 0x80, 0xBF
  end
  return count + 1, true, false
end

-- The characters of `bytes`, and the bytes at its end that may be the beginning of one more.
local function characters(bytes)
  local parts, at = {}, 1
  while true do
    local found = bytes:find("[\128-\255]", at)
    if not found then return table.concat(parts) .. bytes:sub(at), "" end
    parts[#parts + 1] = bytes:sub(at, found - 1)
    local count, whole, open = piece(bytes, found)
    if open then return table.concat(parts), bytes:sub(found) end
    parts[#parts + 1] = whole and bytes:sub(found, found + count - 1) or REPLACEMENT
    at = found + count
  end
end

-- How many bytes at the head of `bytes` are whole characters.
function unicode.valid(bytes)
  local at = 1
  while true do
    local found = bytes:find("[\128-\255]", at)
    if not found then return #bytes end
    local count, whole = piece(bytes, found)
    if not whole then return found - 1 end
    at = found + count
  end
end

-- `bytes` as valid UTF-8.
function unicode.text(bytes)
  if not bytes:find("[\128-\255]") then return bytes end
  local text, rest = characters(bytes)
  return rest == "" and text or text .. REPLACEMENT
end

-- Bytes that come in pieces: feed(bytes) returns the whole characters so far, finish() what is left.
function unicode.stream()
  local rest = ""
  local self = {}
  function self.feed(bytes)
    local text
    text, rest = characters(rest .. bytes)
    return text
  end
  function self.finish()
    local text = unicode.text(rest)
    rest = ""
    return text
  end
  return self
end

-- A text of a stranger's inside a message: one line, no control characters, not too long.
function unicode.shown(bytes)
  local text = unicode.text(bytes:sub(1, 200)):gsub("%c", "?"):gsub("\194[\128-\159]", "?")
  return #bytes > 200 and text .. "..." or text
end

return unicode
