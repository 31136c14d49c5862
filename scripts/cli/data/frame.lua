-- What a tokenizer puts around a text and between the texts of a pair, and texts as rows of tokens with it.
local fail = require "cli.base.fail"

local frame = {}

-- Spellings of tokens that are no part of a text; the mask is one of the first.
local MASKS = { "[MASK]", "<mask>" }
local SPECIAL = { "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<pad>", "<unk>", "<s>", "</s>", "<mask>" }

local function numbers_of(tokenizer, text, special)
  local tokens, count = tokenizer:encode_with(text, { special = special })
  local list = {}
  fail.check("tokenizer", tokens, count)
  for i = 1, count do list[i] = tokens[i - 1] end
  return list
end

local function begins_at(list, part, at)
  for i, token in ipairs(part) do
    if list[at + i] ~= token then return false end
  end
  return true
end

local frames = setmetatable({}, { __mode = "k" })

-- Of an opened tokenizer: {before, after (lists of tokens), special (a set), mask (or nil)}. Bytes have none.
function frame.of(tokenizer)
  if frames[tokenizer] then return frames[tokenizer] end
  local made = { before = {}, after = {}, special = {} }
  frames[tokenizer] = made
  if tokenizer.kind ~= "pretrained" then return made end
  local plain, around = numbers_of(tokenizer, "a", false), numbers_of(tokenizer, "a", true)
  local at = 0
  while at < #around - #plain and not begins_at(around, plain, at) do at = at + 1 end
  made.before, made.after = { unpack(around, 1, at) }, { unpack(around, at + #plain + 1) }
  for _, list in ipairs { made.before, made.after } do
    for _, token in ipairs(list) do made.special[token] = true end
  end
  for _, word in ipairs(SPECIAL) do
    local token = tokenizer:find(word)
    if token then made.special[token] = true end
  end
  for _, word in ipairs(MASKS) do made.mask = made.mask or tokenizer:find(word) end
  return made
end

-- How many tokens go around one text, or around the two of a pair.
function frame.size(self, paired) return #self.before + (paired and 2 or 1) * #self.after end

-- Puts pieces together: lists of tokens, one or two, of which the longer loses tokens at its end until at most `most`
-- are left with what goes around them. Returns the tokens, how many of them are of the first text, and whether some
-- were cut off.
function frame.joined(self, pieces, most)
  local room, kept, total = math.max(most - frame.size(self, pieces[2] ~= nil), 0), {}, 0
  for i, piece in ipairs(pieces) do
    kept[i] = #piece
    total = total + #piece
  end
  if total > room and kept[2] then
    local short = math.min(kept[1], kept[2])
    if 2 * short <= room then
      local longer = kept[1] > kept[2] and 1 or 2
      kept[longer] = room - short
    else
      kept[1] = math.floor((room + (kept[1] > kept[2] and 1 or 0)) / 2)
      kept[2] = room - kept[1]
    end
  elseif total > room then
    kept[1] = room
  end
  local list, first = { unpack(self.before, 1, math.min(#self.before, most)) }, nil
  for i, piece in ipairs(pieces) do
    for k = 1, kept[i] do list[#list + 1] = piece[k] end
    for _, token in ipairs(self.after) do
      if #list < most then list[#list + 1] = token end
    end
    first = first or #list
  end
  return list, first, total > room
end

-- A text, or a pair of them, as tokens; see joined. Or nil, err.
function frame.encoded(tokenizer, text, pair, most)
  local first, err = tokenizer:encode(text)
  if not first then return nil, err end
  local second
  if pair then
    second, err = tokenizer:encode(pair)
    if not second then return nil, err end
  end
  return frame.joined(frame.of(tokenizer), { first, second }, most)
end

-- The tokens of words, one after the other, and the number of the word (from 1) by the place of its first token (from
-- 1). cut(word) -> tokens.
function frame.pieces(words, cut)
  local list, first = {}, {}
  for i, word in ipairs(words) do
    local tokens = cut(word)
    if tokens[1] then first[#list + 1] = i end
    for _, token in ipairs(tokens) do list[#list + 1] = token end
  end
  return list, first
end

-- The same by places in a row (from 0) of `count` tokens, that which goes around among them.
function frame.places(self, first, count)
  local places = {}
  for at, word in pairs(first) do
    local place = #self.before + at - 1
    if place < count - #self.after then places[place] = word end
  end
  return places
end

-- Puts tokens into row `at` (from 0) of arrays {data, width} by the names that `row` has for them: tokens, and
-- where there are such inputs lengths, types and share: of each token the same, or (row.last) all of the last one.
-- first: how many tokens are of the first text.
function frame.put(row, arrays, at, tokens, first)
  local width = arrays[row.tokens].width
  local ids, types = arrays[row.tokens].data, row.types and arrays[row.types].data
  local share = row.share and arrays[row.share].data
  for i = 0, width - 1 do
    local there, place = i < #tokens, at * width + i
    ids[place] = there and tokens[i + 1] or 0
    if types then types[place] = there and i >= first and 1 or 0 end
    if share then
      local all = i + 1 == #tokens and 1 or 0
      share[place] = there and (row.last and all or 1 / #tokens) or 0
    end
  end
  if row.lengths then arrays[row.lengths].data[at] = #tokens end
end

return frame
