-- What a row of data is to a model, as data: rows that say which field of it goes into which input of a graph, and what
-- comes of its outputs. The first dimension of each input and output counts rows. Training and predicting read fields
-- by the same rows.
--   inputs:  { kind = "text", field =, tokens =, real =, padding = }    i32[rows, T], and f32[rows, T] twice: 1 where a
--                                                                       token is, PADDING where none is; else 0
--            { kind = "number", field =, input =, at =, mean =, deviation = }    one column of f32[rows, C]
--            { kind = "category", field =, input =, at =, values = {...} }       a column for each value, one of them 1
--            { kind = "array", field =, input = }                                all of a row of the input
--            { kind = "sequence", field =, pair =, tokens =, lengths =, types =, share = }
--                                                                       a text, or two, as cli.data.frame puts it
--            { kind = "picture", field =, input =, resize =, mean = {...}, deviation = {...} }    a file's path, into
--                                                                       f32[rows, H, W, C] (cairn.pictures)
--            { kind = "words", field =, tokens =, lengths = }           an array of words, which the answer "tags" tags
--   answers: { kind = "label", field =, probabilities =, output =, labels = {...} }    f32[rows, labels]
--            { kind = "number", field =, output =, mean =, deviation = }               f32[rows] or f32[rows, 1]
--            { kind = "tags", field =, output =, tokens =, labels = {...} }            f32[rows, T, labels]
--            { kind = "array", field =, output = }
local cairn = require "cairn"
local frame = require "cli.data.frame"
local json = require "cli.base.json"
local numbers = require "cairn.numbers"
local unicode = require "cli.base.unicode"

local fields = { PADDING = -30000 }

local function shown(value)
  local kind = type(value)
  if kind == "nil" then return "missing" end
  if kind == "string" then return ("'%s'"):format(unicode.shown(value)) end
  if kind == "table" then return "an array or object" end
  return tostring(value)
end
fields.shown = shown

-- A finite number that a cell or a JSON value says; nil: it says none.
function fields.number(value)
  if type(value) == "string" and value:find("^%-?%d+%.?%d*$") then
    value = tonumber(value)
  elseif type(value) == "string" then
    local text = value:match("^%s*(.-)%s*$")
    local plain = text:match("^[+-]?(.*)$")
    if not (plain:match("^%d+%.?%d*$") or plain:match("^%.%d+$") or plain:match("^%d*%.?%d*[eE][+-]?%d+$")) then
      return nil
    end
    value = tonumber((text:gsub("^%+", "")))
  end
  if type(value) ~= "number" or value ~= value or math.abs(value) == math.huge then return nil end
  return value
end

-- What names a category or a label: a text, or a number or truth value of JSON as text.
function fields.name(value)
  if type(value) == "string" then return value end
  if type(value) == "number" then return ("%.15g"):format(value) end
  if type(value) == "boolean" then return tostring(value) end
end

local function is_texts(list)
  if type(list) ~= "table" or #list == 0 then return false end
  local seen = {}
  for key, text in pairs(list) do
    if type(key) ~= "number" or key > #list or type(text) ~= "string" or seen[text] then return false end
    seen[text] = true
  end
  return true
end

-- Puts tokens into row `at` (from 0) of arrays, the first of them if there are more than a row holds.
function fields.put_text(row, arrays, at, tokens)
  local width = arrays[row.tokens].width
  local ids, real, padding = arrays[row.tokens].data, arrays[row.real].data, arrays[row.padding].data
  for i = 0, width - 1 do
    local there, place = i < #tokens, at * width + i
    ids[place], real[place], padding[place] = there and tokens[i + 1] or 0, there and 1 or 0,
      there and 0 or fields.PADDING
  end
end

-- Of JSON nested as the shape says, or flat: all numbers in order.
local function flatten(value, into)
  if type(value) ~= "table" then
    into[#into + 1] = value
    return into
  end
  for i = 1, #value do flatten(value[i], into) end
  return into
end

local function expect(graph, name, dtype, ranks)
  local info = type(name) == "string" and graph:info(name)
  if not info then return ("the graph has no '%s'"):format(tostring(name)) end
  local fits = not dtype or info.dtype == dtype
  if fits and ranks then fits = ranks[#info.shape] end
  if not fits then return ("'%s' is %s[%s]"):format(name, info.dtype, table.concat(info.shape, ", ")) end
  return nil, info
end

local function expect_column(row, graph, count)
  local problem, info = expect(graph, row.input, "f32", { [2] = true })
  if problem then return problem end
  if type(row.at) ~= "number" or row.at < 0 or row.at ~= math.floor(row.at) or row.at + count > info.shape[2] then
    return ("'%s' has no columns %s to %s"):format(row.input, tostring(row.at), tostring(row.at + count - 1))
  end
end

local function is_scale(row)
  return fields.number(row.mean) and fields.number(row.deviation) and row.deviation > 0
end

-- Whether a list has a number for each colour, all above `least` where it is given.
local function is_colour(list, least)
  for i = 1, 3 do
    local number = type(list) == "table" and #list == 3 and fields.number(list[i])
    if not number or least and number <= least then return false end
  end
  return true
end

-- By kind: check(row, graph): what is wrong with the row, or nothing; inputs(row): what it fills; write(row, arrays,
-- at, value, tokenizer, all values of the row): true, or nil and what is wrong with the value.
fields.inputs = {
  text = {
    reads_text = true,
    check = function(row, graph)
      local width
      for name, dtype in pairs { tokens = "i32", real = "f32", padding = "f32" } do
        local problem, info = expect(graph, row[name], dtype, { [2] = true })
        if problem then return problem end
        if width and info.shape[2] ~= width then
          return ("'%s' has %d columns, another input of the text %d"):format(row[name], info.shape[2], width)
        end
        width = info.shape[2]
      end
    end,
    inputs = function(row) return { row.tokens, row.real, row.padding } end,
    write = function(row, arrays, at, value, tokenizer)
      if type(value) ~= "string" then return nil, ("it is %s; wanted: a text"):format(shown(value)) end
      local tokens, err = tokenizer:encode(value)
      if not tokens then return nil, tostring(err) end
      fields.put_text(row, arrays, at, tokens)
      return true
    end,
  },
  sequence = {
    reads_text = true,
    check = function(row, graph)
      local problem, tokens = expect(graph, row.tokens, "i32", { [2] = true })
      problem = problem or (expect(graph, row.lengths, "i32", { [1] = true }))
      for name, dtype in pairs { types = "i32", share = "f32" } do
        local info
        if not problem and row[name] ~= nil then problem, info = expect(graph, row[name], dtype, { [2] = true }) end
        if info and info.shape[2] ~= tokens.shape[2] then
          problem = ("'%s' has %d columns, '%s' %d"):format(row[name], info.shape[2], row.tokens, tokens.shape[2])
        end
      end
      if not problem and row.pair ~= nil and type(row.pair) ~= "string" then problem = "pair names no field" end
      return problem
    end,
    inputs = function(row)
      local list = { row.tokens, row.lengths }
      list[#list + 1] = row.types
      list[#list + 1] = row.share
      return list
    end,
    write = function(row, arrays, at, value, tokenizer, values)
      local pair = row.pair and values[row.pair]
      if type(value) ~= "string" then return nil, ("it is %s; wanted: a text"):format(shown(value)) end
      if row.pair and type(pair) ~= "string" then
        return nil, ("'%s', which goes with it, is %s; wanted: a text"):format(unicode.shown(row.pair), shown(pair))
      end
      local tokens, first = frame.encoded(tokenizer, value, pair, arrays[row.tokens].width)
      if not tokens then return nil, tostring(first) end
      frame.put(row, arrays, at, tokens, first)
      return true
    end,
  },
  words = {
    reads_text = true,
    check = function(row, graph)
      return (expect(graph, row.tokens, "i32", { [2] = true })) or (expect(graph, row.lengths, "i32", { [1] = true }))
    end,
    inputs = function(row) return { row.tokens, row.lengths } end,
    write = function(row, arrays, at, value, tokenizer)
      local problem
      local list, first = frame.pieces(type(value) == "table" and value or {}, function(word)
        local tokens, err = nil, "an array of words has texts alone"
        if type(word) == "string" then tokens, err = tokenizer:encode(word) end
        if not tokens then problem = tostring(err) end
        return tokens or {}
      end)
      if type(value) ~= "table" or #value == 0 then
        problem = ("it is %s; wanted: an array of words"):format(shown(value))
      end
      if problem then return nil, problem end
      local around = frame.of(tokenizer)
      local tokens = frame.joined(around, { list }, arrays[row.tokens].width)
      frame.put(row, arrays, at, tokens, #tokens)
      local places = arrays[row.tokens].places or {}
      arrays[row.tokens].places, places[at] = places, { of = frame.places(around, first, #tokens), count = #value }
      return true
    end,
  },
  number = {
    check = function(row, graph)
      if not is_scale(row) then return "a number has a mean, and a deviation above 0" end
      return expect_column(row, graph, 1)
    end,
    inputs = function(row) return { row.input } end,
    write = function(row, arrays, at, value)
      local number = fields.number(value)
      if not number then return nil, ("it is %s; wanted: a number"):format(shown(value)) end
      arrays[row.input].data[at * arrays[row.input].width + row.at] = (number - row.mean) / row.deviation
      return true
    end,
  },
  category = {
    check = function(row, graph)
      if not is_texts(row.values) then return "a category has values, texts in a list" end
      return expect_column(row, graph, #row.values)
    end,
    inputs = function(row) return { row.input } end,
    write = function(row, arrays, at, value)
      local name, from, found = fields.name(value), at * arrays[row.input].width + row.at, false
      for i, each in ipairs(row.values) do
        local is = each == name
        arrays[row.input].data[from + i - 1], found = is and 1 or 0, found or is
      end
      if found then return true end
      local list = table.concat({ unpack(row.values, 1, 8) }, ", ") .. (#row.values > 8 and ", ..." or "")
      return nil, ("it is %s; wanted: one of %s, which it was trained with"):format(shown(value), unicode.shown(list))
    end,
  },
  picture = {
    check = function(row, graph)
      if not (is_colour(row.mean) and is_colour(row.deviation, 0) and fields.number(row.resize)) then
        return "a picture has resize, and for each of three colours a mean and a deviation above 0"
      end
      local problem, info = expect(graph, row.input, "f32", { [4] = true })
      if not problem and info.shape[4] ~= 1 and info.shape[4] ~= 3 then
        problem = ("'%s' has %d channels; wanted: 1 or 3"):format(row.input, info.shape[4])
      end
      return problem
    end,
    inputs = function(row) return { row.input } end,
    write = function(row, arrays, at, value)
      if type(value) ~= "string" then return nil, ("it is %s; wanted: a picture's path"):format(shown(value)) end
      local array = arrays[row.input]
      local made, err = cairn.pictures { data = "file:" .. value, width = array.shape[2], height = array.shape[1],
        channels = array.shape[3], resize = row.resize, mean = row.mean, deviation = row.deviation }
      local rows
      if made then
        rows, err = made:batch(0, 1, { pixels = array.data + at * array.width })
        made:free()
      end
      if not rows then return nil, tostring(err) end
      return true
    end,
  },
  array = {
    check = function(row, graph) return (expect(graph, row.input)) end,
    inputs = function(row) return { row.input } end,
    write = function(row, arrays, at, value)
      local array = arrays[row.input]
      local list = flatten(value, {})
      if #list ~= array.width then
        return nil, ("it has %d number%s; wanted: %d, %s[%s]"):format(#list, #list == 1 and "" or "s", array.width,
          array.dtype, table.concat(array.shape, ", "))
      end
      for i, each in ipairs(list) do
        local number = fields.number(each)
        local whole = array.dtype:find("^[iu]") ~= nil
        if not number or whole and (number ~= math.floor(number) or math.abs(number) >= 2 ^ 31) then
          return nil, ("number %d of it is %s; wanted: %s"):format(i, shown(each), whole and "a whole number"
            or "a number")
        end
        array.data[at * array.width + i - 1] = number
      end
      return true
    end,
  },
}

-- A number that float32 has computed, with as many digits as tell it from others.
function fields.rounded(value) return tonumber(("%.9g"):format(value)) end

local function nested(list, shape, level, at)
  if level > #shape then return list[at[1]], at end
  local made = {}
  for i = 1, shape[level] do
    if level == #shape then
      made[i], at[1] = list[at[1]], at[1] + 1
    else
      made[i] = nested(list, shape, level + 1, at)
    end
  end
  return made, at
end

-- By kind: check(row, graph), and read(row, values, shape, arrays, at): of row `at` of the output (its numbers in a
-- list, its shape), whose inputs are in arrays, pairs { field, value } for JSON.
fields.answers = {
  label = {
    check = function(row, graph)
      if not is_texts(row.labels) then return "labels are texts in a list" end
      if type(row.probabilities) ~= "string" then return "a label has a field of probabilities" end
      local problem, info = expect(graph, row.output, "f32", { [2] = true })
      if not problem and info.shape[2] ~= #row.labels then
        problem = ("'%s' has %d columns for %d labels"):format(row.output, info.shape[2], #row.labels)
      end
      return problem
    end,
    read = function(row, values)
      local best, each = 1, {}
      for i, label in ipairs(row.labels) do
        if values[i] > values[best] then best = i end
        each[i] = { label, values[i] }
      end
      return { { row.field, row.labels[best] }, { row.probabilities, { object = each } } }
    end,
  },
  -- A word that made no token, or was cut off, has no tag.
  tags = {
    check = function(row, graph)
      if not is_texts(row.labels) then return "labels are texts in a list" end
      local problem, info = expect(graph, row.output, "f32", { [3] = true })
      local tokens
      if not problem then problem, tokens = expect(graph, row.tokens, "i32", { [2] = true }) end
      if not problem and (info.shape[3] ~= #row.labels or info.shape[2] ~= tokens.shape[2]) then
        problem = ("'%s' is [%s], for %d labels of %d tokens"):format(row.output, table.concat(info.shape, ", "),
          #row.labels, tokens.shape[2])
      end
      return problem
    end,
    read = function(row, values, _, arrays, at)
      local tags, places = {}, arrays[row.tokens].places[at]
      for i = 1, places.count do tags[i] = json.raw("null") end
      for place, word in pairs(places.of) do
        local best, from = 1, place * #row.labels
        for i = 2, #row.labels do
          if values[from + i] > values[from + best] then best = i end
        end
        tags[word] = row.labels[best]
      end
      return { { row.field, json.array(tags) } }
    end,
  },
  number = {
    check = function(row, graph)
      if not is_scale(row) then return "a number has a mean, and a deviation above 0" end
      local problem, info = expect(graph, row.output, "f32", { [1] = true, [2] = true })
      if not problem and info.shape[2] and info.shape[2] ~= 1 then
        problem = ("'%s' has %d columns; wanted: 1"):format(row.output, info.shape[2])
      end
      return problem
    end,
    read = function(row, values) return { { row.field, fields.rounded(values[1] * row.deviation + row.mean) } } end,
  },
  array = {
    check = function(row, graph) return (expect(graph, row.output)) end,
    read = function(row, values, shape) return { { row.field, (nested(values, shape, 1, { 1 })) } } end,
  },
}

-- Buffers for `rows` rows of the inputs of a graph, by name: {data, width (numbers of a row), shape (of a row), dtype}.
function fields.buffers(inputs)
  local arrays = {}
  for _, info in ipairs(inputs) do
    local shape = { unpack(info.shape, 2) }
    local width = numbers.count(shape)
    arrays[info.name] = { data = numbers.buffer(info.dtype, info.shape[1] * width), width = width, shape = shape,
                          dtype = info.dtype }
  end
  return arrays
end

return fields
