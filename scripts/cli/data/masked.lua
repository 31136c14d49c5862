-- Masked language modelling: of each sample a share of its tokens is to be found again, of which some are replaced by
-- the mask, some by a random token, and some are as they were. Which ones depends on the seed, the epoch and the
-- sample's place in it alone, and so not on how samples are put into micro-batches. Special tokens are never chosen.
local ffi = require "ffi"
local changed = require "cli.base.changed"
local fail = require "cli.base.fail"
local frame = require "cli.data.frame"
local random = require "cairn.random"
local sequences = require "cli.data.sequences"
local text = require "cli.data.text"
local tokenizers = require "cli.data.tokenizers"

local masked = {}

local IGNORED = -100
local EVALUATION_SEED = 20260  -- what is masked in evaluations is the same of all runs
local MOST_DRAWS = 64  -- for a random token that is not special

-- How many tokens of a sample are chosen at most.
function masked.most(o) return math.max(1, math.floor(o.mask_rate * o.seq + 0.5)) end

local function frame_of(o, run)
  local around = o.data == "random" and { before = {}, after = {}, special = {} }
    or frame.of(tokenizers.of(o, run).opened)
  local mask = o.mask_token >= 0 and o.mask_token or around.mask or o.data == "random" and o.vocab - 1
  if not mask then
    fail.usage("mask_token=N is needed: the tokenizer has neither [MASK] nor <mask>")
  end
  if o.seq <= frame.size(around) then
    fail.usage(("seq=%d leaves no room for a text between the %d tokens around it"):format(o.seq, frame.size(around)))
  end
  return changed(around, { mask = mask })
end

-- Masks the first `count` tokens of row `at`.
local function mask_row(self, arrays, at, count, draw)
  local o, most, places, from = self.o, self.most, {}, at * self.o.seq
  for i = 0, count - 1 do
    if not self.around.special[arrays.tokens[from + i]] then places[#places + 1] = i end
  end
  local wanted = #places > 0 and math.min(math.max(1, math.floor(o.mask_rate * #places + 0.5)), most) or 0
  for i = 1, wanted do
    local other = i + math.floor(draw() * (#places - i + 1))
    places[i], places[other] = places[other], places[i]
  end
  local chosen = { unpack(places, 1, wanted) }
  table.sort(chosen)
  for i, place in ipairs(chosen) do
    local slot, token = at * most + i - 1, arrays.tokens[from + place]
    arrays.chosen[slot], arrays.targets[slot] = from + place, token
    local kind, drawn = draw(), nil
    if kind < o.mask_share then
      arrays.tokens[from + place] = self.around.mask
    elseif kind < o.mask_share + o.random_share then
      for _ = 1, MOST_DRAWS do
        drawn = math.floor(draw() * o.vocab)
        if not self.around.special[drawn] then break end
      end
      arrays.tokens[from + place] = drawn
    end
  end
  for i = wanted, most - 1 do
    arrays.chosen[at * most + i], arrays.targets[at * most + i] = 0, IGNORED
  end
  return wanted
end

-- Buffers of so many samples, made once each.
local function buffers(self, rows)
  if not self.of_rows[rows] then
    local o, made = self.o, {}
    made.tokens = ffi.new("int32_t[?]", rows * o.seq)
    made.chosen, made.targets = ffi.new("int32_t[?]", rows * self.most), ffi.new("int32_t[?]", rows * self.most)
    self.of_rows[rows] = made
  end
  return self.of_rows[rows]
end

-- A dataset of masked samples from one of samples as they are, whose arrays have tokens and, where samples are of
-- several lengths, lengths; others are windows, which get the special tokens around them here.
local function over(data, o, around, seed)
  local self = { o = o, around = around, most = masked.most(o), of_rows = {} }
  local before, after = #around.before, #around.after
  local inner = o.seq - before - after
  return changed(data, {
    rebase = function(arrays, part, count)
      local size = ffi.sizeof(arrays.chosen) / 4
      for i = 0, size - 1 do
        if arrays.targets[i] ~= IGNORED then
          arrays.chosen[i] = arrays.chosen[i] - part * (ffi.sizeof(arrays.tokens) / 4 / count)
        end
      end
    end,
    batch = function(index)
      local given, count, program, there = data.batch(index)
      local width = given.lengths and o.seq or inner
      local rows = ffi.sizeof(given.tokens) / 4 / width
      local arrays = buffers(self, rows)
      arrays.lengths = given.lengths
      local epoch, first = 0, index * o.batch
      if data.batches then
        epoch = math.floor(index / data.batches)
        first = (index - epoch * data.batches) * o.batch
      end
      local tokens = 0
      for at = 0, rows - 1 do
        local from = at * o.seq
        if given.lengths then
          ffi.copy(arrays.tokens + from, given.tokens + from, 4 * o.seq)
        else
          for i, token in ipairs(around.before) do arrays.tokens[from + i - 1] = token end
          ffi.copy(arrays.tokens + from + before, given.tokens + at * inner, 4 * inner)
          for i, token in ipairs(around.after) do arrays.tokens[from + before + inner + i - 1] = token end
        end
        local length = at >= (there or rows) and 0 or given.lengths and given.lengths[at] or o.seq
        tokens = tokens + length
        mask_row(self, arrays, at, length, random(seed + 7919 * (epoch + 1) + 48611 * (first + at + 1)))
      end
      return arrays, given.lengths and count or tokens, program, there
    end,
  })
end

-- The options that the text's own windows are cut by: without the special tokens.
local function inner_of(o, around)
  return changed(o, { seq = o.seq - frame.size(around) })
end

function masked.dataset(o, run)
  local around = frame_of(o, run)
  if o.samples == "lines" and o.data ~= "random" then
    return over(sequences.dataset(o, run, { kind = "lines" }), o, around, run.seed)
  end
  return over(text.dataset(inner_of(o, around), run), o, around, run.seed)
end

function masked.evaluation(o, run)
  local lines = o.samples == "lines" and o.data ~= "random"
  local made
  if lines then
    made = sequences.evaluation(o, run, { kind = "lines" })
  else
    made = text.evaluation(o, run)
  end
  if not made then return nil end
  return { o = changed(o, { dropout = 0 }), data = function()
    local around = frame_of(o, run)
    local data = lines and made.data() or text.evaluation(inner_of(o, around), run).data()
    return over(data, o, around, EVALUATION_SEED)
  end }
end

return masked
