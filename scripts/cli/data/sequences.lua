-- Samples of an encoder: texts or pairs of texts with a label, sentences whose words have tags, lines of a text; each
-- with what the tokenizer puts around it, and filled up to seq tokens with what lengths leaves out.
local examples = require "cli.data.examples"
local fail = require "cli.base.fail"
local fields = require "cli.data.fields"
local frame = require "cli.data.frame"
local labelled = require "cli.data.labelled"
local random = require "cairn.random"
local tables = require "cli.data.table"
local tokenizers = require "cli.data.tokenizers"
local unicode = require "cli.base.unicode"

local sequences = {}

local IGNORED = -100  -- a target that counts for nothing
local RANDOM_ROWS = 4096  -- of data=random

-- The number of a label by its name, or by itself, as files of numbers have it.
local function numbers_of(o)
  local numbers, list = {}, labelled.labels(o)
  for i, label in ipairs(list) do numbers[label] = i - 1 end
  return function(label)
    local number = tonumber(label:match("^%d+$") or "")
    return numbers[label] or number and number < #list and number or nil
  end
end

local function unknown(o, place, line, label)
  local list = labelled.labels(o)
  fail.input(("%s: line %d: the label '%s' is none of those of the model: %s%s; labels=A,B,... names others"):format(
    place, line, unicode.shown(label), unicode.shown(table.concat({ unpack(list, 1, 20) }, ", ")),
    #list > 20 and ", ..." or ""))
end

local function text_in(row, name, line, reader, option)
  local text, refuse = labelled.cell(row, name, line, reader, option)
  if type(text) ~= "string" then refuse("a text") end
  return text
end

-- The kinds. read(path, what, o): lines, labels (all of them), and for each row what pieces(found, at, cut) makes
-- lists of tokens of, with cut(text) -> tokens (of a kind with `apart`, each a sequence of its own); targets(found,
-- at, of, places): numbers from of(label, line), one for a row, or by places in it.
local KINDS = {}

KINDS.classify = {
  read = function(path, what, o)
    local made = { texts = {}, pairs = {}, labels = {}, lines = {} }
    tables.each(path, what, function(row, line, reader)
      local i = #made.lines + 1
      made.texts[i] = text_in(row, o.text, line, reader, "text")
      made.pairs[i] = o.pair ~= "" and text_in(row, o.pair, line, reader, "pair") or nil
      local label, refuse = labelled.cell(row, o.label, line, reader, "label")
      label = fields.name(label)
      if not label or label == "" then refuse("a label: a text that is not empty, or a number") end
      made.labels[i], made.lines[i] = label, line
    end)
    return made
  end,
  pieces = function(found, at, cut) return { cut(found.texts[at]), found.pairs[at] and cut(found.pairs[at]) } end,
  targets = function(found, at, of) return of(found.labels[at], found.lines[at]) end,
}

KINDS.embed = {
  apart = true,
  read = function(path, what, o)
    local made = { texts = {}, pairs = {}, lines = {} }
    tables.each(path, what, function(row, line, reader)
      local i = #made.lines + 1
      made.texts[i] = text_in(row, o.text, line, reader, "text")
      made.pairs[i] = text_in(row, o.pair, line, reader, "pair")
      made.lines[i] = line
    end)
    return made
  end,
  pieces = function(found, at, cut) return { cut(found.texts[at]), cut(found.pairs[at]) } end,
}

-- Sentences of a text of columns: a word first and its tag last in each line, and an empty line after each sentence.
local function columns_of(path, what, made)
  local number, words, tags = 0, {}, {}
  local function finish()
    if #words == 0 then return end
    made.words[#made.words + 1], made.tags[#made.tags + 1] = words, tags
    made.lines[#made.lines + 1] = number - #words
    words, tags = {}, {}
  end
  for line in tables.file_lines(path, what) do
    number = number + 1
    line = line:gsub("\r$", "")
    if line:find("^%s*$") or line:find("^%-DOCSTART%-") then
      finish()
    else
      local word, tag = line:match("^(%S+).*%s(%S+)%s*$")
      if not word then
        fail.input(("%s: %s: line %d: '%s' has no two columns; wanted: a word and, last, its tag"):format(what, path,
          number, unicode.shown(line:sub(1, 40))))
      end
      words[#words + 1], tags[#tags + 1] = word, tag
    end
  end
  number = number + 1
  finish()
  if #made.lines == 0 then fail.input(("%s: %s holds no sentence"):format(what, path)) end
end

local function is_list(value) return type(value) == "table" and (#value > 0 or next(value) == nil) end

KINDS.tag = {
  read = function(path, what, o)
    local made = { words = {}, tags = {}, labels = {}, lines = {} }
    if tables.form_of(path) ~= "jsonl" then
      columns_of(path, what, made)
    else
      tables.each(path, what, function(row, line, reader)
        local words, refuse = labelled.cell(row, o.text, line, reader, "text")
        local tags, refuse_tags = labelled.cell(row, o.label, line, reader, "label")
        if not is_list(words) then refuse("an array of words") end
        if not is_list(tags) or #tags ~= #words then
          refuse_tags(("an array of %d tags, one of each word"):format(#words))
        end
        local names = {}
        for i, word in ipairs(words) do
          if type(word) ~= "string" then refuse("an array of words, which are texts") end
          names[i] = fields.name(tags[i])
          if not names[i] or names[i] == "" then refuse_tags("an array of tags, which are texts or numbers") end
        end
        made.words[#made.words + 1], made.tags[#made.tags + 1], made.lines[#made.lines + 1] = words, names, line
      end)
    end
    for _, tags in ipairs(made.tags) do
      for _, tag in ipairs(tags) do made.labels[#made.labels + 1] = tag end
    end
    return made
  end,
  -- A word's first token has its tag; the others have none.
  pieces = function(found, at, cut)
    local list, first = frame.pieces(found.words[at], cut)
    return { list }, first
  end,
  targets = function(found, at, of, places)
    local targets = {}
    for place, i in pairs(places) do targets[place] = of(found.tags[at][i], found.lines[at]) end
    return targets
  end,
}

KINDS.lines = {
  read = function(path, what)
    local made, number = { texts = {}, lines = {} }, 0
    for line in tables.file_lines(path, what) do
      number = number + 1
      if line:find("%S") then
        made.texts[#made.texts + 1], made.lines[#made.lines + 1] = line:gsub("\r$", ""), number
      end
    end
    if #made.lines == 0 then fail.input(("%s: %s holds no line with a text in it"):format(what, path)) end
    return made
  end,
  pieces = function(found, at, cut) return { cut(found.texts[at]) } end,
}

-- What arrays are filled from. form: {kind, paired, shares, last}; samples[i]: {tokens, first, target, other
-- (of a kind with `apart`: the second sequence of the row, which follows the first in each array)}.
local function source_of(o, form, samples)
  local names = { tokens = "tokens", lengths = not form.last and "lengths" or nil,
                  types = form.paired and "types" or nil, share = form.shares and "share" or nil, last = form.last }
  local apart = KINDS[form.kind].apart
  local each = apart and 2 or 1
  local layout = { { "tokens", "i32", each * o.seq } }
  if names.lengths then layout[#layout + 1] = { "lengths", "i32", each } end
  if names.types then layout[#layout + 1] = { "types", "i32", o.seq } end
  if names.share then layout[#layout + 1] = { "share", "f32", each * o.seq } end
  local targets = form.kind == "tag" and o.seq or form.kind == "classify" and 1 or 0
  if targets > 0 then layout[#layout + 1] = { "target", "i32", targets } end
  local none = { tokens = {}, first = 0 }
  return {
    layout = layout, complete = apart,
    fill = function(arrays, place, number)
      local sample = number and samples[number] or none
      if apart then
        local rows = {}
        for name, array in pairs(arrays) do rows[name] = { data = array.data, width = array.width / 2 } end
        frame.put(names, rows, 2 * place, sample.tokens, sample.first)
        frame.put(names, rows, 2 * place + 1, sample.other.tokens, sample.other.first)
        return #sample.tokens + #sample.other.tokens
      end
      frame.put(names, arrays, place, sample.tokens, sample.first)
      for i = 0, targets - 1 do
        local target = sample.target
        if form.kind == "tag" then target = target and target[i] end
        arrays.target.data[place * targets + i] = target or IGNORED
      end
      return #sample.tokens
    end,
  }
end

local function file_source(o, run, form, found, list, what, path)
  local kind, tokenizer, samples, cut = KINDS[form.kind], tokenizers.of(o, run), {}, 0
  local around, of = frame.of(tokenizer.opened), kind.targets and numbers_of(o)
  local place = ("%s: %s"):format(what, path)
  if o.seq <= frame.size(around, form.paired) then
    fail.usage(("seq=%d leaves no room for a text between the %d tokens around it"):format(o.seq,
      frame.size(around, form.paired)))
  end
  local function number_of(label, line) return of(label) or unknown(o, place, line, label) end
  for _, at in ipairs(list) do
    local function tokens_of(text)
      return fail.check(("%s: line %d"):format(place, found.lines[at]), tokenizer.opened:encode(text))
    end
    local pieces, first_of_words = kind.pieces(found, at, tokens_of)
    local function joined(list_of)
      local tokens, first, short = frame.joined(around, list_of, o.seq)
      for _, token in ipairs(tokens) do
        if token >= o.vocab then
          fail.input(("%s: line %d: the token %d is beyond the model's table, which has %d"):format(place,
            found.lines[at], token, o.vocab))
        end
      end
      cut = cut + (short and 1 or 0)
      return tokens, first
    end
    local tokens, first = joined(kind.apart and { pieces[1] } or pieces)
    local places = first_of_words and frame.places(around, first_of_words, #tokens)
    samples[at] = { tokens = tokens, first = first,
                    target = kind.targets and kind.targets(found, at, number_of, places) }
    if kind.apart then
      local other = {}
      other.tokens, other.first = joined { pieces[2] }
      samples[at].other = other
    end
  end
  if cut > 0 then
    run.note(("note: %s: %d of %d texts have more than seq=%d tokens, of which the first count"):format(what, cut,
      kind.apart and 2 * #list or #list, o.seq))
  end
  return source_of(o, form, samples), tokenizer
end

local function random_source(o, form, seed)
  local draw, samples = random(seed), {}
  for i = 1, RANDOM_ROWS do
    local tokens, labels = {}, KINDS[form.kind].targets and #labelled.labels(o)
    for k = 1, o.seq do tokens[k] = math.floor(draw() * o.vocab) end
    local target = labels and math.floor(draw() * labels)
    if form.kind == "tag" then
      target = {}
      for k = 0, o.seq - 1 do target[k] = math.floor(draw() * labels) end
    end
    samples[i] = { tokens = tokens, first = math.ceil(o.seq / 2), target = target }
    samples[i].other = samples[i]
  end
  return source_of(o, form, samples), RANDOM_ROWS
end

local last  -- the file that was read last: labels are settled by it before it is trained with

local function read(form, path, what, o)
  local key = table.concat({ form.kind, path, o.text, o.label, o.pair }, "\0")
  if not last or last.key ~= key then
    last = KINDS[form.kind].read(path, what, o)
    last.key = key
  end
  return last
end

-- form: {kind (a key of KINDS), paired (there are types), shares (there is share), last (which is 1 at the last token,
-- 0 elsewhere; there are no lengths)}.
local function kind_of(form)
  return {
    read = function(path, what, o) return read(form, path, what, o) end,
    source = function(o, run, ...) return file_source(o, run, form, ...) end,
    random = function(o, seed) return random_source(o, form, seed) end,
    labels = form.kind == "classify" and labelled.labels or nil,
  }
end

-- What the option `labels` is for the data.
function sequences.labels(o, form) return labelled.found(o, read(form, o.data, "data", o).labels) end

function sequences.dataset(o, run, form) return examples.dataset(kind_of(form), o, run) end
function sequences.evaluation(o, run, form) return examples.evaluation(kind_of(form), o, run) end

return sequences
