-- Rows of instruction data as tokens, made once and kept in the cache of tokens. Of a token that is learned the file
-- has the number, of another one the number's complement, as int32; then sizes, learned tokens, lines and files of all
-- rows. In memory are these numbers of each row, and the tokens of one.
local ffi = require "ffi"
local bit = require "bit"
local cache = require "cli.data.token_cache"
local chat = require "cli.data.chat"
local content = require "cli.data.content"
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local flat = require "cli.data.flat"
local forms = require "cli.instruct.forms"
local json = require "cli.base.json"
local shards = require "cli.instruct.shards"

local tokens = {}
local Rows = {}
Rows.__index = Rows

local FORM = "cairn.rows/1"
local TRAILER = 64  -- bytes at the end of the file that say how long its parts are
local MOST = 2 ^ 31 - 1  -- tokens of a row, lines of a file
local COLLECTED = 2 ^ 18  -- tokens after which what rows left in the interpreter is collected
local COLUMNS = { "size", "learned", "line", "place" }  -- of a row; place: twice the file's number, and 1 of a text

local int32 = ffi.typeof("int32_t[?]")

-- A row as tokens, their mask and its text; or nil, err. opened: as cli.data.chat.
function tokens.of_row(opened, sample, o)
  local all = o.train_on == "all"
  if sample.text then return opened:plain("", sample.text, true) end
  if sample.messages then return opened:ids(sample.messages, sample.tools, all and "all" or sample.trained) end
  if not opened.has_template then
    local system = sample.system and sample.system .. "\n" or ""
    return opened:plain(system .. sample.prompt, sample.answer, all)
  end
  local messages = { json.encode { role = "user", content = sample.prompt },
                     json.encode { role = "assistant", content = sample.answer } }
  if sample.system then table.insert(messages, 1, json.encode { role = "system", content = sample.system }) end
  local trained = {}
  for i = 1, #messages do trained[i] = i == #messages end
  return opened:ids(messages, nil, all and "all" or trained)
end

-- Calls take({ids, mask, learned (how many), text, line, file (its number), form, is_text}) for each row of files;
-- refuses rows with their line. The first token of a row is never predicted, and so not learned.
function tokens.each(opened, list, what, o, take)
  shards.each(list, what, function(row, line, reader, file)
    local function refuse(message) reader:refuse(line, message) end
    local sample = forms.of(row, reader.text, o, refuse)
    local ids, mask, text = tokens.of_row(opened, sample, o)
    if not ids then refuse(tostring(mask)) end
    local learned = 0
    for i = 2, #ids do learned = learned + mask[i] end
    if learned == 0 then refuse("it has no token that is learned") end
    take { ids = ids, mask = mask, learned = learned, text = text, line = line, file = file, form = sample.form,
           is_text = sample.text ~= nil }
  end)
end

local function write(opened, list, what, o, path)
  local file, problem = io.open(path, "wb")
  local columns, counts, most, room = {}, {}, 0, int32(1024)
  for i = 1, #COLUMNS do columns[i] = flat.new(MOST - 1) end
  local total = 0
  local function put(data, bytes)
    local ok, reason = file:write(ffi.string(data, bytes))
    if not ok then error(setmetatable({ problem = reason }, tokens), 0) end
  end
  local function body()
    tokens.each(opened, list, what, o, function(row)
      local ids, mask, size = row.ids, row.mask, #row.ids
      if size * 4 > ffi.sizeof(room) then room = int32(2 * size) end
      for i = 1, size do
        room[i - 1] = mask[i] == 1 and ids[i] or bit.bnot(ids[i])
        most = math.max(most, ids[i])
      end
      put(room, 4 * size)
      if math.floor(total / COLLECTED) ~= math.floor((total + size) / COLLECTED) then collectgarbage() end
      total = total + size
      local values = { size, row.learned, row.line, 2 * row.file + (row.is_text and 1 or 0) }
      for i, column in ipairs(columns) do column:add(values[i]) end
      counts[row.form] = (counts[row.form] or 0) + 1
    end)
    for _, column in ipairs(columns) do put(column.data, 4 * column.count) end
    local about = json.encode { forms = counts, most = most }
    put(about, #about)
    local lengths = ("%-" .. TRAILER .. "s"):format(("%d %d %d"):format(total, columns[1].count, #about))
    put(lengths, TRAILER)
  end
  if file then
    local called, reason = pcall(body)
    local closed, late = file:close()
    if not called and getmetatable(reason) ~= tokens then error(reason, 0) end
    problem = not called and reason.problem or not closed and late or nil
  end
  if not problem then return true end
  return nil, setmetatable({ status = "IO", message = tostring(problem) },
    { __tostring = function(self) return self.message end })
end

local function corrupt() return nil, { status = "CORRUPT_FILE", message = "a file of rows in the cache is damaged" } end

-- Opens a file that `write` made.
local function open(path)
  local file = io.open(path, "rb")
  local size = file and file:seek("end") or 0
  if size < TRAILER then return corrupt() end
  local function read(at, bytes)
    file:seek("set", at)
    local text = bytes > 0 and file:read(bytes) or ""
    return text and #text == bytes and text or nil
  end
  local total, count, about = (read(size - TRAILER, TRAILER) or ""):match("^(%d+) (%d+) (%d+) *$")
  total, count, about = tonumber(total), tonumber(count), tonumber(about)
  if not about or size ~= 4 * total + 4 * #COLUMNS * count + about + TRAILER then return corrupt() end
  local self = setmetatable({ file = file, count = count, first = ffi.new("double[?]", count + 1) }, Rows)
  for i, name in ipairs(COLUMNS) do
    self[name] = int32(count)
    ffi.copy(self[name], read(4 * total + 4 * count * (i - 1), 4 * count), 4 * count)
  end
  local ok, found = pcall(decode, read(size - TRAILER - about, about))
  if not ok then return corrupt() end
  self.forms, self.most = found.forms, found.most
  for i = 0, count - 1 do self.first[i + 1] = self.first[i] + self.size[i] end
  return self
end

-- `count` tokens of row `row` (from 0), from the one at `from` on: what the file has of them, an array that lasts until
-- the next call.
function Rows:read(row, from, count)
  self.file:seek("set", 4 * (self.first[row] + from))
  self.text = self.file:read(4 * count)
  if not self.text or #self.text ~= 4 * count then fail.with(5, "a file of rows in the cache cannot be read") end
  return ffi.cast("const int32_t*", self.text)
end

-- Where a row is, in words: its file and line.
function Rows:at(row)
  return ("%s: line %d"):format(self.list[math.floor(self.place[row] / 2)], self.line[row])
end
function Rows:is_text(row) return self.place[row] % 2 == 1 end

-- The rows that an option names as tokens. run, tokenizer: as recipes and datasets have them.
-- Returns {count, size, learned, line, place, first (arrays), forms (how many rows have which), most (the largest
-- token)} and what content.open_all says of the files.
function tokens.open(o, run, tokenizer, name, what)
  local list = shards.list(name, what)
  local source = content.open_all(run, name, list, what == "eval_fraction" and "data" or what)
  local opened = chat.open(o, run, tokenizer)
  local of = content.of_text(table.concat({ chat.settle(o.template, run.directory), o.prompt, o.answer, o.train_on },
    "\0"))
  local kept = run.keeps_nothing and cache.aside() or cache.open(run.note)
  local made = kept:made(("%s-%s-%s.rows"):format(source.content, tokenizer.id, of:sub(1, 16)),
    { FORM, source.content, tokenizer.id, of }, open,
    function(path) return write(opened, list, what, o, path) end, source.unchanged)
  made.identity = table.concat({ source.content, tokenizer.id, content.of_text(table.concat({
    chat.settle(o.template, run.directory), o.prompt, o.answer }, "\0")) }, " ")  -- of its tokens
  made.list, made.template = list, opened.has_template and opened.name or nil
  made.last = opened:last_token()
  made.dated = made.template and opened.sources.default:find("strftime_now", 1, true) ~= nil
  return made, source
end

return tokens
