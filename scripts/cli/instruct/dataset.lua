-- Instruction data for recipes of decoders: rows of files as windows of tokens, of which answers alone are learned.
-- A window holds several rows that know nothing of each other (packing=best_fit), one (none), or one in the shortest of
-- several lengths (buckets). What shares a window is found out once, for no row's loss depends on it: every epoch has
-- the same windows in an order of its own, a pure function of the seed and the epoch.
local bit = require "bit"
local buckets = require "cli.data.buckets"
local changed = require "cli.base.changed"
local chat = require "cli.data.chat"
local fail = require "cli.base.fail"
local ffi = require "ffi"
local format = require "cli.base.format"
local lengths = require "cli.recipe.lengths"
local long = require "cli.instruct.long"
local numbered = require "cli.data.rows"
local packing = require "cli.instruct.packing"
local shards = require "cli.instruct.shards"
local teacher = require "cli.instruct.teacher"
local tokenizers = require "cli.data.tokenizers"
local tokens = require "cli.instruct.tokens"
local unicode = require "cli.base.unicode"

local instruction = {}

local IGNORED = -100  -- a target that counts for nothing
local PACKING_SEED = 20260  -- of evaluations, whose windows are the same of all runs

-- The options that data say: their form and, of rows, how windows are filled and the model's template.
function instruction.settle(o, run)
  local form = o.form
  if form == "auto" then
    form = (shards.are(o.data) or o.data == "" and shards.are(o.eval_data)) and "rows" or "text"
  end
  if form ~= "rows" then return { form = form } end
  local lengthy = o.lengths ~= ""
  local packs = o.packing ~= "auto" and o.packing or lengthy and "buckets" or "best_fit"
  if lengthy ~= (packs == "buckets") then
    fail.usage(lengthy and ("packing=%s goes without lengths=; packing=buckets has windows of these lengths")
      :format(packs) or "packing=buckets needs lengths=, as lengths=128,256,512")
  end
  return { form = form, packing = packs, template = chat.settle(o.template, run.directory) }
end

local function check(o)
  if o.batch * o.seq > numbered.MOST_TOKENS then
    fail.usage(("batch=%.0f and seq=%.0f make %.0f tokens of a micro-batch; at most %.0f"):format(o.batch, o.seq,
      o.batch * o.seq, numbered.MOST_TOKENS))
  end
end

local function tokenizer_of(o, run)
  run.instruction_tokenizer = run.instruction_tokenizer or tokenizers.of(o, run, function()
    fail.usage("tokens=bpe learns a vocabulary of a running text; rows are cut by the tokenizer of a model's " ..
      "directory, or by tokens=bytes")
  end)
  return run.instruction_tokenizer
end

-- The rows of an option's files, opened once a run: data may be trained with and held out of.
local function rows_of(o, run, name, what)
  run.instruction_rows = run.instruction_rows or {}
  local found = run.instruction_rows[name]
  if not found then
    local rows, source = tokens.open(o, run, tokenizer_of(o, run), name, what)
    found = { rows = rows, source = source }
    run.instruction_rows[name] = found
    if rows.most >= o.vocab then
      fail.input(("%s: %s: the token %d is beyond the model's table, which has %d"):format(what, name, rows.most,
        o.vocab))
    end
    local words = {}
    for form, count in pairs(rows.forms) do words[#words + 1] = ("%s: %d"):format(unicode.shown(form), count) end
    table.sort(words)
    local how = rows.template and (", written by %s"):format(rows.template) or
      "; no template: an answer follows its prompt as it is" .. (rows.last and ", and then " .. rows.last or "")
    run.note(("note: %s: %s has %s (%s)%s"):format(what, unicode.shown(name), format.counted(rows.count, "row"),
      table.concat(words, ", "), rows.forms.texts == rows.count and "" or how))
    if rows.dated then
      run.note(("note: %s: %s writes the date: rows have that of the day on which they became tokens, as long as " ..
        "the cache of tokens keeps them"):format(what, rows.template))
    end
  end
  return found.rows, found.source
end

-- Writes a piece of `size` tokens into arrays from number `at` on: each token and what follows it, where it is learned.
local function put(rows, row, from, size, into, targets, at)
  local found = rows:read(row, from, size)
  for i = 0, size - 1 do
    local token = found[i]
    into[at + i] = token >= 0 and token or bit.bnot(token)
    targets[at + i] = i + 1 < size and found[i + 1] >= 0 and found[i + 1] or IGNORED
  end
end

-- What windows have beside tokens where another model's expectations are learned: for each token that is followed by
-- a learned one the likeliest that may follow, their probabilities, which add up to 1, and the sum of p log p. Targets
-- are the likeliest.
local function taught_by(o, rows)
  local file = teacher.open(o.teacher, rows.first[rows.count], rows.identity)
  local count = o.top
  if file.count < count then
    fail.usage(("teacher: %s has the %d likeliest tokens of each place; top=%d asks for more"):format(o.teacher,
      file.count, count))
  end
  local self = { layout = { { "choices", "i32", o.seq * count }, { "shares", "f32", o.seq * count },
                            { "entropy", "f32", o.seq } } }
  function self.clear(arrays, from)
    ffi.fill(arrays.choices.data + from * count, 4 * o.seq * count)
    ffi.fill(arrays.shares.data + from * count, 4 * o.seq * count)
    ffi.fill(arrays.entropy.data + from, 4 * o.seq)
  end
  function self.fill(arrays, at, place, size)
    local choices, log_probs = file.read(place, size)
    local targets, shares = arrays.targets.data, arrays.shares.data
    for i = 0, size - 1 do
      if targets[at + i] ~= IGNORED then
        local from, into, sum, entropy = i * file.count, (at + i) * count, 0, 0
        for k = 0, count - 1 do
          local weight = math.exp((log_probs[from + k] - log_probs[from]) / o.temperature)
          arrays.choices.data[into + k], shares[into + k], sum = choices[from + k], weight, sum + weight
        end
        for k = 0, count - 1 do
          local share = shares[into + k] / sum
          shares[into + k] = share
          entropy = entropy + (share > 0 and share * math.log(share) or 0)
        end
        arrays.entropy.data[at + i], targets[at + i] = entropy, choices[from]
      end
    end
  end
  return self
end

-- What fills windows of seq tokens, and how many there are: pieces first[w] .. first[w + 1] - 1 of `members` are in
-- window w; without them, piece w alone. packed: windows say which sample a token is of, and where in it.
local function source_of(o, rows, pieces, seed)
  local taught = o.objective == "distill" and taught_by(o, rows) or nil
  local seq, count, members, first = o.seq, pieces.count, nil, nil
  local packed = o.packing == "best_fit"
  if packed then count, members, first = packing.best_fit(pieces.size.data, pieces.count, seq, seed) end
  local layout = { { "tokens", "i32", seq }, { "targets", "i32", seq } }
  if packed then layout[3], layout[4] = { "sequences", "i32", seq }, { "positions", "i32", seq } end
  for _, row in ipairs(taught and taught.layout or {}) do layout[#layout + 1] = row end
  local function fill(arrays, place, number)
    local from, made = place * seq, 0
    if taught then taught.clear(arrays, from) end
    local ids, targets = arrays.tokens.data, arrays.targets.data
    local samples, positions = packed and arrays.sequences.data, packed and arrays.positions.data
    local begin, stop = number and number - 1 or 0, number or 0
    if packed then begin, stop = number and first[number - 1] or 0, number and first[number] or 0 end
    for i = begin, stop - 1 do
      local piece = packed and members[i] or i
      local size, at = pieces.size.data[piece], from + made
      put(rows, pieces.row.data[piece], pieces.from.data[piece], size, ids, targets, at)
      if taught then
        taught.fill(arrays, at, rows.first[pieces.row.data[piece]] + pieces.from.data[piece], size)
      end
      for k = 0, packed and size - 1 or -1 do samples[at + k], positions[at + k] = i - begin, k end
      made = made + size
    end
    for i = from + made, from + seq - 1 do
      ids[i], targets[i] = 0, IGNORED
      if packed then samples[i], positions[i] = -1, 0 end
    end
    return made
  end
  return { layout = layout, fill = fill }, count
end

-- Pieces in the buckets of the lengths. Returns the dataset and the places of all windows.
local function bucketed(o, rows, pieces, seed, what)
  local list, sorted, places = lengths.parse(o.lengths), {}, 0
  for i = 1, #list do sorted[i] = buckets.new(list[1]) end
  for piece = 0, pieces.count - 1 do
    local size, program = pieces.size.data[piece], #list
    while list[program] < size do program = program - 1 end
    sorted[program].first:add(piece)
    sorted[program].count:add(size)
    places = places + list[program]
  end
  return buckets.batches(o, seed, sorted, what, function(into, at, piece, size)
    put(rows, pieces.row.data[piece], pieces.from.data[piece], size, into.tokens, into.targets, at)
  end), places
end

-- Says what windows hold, and returns it as shares: of the windows' places padding, of their tokens learned ones.
local function shares_of(o, pieces, places, windows, what, note)
  local made = { supervised = pieces.learned / pieces.tokens, padding = 1 - pieces.tokens / places }
  note(("note: %s: %s, %.3g %% of them learned, in %s (packing=%s), %.3g %% of which is padding"):format(what,
    format.counted(pieces.tokens, "token"), 100 * made.supervised, format.counted(windows, "window"), o.packing,
    100 * made.padding))
  return made
end

function instruction.dataset(o, run)
  if o.data == "" then fail.usage("data=FILE is needed (or data=random)") end
  check(o)
  local rows, source = rows_of(o, run, o.data, "data")
  local what = "data: " .. o.data
  local list = numbered.split(rows.count, o.eval_fraction)
  if #list == 0 then
    fail.input(("%s: eval_fraction=%.15g leaves no row to train with"):format(what, o.eval_fraction))
  end
  local pieces = long.pieces(o, rows, list, what, run.note)
  local windows, made, places = pieces.count
  if o.packing == "buckets" then
    made, places = bucketed(o, rows, pieces, run.seed, what)
  else
    local fills
    fills, windows = source_of(o, rows, pieces, run.seed)
    local order = {}
    for i = 1, windows do order[i] = i end
    made, places = numbered.dataset(order, o, run.seed, fills, what), windows * o.seq
  end
  made.shares = shares_of(o, pieces, places, windows, what, run.note)
  made.tokenizer = tokenizer_of(o, run)
  made.content, made.former_content = source.content, source.former_content
  return made
end

-- What is evaluated with: eval_data, or the share eval_fraction of data, drawn from all of its rows.
function instruction.evaluation(o, run)
  if not numbered.evaluates(o) then return nil end
  check(o)
  local own = changed(o, { objective = "next", lengths = "", packing = o.packing == "none" and "none" or "best_fit" })
  own.dropout = o.dropout and 0
  return { o = own, data = function()
    local apart = o.eval_data ~= ""
    local name, what = apart and o.eval_data or o.data, apart and "eval_data" or "eval_fraction"
    if name == "" then fail.usage("data=FILE is needed (or data=random)") end
    local rows, source = rows_of(own, run, name, what)
    local list = select(2, numbered.split(rows.count, apart and 1 or o.eval_fraction))
    if #list == 0 then
      fail.input(("eval_fraction=%.15g of the %d rows of %s is none"):format(o.eval_fraction, rows.count, name))
    end
    local fills, windows = source_of(own, rows, long.pieces(own, rows, list, ("%s: %s"):format(what, name), run.note),
      PACKING_SEED)
    local order = {}
    for i = 1, windows do order[i] = i end
    local made = numbered.evaluation(order, own, fills)
    if not apart then made.content, made.former_content = source.content, source.former_content end
    return made
  end }
end

return instruction
