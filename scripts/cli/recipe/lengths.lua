-- The option `lengths`: windows of several lengths, each with a program of its own on the same parameters.
local fail = require "cli.base.fail"

local lengths = {}

-- "64,128,256" as numbers, the longest first; nil if there is nothing.
function lengths.parse(text)
  if text == nil or text == "" then return nil end
  local list, seen = {}, {}
  for word in (text .. ","):gmatch("([^,]*),") do
    local n = word:match("^%d+$") and tonumber(word)
    if not n or n < 1 or n > 2 ^ 31 then
      fail.usage(("lengths=%s: '%s' is no length; wanted: whole numbers, as 64,128,256"):format(text, word))
    end
    if seen[n] then fail.usage(("lengths=%s: %d is there twice"):format(text, n)) end
    list[#list + 1], seen[n] = n, true
  end
  table.sort(list, function(a, b) return a > b end)
  return list
end

-- Windows are as long as the longest; a table of positions has rows for all of them in every program.
function lengths.settle(o)
  local list = lengths.parse(o.lengths)
  if not list then return end
  o.seq = list[1]
  if o.positions then o.positions = math.max(o.positions, list[1]) end
end

-- Says that a seq which was given counts for nothing beside lengths. settings: {key, text} pairs; o: what came of them.
function lengths.tell(settings, o, note)
  if not lengths.parse(o.lengths) then return end
  local seq
  for _, setting in ipairs(settings) do seq = setting[1] == "seq" and setting[2] or seq end
  if seq and tonumber(seq) ~= o.seq then
    note(("note: seq=%s counts for nothing with lengths=%s: windows are of these lengths"):format(seq, o.lengths))
  end
end

-- Whether an option of a file that has `lengths` only says what follows from these: others may take their place.
function lengths.follows(name, value, text)
  if name ~= "seq" or type(text) ~= "string" then return false end
  local ok, list = pcall(lengths.parse, text)
  return ok and list ~= nil and tonumber(value) == list[1]
end

-- Programs of a recipe: {name, length, o}, the longest first, which has all parameters; nil without lengths.
function lengths.programs(o)
  local list = lengths.parse(o.lengths)
  if not list then return nil end
  local rows = {}
  for i, length in ipairs(list) do
    local own = {}
    for key, value in pairs(o) do own[key] = value end
    own.seq, own.lengths = length, ""
    rows[i] = { name = ("length-%d"):format(length), length = length, o = own }
  end
  return rows
end

return lengths
