-- JSON texts. Objects print their keys in the order given by json.object, or sorted. Bytes that are no UTF-8 become
-- U+FFFD.
local unicode = require "cli.base.unicode"

local json = {}

local Object, Array = {}, {}

-- An object whose keys keep their order: json.object{ {"a", 1}, {"b", 2} }.
function json.object(pairs_) return setmetatable({ rows = pairs_ }, Object) end
-- A table that is an array even when it is empty.
function json.array(list) return setmetatable(list, Array) end
-- A text that is JSON already.
local Raw = {}
function json.raw(text) return setmetatable({ text = text }, Raw) end

-- A value that writes its own JSON: write_to(write) calls write(text) piece by piece.
local Stream = {}
function json.stream(write_to) return setmetatable({ write_to = write_to }, Stream) end

local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }
local function quote(text)
  local escaped = unicode.text(text):gsub('[%c"\\\127]', function(c)
    return ESCAPES[c] or ("\\u%04x"):format(c:byte())
  end)
  return '"' .. escaped .. '"'
end

-- The JSON of a text of any bytes: those that are no UTF-8 are surrogates, as Python's surrogateescape writes and reads
-- them (byte 0xff is \\udcff).
function json.bytes(text)
  local parts, at = {}, 1
  while at <= #text do
    local rest = text:sub(at)
    local valid = unicode.valid(rest)
    parts[#parts + 1] = quote(rest:sub(1, valid)):sub(2, -2)
    if valid < #rest then parts[#parts + 1] = ("\\udc%02x"):format(rest:byte(valid + 1)) end
    at = at + valid + 1
  end
  return json.raw('"' .. table.concat(parts) .. '"')
end

local function number(value)
  if value ~= value or value == math.huge or value == -math.huge then return "null" end
  if value == math.floor(value) and math.abs(value) < 2 ^ 53 then return ("%d"):format(value) end
  local short = ("%.15g"):format(value)
  return tonumber(short) == value and short or ("%.17g"):format(value)
end

function json.encode(value)
  local kind = type(value)
  if kind == "string" then return quote(value) end
  if kind == "number" then return number(value) end
  if kind == "boolean" then return tostring(value) end
  if kind == "nil" then return "null" end
  if kind ~= "table" then error("a " .. kind .. " has no JSON form", 2) end
  local meta, parts = getmetatable(value), {}
  if meta == Raw then return value.text end
  if meta == Stream then
    value.write_to(function(text) parts[#parts + 1] = text end)
    return table.concat(parts)
  end
  if meta == Object then
    for i, row in ipairs(value.rows) do parts[i] = quote(row[1]) .. ":" .. json.encode(row[2]) end
    return "{" .. table.concat(parts, ",") .. "}"
  end
  if meta == Array or #value > 0 then
    for i = 1, #value do parts[i] = json.encode(value[i]) end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  local keys = {}
  for key in pairs(value) do keys[#keys + 1] = key end
  table.sort(keys)
  for i, key in ipairs(keys) do parts[i] = quote(key) .. ":" .. json.encode(value[key]) end
  return "{" .. table.concat(parts, ",") .. "}"
end

-- Writes an object's JSON by write(text), its fields one after the other: streams in it are never there as a whole.
function json.write(object, write)
  write("{")
  for i, row in ipairs(object.rows) do
    write((i > 1 and "," or "") .. quote(row[1]) .. ":")
    if getmetatable(row[2]) == Stream then row[2].write_to(write) else write(json.encode(row[2])) end
  end
  write("}")
end

-- The same JSON with line breaks and indents; arrays of plain numbers stay on one line.
function json.pretty(text)
  local out, depth, at = {}, 0, 1
  local function line() out[#out + 1] = "\n" .. ("  "):rep(depth) end
  while at <= #text do
    local c = text:sub(at, at)
    local flat = text:match("^%[[%d%s,%.eE+-]*%]", at) or text:match("^{%s*}", at)
    if flat then
      out[#out + 1] = flat
      at = at + #flat
    elseif c == '"' then
      local stop = at + 1
      while stop <= #text and text:sub(stop, stop) ~= '"' do
        stop = stop + (text:sub(stop, stop) == "\\" and 2 or 1)
      end
      out[#out + 1] = text:sub(at, stop)
      at = stop + 1
    else
      if c == "{" or c == "[" then
        depth = depth + 1
        out[#out + 1] = c
        line()
      elseif c == "}" or c == "]" then
        depth = depth - 1
        line()
        out[#out + 1] = c
      elseif c == "," then
        out[#out + 1] = c
        line()
      elseif c == ":" then
        out[#out + 1] = ": "
      elseif not c:match("%s") then
        out[#out + 1] = c
      end
      at = at + 1
    end
  end
  return table.concat(out)
end

return json
