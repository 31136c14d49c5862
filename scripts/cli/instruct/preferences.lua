-- Pairs of answers of which one is preferred, for objectives that compare them (families.parts.objectives): rows with
-- `chosen` and `rejected`, as cli.instruct.forms reads them. A micro-batch has the two texts of a pair one after the
-- other, the preferred one first.
local bit = require "bit"
local changed = require "cli.base.changed"
local chat = require "cli.data.chat"
local content = require "cli.data.content"
local fail = require "cli.base.fail"
local ffi = require "ffi"
local forms = require "cli.instruct.forms"
local random = require "cairn.random"
local rows = require "cli.data.rows"
local shards = require "cli.instruct.shards"
local tokenizers = require "cli.data.tokenizers"
local tokens = require "cli.instruct.tokens"

local preferences = {}

local IGNORED = -100  -- a target that counts for nothing
local RANDOM_ROWS = 1024  -- of data=random

local int32 = ffi.typeof("int32_t[?]")

-- A text: {count, data}: of a token that is learned its number, of another one the number's complement.
local function text_of(ids, mask, count)
  local made = { count = count, data = int32(count) }
  for i = 1, count do made.data[i - 1] = mask[i] == 1 and ids[i] or bit.bnot(ids[i]) end
  return made
end

-- In the place of a pair that is not there: one token is learned, so that no mean is of nothing.
local NONE = text_of({ 0, 0 }, { 0, 1 }, 2)

-- What arrays are filled from. list[number]: { chosen, rejected }, texts; list.reference[number]: what is known of a
-- pair before training.
local function source_of(o, list)
  local scores = o.objective == "reward"
  local layout = { { "tokens", "i32", 2 * o.seq }, { "pairs", "f32", 1 } }
  layout[3] = scores and { "share", "f32", 2 * o.seq } or { "targets", "i32", 2 * o.seq }
  layout[4] = not scores and { "reference", "f32", 1 } or nil
  local function put(arrays, at, text)
    for i = 0, o.seq - 1 do
      local token = i < text.count and text.data[i] or 0
      arrays.tokens.data[at + i] = token >= 0 and token or bit.bnot(token)
      if scores then
        arrays.share.data[at + i] = i + 1 == text.count and 1 or 0
      else
        local after = i + 1 < text.count and text.data[i + 1] or -1
        arrays.targets.data[at + i] = after >= 0 and after or IGNORED
      end
    end
  end
  return {
    layout = layout,
    fill = function(arrays, place, number)
      local pair = number and list[number] or { NONE, NONE }
      for i = 0, 1 do put(arrays, (2 * place + i) * o.seq, pair[i + 1]) end
      arrays.pairs.data[place] = number and 1 or 0
      if not scores then arrays.reference.data[place] = number and list.reference[number] or 0 end
      return number and pair[1].count + pair[2].count or 0
    end,
  }
end

local function tokenizer_of(o, run)
  run.instruction_tokenizer = run.instruction_tokenizer or tokenizers.of(o, run, function()
    fail.usage("tokens=bpe learns a vocabulary of a running text; pairs are cut by the tokenizer of a model's " ..
      "directory, or by tokens=bytes")
  end)
  return run.instruction_tokenizer
end

-- A text of at most seq tokens, or nil: it is longer and left out.
local function within(o, ids, mask, cut, refuse)
  local count = #ids
  if count > o.seq then
    if o.long ~= "cut" and o.long ~= "drop" then
      refuse(("%d tokens, more than seq=%d; long=cut or drop takes such rows, or a greater seq"):format(count, o.seq))
    end
    cut.count, cut.longest = cut.count + 1, math.max(cut.longest, count)
    if o.long == "drop" then return nil end
    count = o.seq
  end
  local learned = 0
  for i = 2, count do learned = learned + mask[i] end
  if learned == 0 then refuse(("within seq=%d there is no token of the answer"):format(o.seq)) end
  return text_of(ids, mask, count)
end

-- All pairs that an option names, and where they come from.
local function read(o, run, name, what)
  local files, list, cut = shards.list(name, what), { reference = {} }, { count = 0, longest = 0 }
  local source = content.open_all(run, name, files, what)
  local opened, asked = chat.open(o, run, tokenizer_of(o, run)), changed(o, { train_on = "answers" })
  shards.each(files, what, function(row, line, reader)
    local function refuse(message) reader:refuse(line, message) end
    local pair = {}
    for i, sample in ipairs(forms.preference(row, reader.text, o, refuse)) do
      local ids, mask = tokens.of_row(opened, sample, asked)
      if not ids then refuse(tostring(mask)) end
      pair[i] = within(o, ids, mask, cut, refuse)
    end
    if pair[1] and pair[2] then list[#list + 1] = pair end
  end)
  source.unchanged()
  if cut.count > 0 then
    run.note(("note: %s: %d texts have more than seq=%d tokens (at most %d) and are %s (long=%s)"):format(what,
      cut.count, o.seq, cut.longest, o.long == "cut" and "cut after them" or "left out with their pairs", o.long))
  end
  if #list == 0 then fail.input(("%s: long=%s leaves no pair"):format(what, o.long)) end
  return { list = list, content = source.content }
end

local function drawn(o, seed)
  local draw, list = random(seed), { reference = {} }
  local function text()
    local ids, mask = {}, {}
    for i = 1, o.seq do ids[i], mask[i] = math.floor(draw() * o.vocab), i > o.seq / 4 and 1 or 0 end
    return text_of(ids, mask, o.seq)
  end
  for i = 1, RANDOM_ROWS do list[i] = { text(), text() } end
  return { list = list, content = ("random-%d"):format(seed) }
end

-- The pairs of an option, read once a run: data may be trained with and held out of.
local function opened(o, run, name, what)
  run.preferences = run.preferences or {}
  run.preferences[name] = run.preferences[name] or (name == "random" and drawn(o, run.seed) or read(o, run, name, what))
  return run.preferences[name]
end

-- What is to be known of every pair before training (cli.train.prepared).
local function prepared(o, found, source)
  if o.objective ~= "dpo" then return nil end
  local list, every = found.list, {}
  for i = 1, #list do every[i] = i end
  local made = rows.evaluation(every, o, source)
  return {
    key = ("%s-%d-%s"):format(found.content, o.seq, o.dpo_loss), count = #list, batches = made.batches,
    values = list.reference,
    batch = function(index)
      local arrays = made.batch(index)
      return { tokens = arrays.tokens, targets = arrays.targets }
    end,
    take = function(index, outputs)
      for place = 1, math.min(o.batch, #list - index * o.batch) do
        list.reference[index * o.batch + place] = outputs.reference[place]
      end
    end,
  }
end

local function check(o)
  if o.batch * o.seq > rows.MOST_TOKENS / 2 then
    fail.usage(("batch=%.0f pairs of seq=%.0f make %.0f tokens of a micro-batch; at most %.0f"):format(o.batch, o.seq,
      2 * o.batch * o.seq, rows.MOST_TOKENS))
  end
end

function preferences.dataset(o, run)
  if o.data == "" then fail.usage("data=FILE is needed (or data=random)") end
  check(o)
  local found = opened(o, run, o.data, "data")
  local source = source_of(o, found.list)
  local made = rows.dataset(rows.split(#found.list, o.eval_fraction), o, run.seed, source, "data: " .. o.data)
  made.prepared = prepared(o, found, source)
  if o.data ~= "random" then made.tokenizer, made.content = tokenizer_of(o, run), found.content end
  return made
end

-- What is evaluated with: eval_data, or the share eval_fraction of data that is not trained with.
function preferences.evaluation(o, run)
  if not rows.evaluates(o) then return nil end
  check(o)
  local own = changed(o, { dropout = 0 })
  return { o = own, data = function()
    local apart = o.eval_data ~= ""
    local found = opened(own, run, apart and o.eval_data or o.data, apart and "eval_data" or "eval_fraction")
    local list = select(2, rows.split(#found.list, apart and 1 or o.eval_fraction))
    if #list == 0 then
      fail.input(("eval_fraction=%.15g of the %d rows of %s is none"):format(o.eval_fraction, #found.list, o.data))
    end
    local source = source_of(own, found.list)
    local made = rows.evaluation(list, own, source)
    if apart then made.prepared = prepared(own, found, source) end
    if not apart and o.data ~= "random" then made.content = found.content end
    return made
  end }
end

return preferences
