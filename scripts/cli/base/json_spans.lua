-- The parts of a JSON text as they are written in it, so that nothing of them is lost: numbers keep their digits,
-- objects the order of their keys. For texts that cli.base.json_decode has read.
local spans = {}

-- Where the value that begins at `at` ends.
local function value_end(text, at)
  local first = text:sub(at, at)
  if first == '"' then
    repeat
      at = text:find('[\\"]', at + 1)
      local escaped = text:sub(at, at) == "\\"
      if escaped then at = at + 1 end
    until not escaped
    return at
  end
  if first ~= "{" and first ~= "[" then return (text:find("[%s,%]}]", at) or #text + 1) - 1 end
  local depth = 0
  while true do
    at = text:find('["{}%[%]]', at)
    local c = text:sub(at, at)
    if c == '"' then
      at = value_end(text, at)
    else
      depth = depth + ((c == "{" or c == "[") and 1 or -1)
      if depth == 0 then return at end
    end
    at = at + 1
  end
end

-- Calls take(text of a key, or nil, text of a value) for each part of an object or array.
local function each(text, take)
  local at = text:find("%S") + 1
  local keyed = text:sub(at - 1, at - 1) == "{"
  while true do
    at = text:find("[^%s,]", at)
    if not at or text:find("^[%]}]", at) then return end
    local key
    if keyed then
      local stop = value_end(text, at)
      key, at = text:sub(at, stop), text:find("[^%s:]", stop + 1)
    end
    local stop = value_end(text, at)
    take(key, text:sub(at, stop))
    at = stop + 1
  end
end

-- The texts of an object's values, by key as decode(text of a key) reads it; of a key that is there twice the last.
function spans.object(text, decode)
  local values = {}
  each(text, function(key, value) values[decode(key)] = value end)
  return values
end

-- The texts of an array's values, in order.
function spans.array(text)
  local values = {}
  each(text, function(_, value) values[#values + 1] = value end)
  return values
end

return spans
