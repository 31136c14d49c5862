-- Pairs of texts, one to read and one to write, for recipes with an encoder and a decoder: a table with a column of
-- each. o: what options say (see recipes.seq2seq), and the tokens pad, start and last.
local content = require "cli.data.content"
local fail = require "cli.base.fail"
local fields = require "cli.data.fields"
local random = require "cairn.random"
local rows = require "cli.data.rows"
local tables = require "cli.data.table"
local tokenizers = require "cli.data.tokenizers"
local unicode = require "cli.base.unicode"

local pairs_of_texts = {}

local IGNORED = -100  -- a target that counts for nothing
local RANDOM_ROWS = 4096  -- of data=random

local function cell(row, name, line, reader, option)
  local value = row[name]
  if value == nil and reader.columns then
    fail.input(("%s: line 1: the header has no column '%s'; it has: %s; %s=NAME names another"):format(reader.source,
      name, unicode.shown(table.concat(reader.columns, ", ")), option))
  end
  if type(value) ~= "string" then
    reader:refuse(line, ("'%s' is %s; wanted: a text; %s=NAME names another column"):format(name, fields.shown(value),
      option))
  end
  return value
end

-- The tokens of a text, at most so many, the last of which is the one that ends it. Returns whether it was longer, too.
local function encoded(tokenizer, text, last, most, what)
  local list = {}
  if tokenizer.kind == "pretrained" then
    local tokens, count = tokenizer.opened:encode_with(text, { special = true })
    fail.check(what, tokens, count)
    for i = 1, count do list[i] = tokens[i - 1] end
  else
    for i, token in ipairs(fail.check(what, tokenizer.opened:encode(text))) do list[i] = token end
  end
  if list[#list] ~= last then list[#list + 1] = last end
  local longer = #list > most
  while #list > most do list[#list] = nil end
  list[#list] = last
  return list, longer
end

-- Fills rows of arrays from pairs of lists of tokens: what is read, how long it is, what is written, and the same one
-- token later, after the token that begins every text.
local function source_of(o, read, written)
  local none = {}
  return {
    layout = { { "source", "i32", o.seq }, { "source_lengths", "i32", 1 }, { "tokens", "i32", o.target_seq },
               { "targets", "i32", o.target_seq } },
    fill = function(arrays, place, number)
      local from, to = number and read[number] or none, number and written[number] or none
      for i = 0, o.seq - 1 do arrays.source.data[place * o.seq + i] = from[i + 1] or o.pad end
      arrays.source_lengths.data[place] = #from
      for i = 0, o.target_seq - 1 do
        local at = place * o.target_seq + i
        arrays.targets.data[at] = to[i + 1] or IGNORED
        arrays.tokens.data[at] = i == 0 and o.start or to[i] or o.pad
      end
      return #to
    end,
  }
end

local function random_source(o, seed)
  local draw, read, written = random(seed), {}, {}
  local function drawn(most)
    local list = {}
    for i = 1, 1 + math.floor(draw() * most) do list[i] = math.floor(draw() * o.vocab) end
    return list
  end
  for i = 1, RANDOM_ROWS do read[i], written[i] = drawn(o.seq), drawn(o.target_seq) end
  return source_of(o, read, written), RANDOM_ROWS
end

-- The tokenizer of a run, opened once.
local function tokenizer_of(o, run)
  run.pairs_tokenizer = run.pairs_tokenizer or tokenizers.of(o, run)
  return run.pairs_tokenizer
end

-- All pairs of a file as tokens. Returns what fills arrays from them, and how many there are.
local function file_source(o, run, path, what)
  local tokenizer, read, written, cut = tokenizer_of(o, run), {}, {}, { seq = 0, target_seq = 0 }
  tables.each(path, what, function(row, line, reader)
    local function tokens(name, option)
      local list, longer = encoded(tokenizer, cell(row, o[name], line, reader, name), o.last, o[option],
        ("%s: line %d"):format(path, line))
      cut[option] = cut[option] + (longer and 1 or 0)
      return list
    end
    read[#read + 1] = tokens("source", "seq")
    written[#written + 1] = tokens("target", "target_seq")
  end)
  for option, count in pairs(cut) do
    if count > 0 then
      run.note(("note: %s: %d of %d texts have more than %s=%d tokens, of which the first count"):format(what, count,
        #read, option, o[option]))
    end
  end
  return source_of(o, read, written), #read
end

-- The file that is trained with, looked at once a run.
local function trained_file(o, run)
  run.pairs_file = run.pairs_file or content.open(run, o.data, "data")
  return run.pairs_file
end

local function check(o)
  local most = math.max(o.seq, o.target_seq)
  if o.batch * most > rows.MOST_TOKENS then
    fail.usage(("batch=%.0f and texts of %.0f tokens make %.0f of a micro-batch; at most %.0f"):format(o.batch, most,
      o.batch * most, rows.MOST_TOKENS))
  end
end

function pairs_of_texts.dataset(o, run)
  if o.data == "" then fail.usage("data=FILE is needed (or data=random)") end
  check(o)
  if o.data == "random" then
    local source, count = random_source(o, run.seed)
    return rows.dataset(rows.split(count, o.eval_fraction), o, run.seed, source, "data=random")
  end
  local file = trained_file(o, run)
  local source, count = file_source(o, run, o.data, "data")
  local made = rows.dataset(rows.split(count, o.eval_fraction), o, run.seed, source, "data: " .. o.data)
  made.tokenizer, made.content = tokenizer_of(o, run), file.content
  return made
end

-- What is evaluated with: eval_data, or the share eval_fraction of data that is not trained with.
function pairs_of_texts.evaluation(o, run)
  if not rows.evaluates(o) then return nil end
  check(o)
  local own = {}
  for key, value in pairs(o) do own[key] = value end
  own.dropout = 0
  return { o = own, data = function()
    local path, what = o.eval_data, "eval_data"
    if path == "" then path, what = o.data, "eval_fraction" end
    local file, source, count
    if path == "random" then
      source, count = random_source(o, run.seed)
    else
      file = o.eval_data == "" and trained_file(o, run) or content.open(run, path, what)
      source, count = file_source(o, run, path, what)
    end
    local list = select(2, rows.split(count, o.eval_data == "" and o.eval_fraction or 1))
    if #list == 0 then
      fail.input(("eval_fraction=%.15g of the %d rows of %s is none"):format(o.eval_fraction, count, path))
    end
    local made = rows.evaluation(list, o, source)
    if o.eval_data == "" and file then made.content = file.content end
    return made
  end }
end

return pairs_of_texts
