-- Which pieces share a window: best fit, the longest first. Each goes into the window that it leaves the least room in,
-- or into a new one. Pieces of one length are taken in an order drawn from the seed, so that neighbours in the data are
-- not always together.
local ffi = require "ffi"
local shuffled = require "cli.data.shuffled"

local packing = {}

-- A set of numbers from 0 to `most`, whose least one from a bound on is found in log(most) steps.
local Set = {}
Set.__index = Set

local function new_set(most)
  local half = 1
  while half <= most do half = 2 * half end
  return setmetatable({ half = half, there = ffi.new("uint8_t[?]", 2 * half) }, Set)
end

function Set:put(number, there)
  local at, tree = self.half + number, self.there
  tree[at] = there and 1 or 0
  while at > 1 do
    at = math.floor(at / 2)
    tree[at] = (tree[2 * at] + tree[2 * at + 1] > 0) and 1 or 0
  end
end

function Set:least(from)
  local at, tree = self.half + from, self.there
  if tree[at] == 0 then
    while at > 1 and (at % 2 == 1 or tree[at + 1] == 0) do at = math.floor(at / 2) end
    if at == 1 then return nil end
    at = at + 1
    while at < self.half do at = tree[2 * at] > 0 and 2 * at or 2 * at + 1 end
  end
  return at - self.half
end

-- The numbers of `count` pieces (from 0), the longest first.
local function longest_first(size, count, seq, seed)
  local order, starts = {}, ffi.new("int32_t[?]", seq + 2)
  for i = 1, count do order[i] = i - 1 end
  shuffled(order, seed)
  for i = 0, count - 1 do starts[seq - size[i] + 1] = starts[seq - size[i] + 1] + 1 end
  for i = 1, seq do starts[i] = starts[i] + starts[i - 1] end
  local sorted = ffi.new("int32_t[?]", count)
  for i = 1, count do
    local class = seq - size[order[i]]
    sorted[starts[class]], starts[class] = order[i], starts[class] + 1
  end
  return sorted
end

-- size: an array of `count` sizes from 1 to seq. Returns how many windows there are, and two arrays: the pieces, window
-- after window, and where each window begins among them (one more at the end).
function packing.best_fit(size, count, seq, seed)
  local sorted, window = longest_first(size, count, seq, seed), ffi.new("int32_t[?]", count)
  local rooms, head, next_of = new_set(seq), ffi.new("int32_t[?]", seq + 1), ffi.new("int32_t[?]", count)
  local windows = 0
  ffi.fill(head, ffi.sizeof(head), 255)  -- -1: no window has this room
  for i = 0, count - 1 do
    local wanted = size[sorted[i]]
    local room, at = rooms:least(wanted), windows
    if room then
      at = head[room]
      head[room] = next_of[at]
      if head[room] < 0 then rooms:put(room, false) end
    else
      windows, room = windows + 1, seq
    end
    window[i] = at
    local left = room - wanted
    if head[left] < 0 then rooms:put(left, true) end
    next_of[at], head[left] = head[left], at
  end
  local first, members = ffi.new("int32_t[?]", windows + 1), ffi.new("int32_t[?]", count)
  for i = 0, count - 1 do first[window[i] + 1] = first[window[i] + 1] + 1 end
  for i = 1, windows do first[i] = first[i] + first[i - 1] end
  local place = ffi.new("int32_t[?]", windows + 1)
  ffi.copy(place, first, 4 * (windows + 1))
  for i = 0, count - 1 do
    members[place[window[i]]], place[window[i]] = sorted[i], place[window[i]] + 1
  end
  return windows, members, first
end

return packing
