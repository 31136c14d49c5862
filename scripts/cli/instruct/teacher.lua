-- What another model expects after each token of instruction data, on disk, to be learned by a smaller one: a
-- safetensors file with the likeliest tokens of each place, `choices` i32 [tokens, count], and their log-probabilities,
-- `log_probs` f32, the likeliest first. Rows follow one another as the data have them.
local bit = require "bit"
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local ffi = require "ffi"
local forward = require "cli.model.forward"
local json = require "cli.base.json"
local tokenizers = require "cli.data.tokenizers"
local tokens = require "cli.instruct.tokens"

local teacher = {}

local FORM = "cairn.teacher/1"
local MOST_HEADER = 2 ^ 16
local NAMES = { "choices", "log_probs" }  -- in the order of the file

local function header_of(total, count, data)
  local bytes = total * count * 4
  local function tensor(dtype, at)
    return json.object { { "dtype", dtype }, { "shape", json.array { total, count } },
                         { "data_offsets", json.array { at, at + bytes } } }
  end
  local text = json.encode(json.object {
    { "__metadata__", json.object { { "format", FORM }, { "data", data } } },
    { NAMES[1], tensor("I32", 0) }, { NAMES[2], tensor("F32", bytes) } })
  return text .. (" "):rep(-#text % 8)
end

local function put(file, path, bytes)
  local ok, problem = file:write(bytes)
  if not ok then fail.with(5, ("%s: %s"):format(path, problem)) end
end

-- Begins a file for `total` tokens of data with this identity, with `count` choices each. Returns add(place, choices,
-- log_probs, many): arrays of many * count numbers; and close().
function teacher.new(path, total, count, data)
  local file, problem = io.open(path, "wb")
  if not file then fail.with(5, problem) end
  local header = header_of(total, count, data)
  local size = ffi.new("uint64_t[1]", #header)
  put(file, path, ffi.string(size, 8) .. header)
  local begin, half = 8 + #header, total * count * 4
  return function(place, choices, log_probs, many)
    for i, array in ipairs { choices, log_probs } do
      file:seek("set", begin + (i - 1) * half + place * count * 4)
      put(file, path, ffi.string(array, many * count * 4))
    end
  end, function()
    local closed, late = file:close()
    if not closed then fail.with(5, ("%s: %s"):format(path, late)) end
  end
end

local function refuse(path, why) fail.input(("teacher: %s %s"):format(path, why)) end

-- {count, read(place, many) -> choices (int32_t*), log_probs (float*), which last until the next call} of a file that
-- must be of data with this identity and so many tokens.
function teacher.open(path, total, data)
  local file, problem = io.open(path, "rb")
  if not file then fail.input("teacher: " .. problem) end
  local head = file:read(8)
  local size = head and #head == 8 and tonumber(ffi.cast("const uint64_t*", head)[0]) or 0
  local text = size > 0 and size <= MOST_HEADER and file:read(size)
  local ok, about = pcall(decode, text or "")
  local metadata = ok and type(about) == "table" and about.__metadata__
  if type(metadata) ~= "table" or metadata.format ~= FORM then
    refuse(path, "is no file of a teacher; `cairn logits MODEL data=FILE --top 32 --out FILE` writes one")
  end
  local shape = type(about.choices) == "table" and about.choices.shape
  local count = type(shape) == "table" and tonumber(shape[2])
  if metadata.data ~= data or tonumber(shape and shape[1]) ~= total then
    refuse(path, "is of other data, or of another tokenizer or template")
  end
  local begin, half = 8 + size, total * count * 4
  if not count or count < 1 or text ~= header_of(total, count, data) or file:seek("end") ~= begin + 2 * half then
    refuse(path, "is damaged")
  end
  local self = { count = count }
  function self.read(place, many)
    for i, name in ipairs(NAMES) do
      file:seek("set", begin + (i - 1) * half + place * count * 4)
      self[name] = file:read(many * count * 4)  -- held, so that its bytes stay
      if not self[name] or #self[name] ~= many * count * 4 then fail.with(5, path .. " cannot be read") end
    end
    return ffi.cast("const int32_t*", self.choices), ffi.cast("const float*", self.log_probs)
  end
  return self
end

-- Writes what the model of a directory expects of data: recipe and o are its own, with o.data. run: what recipes are
-- told of a run. Returns the tokens.
function teacher.write(recipe, o, options, count, path, run)
  local rows = tokens.open(o, run, tokenizers.of(o, run), o.data, "data")
  for row = 0, rows.count - 1 do
    if rows.size[row] > o.seq then
      fail.input(("data: %s: it has %d tokens, more than seq=%d, which the model reads at a time"):format(rows:at(row),
        rows.size[row], o.seq))
    end
  end
  if rows.most >= o.vocab then
    fail.input(("data: the token %d is beyond the model's table, which has %d"):format(rows.most, o.vocab))
  end
  local model = forward.open(recipe, o, options, count, run.note, "likeliest")
  local add, close = teacher.new(path, rows.first[rows.count], count, rows.identity)
  local ids = ffi.new("int32_t[?]", o.batch * o.seq)
  local choices, log_probs = ffi.new("int32_t[?]", o.seq * count), ffi.new("float[?]", o.seq * count)
  for first = 0, rows.count - 1, o.batch do
    local last = math.min(first + o.batch, rows.count) - 1
    ffi.fill(ids, ffi.sizeof(ids))
    for row = first, last do
      local found = rows:read(row, 0, rows.size[row])
      for i = 0, rows.size[row] - 1 do
        ids[(row - first) * o.seq + i] = found[i] >= 0 and found[i] or bit.bnot(found[i])
      end
    end
    fail.check("data", model.session:write("tokens", ids))
    fail.check("logits", model.session:run())
    local shares = fail.check("logits", model.session:read("shares"))
    local chosen = fail.check("logits", model.session:read("choices"))
    for row = first, last do
      local from, size = (row - first) * o.seq * count, rows.size[row]
      for i = 0, size * count - 1 do
        choices[i], log_probs[i] = chosen[from + i + 1], math.log(shares[from + i + 1])
      end
      add(rows.first[row], choices, log_probs, size)
    end
  end
  close()
  return rows.first[rows.count]
end

return teacher
