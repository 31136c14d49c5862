-- Texts with labels, for recipes that tell texts apart: a table with a column of texts and one of labels.
local cache = require "cli.data.token_cache"
local cairn = require "cairn"
local decode = require "cli.base.json_decode"
local examples = require "cli.data.examples"
local fail = require "cli.base.fail"
local fields = require "cli.data.fields"
local json = require "cli.base.json"
local posix = require "cli.base.posix"
local random = require "cairn.random"
local rows = require "cli.data.rows"
local tables = require "cli.data.table"
local tokenizers = require "cli.data.tokenizers"
local unicode = require "cli.base.unicode"

local labelled = {}

local IGNORED = -100  -- a target that counts for nothing
local MOST_LABELS = 10000
local RANDOM_ROWS, RANDOM_LABELS = 4096, 2  -- of data=random

-- The labels that the option says, in order.
function labelled.labels(o)
  if o.labels == "" then
    local list = {}
    for i = 1, RANDOM_LABELS do list[i] = tostring(i - 1) end
    return list
  end
  local list = {}
  if o.labels:sub(1, 1) == "[" then
    local ok, read = pcall(decode, o.labels)
    list = ok and type(read) == "table" and read or {}
  else
    for word in (o.labels .. ","):gmatch("([^,]*),") do list[#list + 1] = word end
  end
  local seen = {}
  for i = 1, #list do
    if type(list[i]) ~= "string" or list[i] == "" or seen[list[i]] then
      fail.usage(("labels=%s; wanted: names, each once, as spam,ham or [\"spam\",\"ham\"]"):format(
        unicode.shown(o.labels)))
    end
    seen[list[i]] = true
  end
  if #list < 2 then fail.usage(("labels=%s; wanted: two or more"):format(unicode.shown(o.labels))) end
  return list
end

-- A cell of a row, and what refuses it. option: which names its column.
function labelled.cell(row, name, line, reader, option)
  local value = row[name]
  if value == nil and reader.columns then
    fail.input(("%s: line 1: the header has no column '%s'; it has: %s; %s=NAME names another"):format(reader.source,
      name, unicode.shown(table.concat(reader.columns, ", ")), option))
  end
  return value, function(wanted)
    reader:refuse(line, ("'%s' is %s; wanted: %s"):format(name, fields.shown(value), wanted))
  end
end

local last  -- the file that was read last: options are settled by it before it is trained with

-- Texts and labels of a file, in its order: {texts, labels, lines}.
local function read(path, what, o)
  local key = table.concat({ path, o.text, o.label }, "\0")
  if last and last.key == key then return last end
  local made = { key = key, texts = {}, labels = {}, lines = {} }
  tables.each(path, what, function(row, line, reader)
    local text, refuse = labelled.cell(row, o.text, line, reader, "text")
    if type(text) ~= "string" then refuse("a text") end
    local label, refuse_label = labelled.cell(row, o.label, line, reader, "label")
    label = fields.name(label)
    if not label or label == "" then refuse_label("a label: a text that is not empty") end
    local i = #made.texts + 1
    made.texts[i], made.labels[i], made.lines[i] = text, label, line
  end)
  last = made
  return made
end

-- Fills in `labels` from the data, sorted, where the options do not say them.
function labelled.settle(o)
  if o.labels ~= "" then
    labelled.labels(o)
    return nil
  end
  if o.data == "" or o.data == "random" then return nil end
  return { labels = labelled.found(o, read(o.data, "data", o).labels) }
end

-- What the option is for these labels of the data, one of each row: each once, sorted.
function labelled.found(o, labels)
  local list, seen = {}, {}
  for _, label in ipairs(labels) do
    if not seen[label] then list[#list + 1], seen[label] = label, true end
  end
  if #list < 2 then
    fail.input(("data: %s has one label alone, '%s'; there is nothing to tell apart"):format(o.data,
      unicode.shown(list[1])))
  end
  if #list > MOST_LABELS then
    fail.input(("data: %s has %d labels; at most %d: is '%s' the column of labels?"):format(o.data, #list, MOST_LABELS,
      unicode.shown(o.label)))
  end
  table.sort(list)
  return json.encode(json.array(list))
end

-- Writes texts one under another into a file beside `path`, and learns a vocabulary of them.
local function learn(texts, vocab, path)
  local words = path .. ".txt"
  local ok, problem = posix.write_file(words, table.concat(texts, "\n") .. "\n")
  if not ok then fail.with(5, problem) end
  local made, err = cairn.train_tokenizer(words, vocab, path)
  os.remove(words)
  return made, err
end

-- The tokenizer: a vocabulary is learned from the texts that are trained with.
local function tokenizer_of(o, run)
  return tokenizers.of(o, run, function()
    local file, found = examples.trained_file(o, run), read(o.data, "data", o)
    local name = ("%s-texts-%s-%.15g-bpe%d.model"):format(file.content, o.text:gsub("[^%w_-]", "-"), o.eval_fraction,
      o.vocab)
    return cache.open(run.note):made(name,
      { file.content, "vocabulary of " .. json.encode(o.text), ("%d"):format(o.vocab),
        ("%.15g"):format(o.eval_fraction) },
      function(path) return tokenizers.of_file(path, name) end,
      function(path)
        run.note("training a vocabulary of " .. o.vocab .. " on the texts of " .. o.data)
        local texts, trained = {}, rows.split(#found.texts, o.eval_fraction)
        for i, at in ipairs(trained) do texts[i] = found.texts[at] end
        return learn(texts, o.vocab, path)
      end, file.unchanged)
  end)
end

-- What rows.dataset fills arrays from: texts as tokens and labels as numbers. tokens[i]: an array; class[i].
local function source_of(o, tokens, class)
  local row = { tokens = "tokens", real = "real", padding = "padding" }
  local none = {}
  return {
    layout = { { "tokens", "i32", o.seq }, { "real", "f32", o.seq }, { "padding", "f32", o.seq },
               { "target", "i32", 1 } },
    fill = function(arrays, place, number)
      local found = number and tokens[number] or none
      fields.put_text(row, arrays, place, found)
      arrays.target.data[place] = number and class[number] or IGNORED
      return #found
    end,
  }
end

local function random_source(o, seed)
  local draw, tokens, class, count = random(seed), {}, {}, RANDOM_ROWS
  for i = 1, count do
    local list = {}
    for k = 1, 1 + math.floor(draw() * o.seq) do list[k] = math.floor(draw() * o.vocab) end
    tokens[i], class[i] = list, math.floor(draw() * #labelled.labels(o))
  end
  return source_of(o, tokens, class), count
end

-- Texts `list` of a file as tokens: of each the first seq. Says how many are longer.
local function file_source(o, run, found, list, what, path)
  local tokenizer, numbers, tokens, class, cut = tokenizer_of(o, run), {}, {}, {}, 0
  if tokenizer.opened:vocabulary() > o.vocab then
    fail.usage(("vocab=%d is less than the %d tokens there are"):format(o.vocab, tokenizer.opened:vocabulary()))
  end
  for i, label in ipairs(labelled.labels(o)) do numbers[label] = i - 1 end
  for _, at in ipairs(list) do
    local label = found.labels[at]
    class[at] = numbers[label] or fail.input(("%s: %s: line %d: the label '%s' is none of those of the model: %s")
      :format(what, path, found.lines[at], unicode.shown(label), unicode.shown(table.concat(labelled.labels(o), ", "))))
    local encoded = fail.check(("%s: line %d"):format(path, found.lines[at]), tokenizer.opened:encode(found.texts[at]))
    cut = cut + (#encoded > o.seq and 1 or 0)
    local kept = {}
    for i = 1, math.min(#encoded, o.seq) do kept[i] = encoded[i] end
    tokens[at] = kept
  end
  if cut > 0 then
    run.note(("note: %s: %d of %d texts have more than seq=%d tokens, of which the first count"):format(what, cut,
      #list, o.seq))
  end
  return source_of(o, tokens, class), tokenizer
end

-- Texts with labels as cli.data.examples takes a kind of them.
local KIND = { read = read, source = file_source, random = random_source, labels = labelled.labels }

function labelled.dataset(o, run) return examples.dataset(KIND, o, run) end
function labelled.evaluation(o, run) return examples.evaluation(KIND, o, run) end

return labelled
