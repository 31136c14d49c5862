-- Rows of instruction data as pieces that fit into a window of seq tokens, by the option `long`: rows that are longer
-- are refused, cut at their end, left out, or split. `auto` refuses them, and splits texts.
local fail = require "cli.base.fail"
local flat = require "cli.data.flat"

local long = {}

-- How many of `count` tokens from `from` on are predicted and learned: the first of a piece is not predicted.
local function learned_in(rows, row, from, count)
  local found, learned = rows:read(row, from, count), 0
  for i = 1, count - 1 do learned = learned + (found[i] >= 0 and 1 or 0) end
  return learned
end

local Pieces = {}
Pieces.__index = Pieces

function Pieces:add(row, from, size, learned)
  self.row:add(row)
  self.from:add(from)
  self.size:add(size)
  self.count, self.tokens, self.learned = self.count + 1, self.tokens + size, self.learned + learned
end

-- A piece that nothing is learned of is left out.
function Pieces:add_part(rows, row, from, size)
  local learned = learned_in(rows, row, from, size)
  if learned == 0 then
    self.empty = self.empty + 1
  else
    self:add(row, from, size, learned)
  end
end

-- By the option: what becomes of a row of more than seq tokens.
local RULES = {
  cut = function(pieces, rows, row, seq) pieces:add_part(rows, row, 0, seq) end,
  drop = function() end,
  -- The last token of a piece is the first of the next one, so that every token but the row's first is predicted once.
  split = function(pieces, rows, row, seq)
    local size, from = rows.size[row], 0
    while from < size - 1 do
      pieces:add_part(rows, row, from, math.min(seq, size - from))
      from = from + math.max(seq - 1, 1)
    end
  end,
}
local SAID = { cut = "are cut after them", drop = "are left out", split = "are split into pieces of at most so many" }

local function refuse(rows, first, count, longest, seq)
  fail.input(("data: %s: it has %d tokens, more than seq=%d (%d of %d rows have, at most %d); long=cut, drop or " ..
    "split takes such rows, or a greater seq"):format(rows:at(first), rows.size[first], seq, count, rows.count,
    longest))
end

-- The pieces of the rows `list` (numbers from 1): row, from, size (arrays), count, tokens, learned.
function long.pieces(o, rows, list, what, note)
  local made = setmetatable({ row = flat.new(rows.count), from = flat.new(2 ^ 31 - 2), size = flat.new(o.seq),
                              count = 0, tokens = 0, learned = 0, empty = 0 }, Pieces)
  local over, first, longest, rule = 0, nil, 0, o.long
  local splits = 0
  for _, number in ipairs(list) do
    local row = number - 1
    if rows.size[row] <= o.seq then
      made:add(row, 0, rows.size[row], rows.learned[row])
    elseif rule == "refuse" or rule == "auto" and not rows:is_text(row) then
      over, first, longest = over + 1, first or row, math.max(longest, rows.size[row])
    else
      splits, longest = splits + 1, math.max(longest, rows.size[row])
      RULES[rule == "auto" and "split" or rule](made, rows, row, o.seq)
    end
  end
  if first then refuse(rows, first, over, longest, o.seq) end
  if splits > 0 then
    note(("note: %s: %d of %d rows have more than seq=%d tokens (at most %d) and %s (long=%s)%s"):format(what, splits,
      #list, o.seq, longest, SAID[rule == "auto" and "split" or rule], rule, made.empty > 0
      and ("; %d pieces have nothing to learn and are left out"):format(made.empty) or ""))
  end
  if made.count == 0 then
    fail.input(("%s: long=%s leaves nothing to learn in windows of seq=%d"):format(what, rule, o.seq))
  end
  return made
end

return long
