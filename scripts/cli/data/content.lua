-- What a file that is trained on holds: a digest that tells versions of it apart, and what it is, where it is no text.
local bit = require "bit"
local changed = require "cli.base.changed"
local ffi = require "ffi"
local fail = require "cli.base.fail"
local files = require "cli.base.files"
local posix = require "cli.base.posix"

local content = {}

local BLOCK = 2 ^ 20
local COLLECTED = 8 * BLOCK  -- bytes after which blocks that were read are collected, which come faster than it is done

-- Calls take(block) for each block of a file. Returns the file's bytes. what: the option that names the file.
local function blocks_of(path, what, take)
  local found = files.check(path, what)
  if found and found.size == 0 then fail.input(("%s: %s is empty"):format(what, path)) end
  local file, size = files.open(path, what), 0
  for block in function() return files.next(file, BLOCK, path, what) end do
    take(block)
    size = size + #block
    if size % COLLECTED < BLOCK then collectgarbage() end
  end
  file:close()
  if size == 0 then fail.input(("%s: %s is empty"):format(what, path)) end
  return size
end

-- Calls take(words, how many) for each block of a file, as 8-byte words, the last one filled up with zeros.
local function words_of(path, what, take)
  local buffer = ffi.new("uint64_t[?]", BLOCK / 8)
  return blocks_of(path, what, function(block)
    local words = math.floor((#block + 7) / 8)
    buffer[words - 1] = 0
    ffi.copy(buffer, block, #block)
    take(buffer, words)
  end)
end

-- 128 bits that tell contents apart, of words as words_of takes them: take(words, how many), and digits(). Products
-- carry differences upwards alone, so that the shifts must bring them down again: else those in the last byte of two
-- words cancel out.
local function mixer()
  local first, second = 0x9e3779b97f4a7c15ULL, 0xd1b54a32d192ed03ULL
  local function take(words, count)
    local a, b = first, second
    for i = 0, count - 1 do
      a = bit.bxor(a, words[i]) * 0xbf58476d1ce4e5b9ULL
      a = bit.bxor(a, bit.rshift(a, 32))
      b = (b + words[i]) * 0x94d049bb133111ebULL
      b = bit.bxor(b, bit.rshift(b, 29))
    end
    first, second = a, b
  end
  return take, function() return bit.tohex(first, 16) .. bit.tohex(second, 16) end
end

-- The content of a file: bits that tell versions of it apart, and its size.
function content.digest(path, what)
  local take, digits = mixer()
  local size = words_of(path, what, take)
  return digits() .. ("-%d"):format(size)
end

-- The same of a text.
function content.of_text(text)
  local take, digits = mixer()
  local count = math.floor((#text + 7) / 8)
  local words = ffi.new("uint64_t[?]", math.max(count, 1))
  ffi.copy(words, text, #text)
  take(words, count)
  return digits() .. ("-%d"):format(#text)
end

-- The same as checkpoints of before told it: 64 bits of FNV-1a over the words, which do not see every difference.
function content.former_digest(path, what)
  local hash = 0xcbf29ce484222325ULL
  local size = words_of(path, what, function(words, count)
    for i = 0, count - 1 do hash = bit.bxor(hash, words[i]) * 0x100000001b3ULL end
  end)
  return bit.tohex(hash, 16) .. ("-%d"):format(size)
end

-- A function that ends the command if the file was written to, or another took its place, since this call.
function content.watch(path, what)
  local before = files.check(path, what) or {}
  return function()
    local now = posix.look(path)
    if not now or now.state ~= before.state then
      fail.input(("%s: %s was changed while it was read; start again once nothing changes it"):format(what, path))
    end
  end
end

-- What is known of a run's file, {path, content}, before anything is made of it: a run that goes on refuses what is not
-- what it was, and what it takes is in its checkpoints.
function content.told(self, run, what)
  if run.check_content then run.check_content(what, self) end
  if what ~= "data" and run.files then run.files[posix.real_path(self.path) or self.path] = self.content end
  return self
end

-- A file that something is trained on, looked at before anything is made of it: {path, content, former_content,
-- unchanged}. run: what recipes are given (cli.train.run).
function content.open(run, path, what)
  local self = { path = path, unchanged = content.watch(path, what) }
  self.content = content.digest(path, what)
  function self.former_content() return content.former_digest(path, what) end
  return content.told(self, run, what)
end

-- The same of files that are one after the other what `name` names.
function content.open_all(run, name, paths, what)
  if #paths == 1 then return changed(content.open(run, paths[1], what), { path = name }) end
  local watches, digests, size = {}, {}, 0
  for i, path in ipairs(paths) do
    watches[i], digests[i] = content.watch(path, what), content.digest(path, what)
    size = size + tonumber(digests[i]:match("%d+$"))
  end
  local self = { path = name }
  self.content = content.of_text(table.concat(digests, " ")):match("^%x+") .. ("-%d"):format(size)
  function self.unchanged()
    for _, watch in ipairs(watches) do watch() end
  end
  return content.told(self, run, what)
end

-- Files that are no text, by how they begin: what they are, and what to do for their text.
local KINDS = {
  { "\31\139", "a gzip archive", "unpack it: gunzip" }, { "PK\3\4", "a zip archive", "unpack it: unzip" },
  { "\40\181\47\253", "a zstd archive", "unpack it: unzstd" }, { "\2537zXZ\0", "an xz archive", "unpack it: unxz" },
  { "BZh", "a bzip2 archive", "unpack it: bunzip2" }, { "%PDF-", "a PDF document", "take its text: pdftotext" },
  { "PAR1", "a Parquet file", "write its column of texts into a file" },
  { "GGUF", "a GGUF file", "it holds weights" }, { "CAIRNTOK", "a token file of cairn", "give the text itself" },
  { "SQLite format 3\0", "a database of SQLite", "write its texts into a file" },
  { "\255\254", "a text in UTF-16", "make it UTF-8: iconv -f UTF-16 -t UTF-8" },
  { "\254\255", "a text in UTF-16", "make it UTF-8: iconv -f UTF-16 -t UTF-8" },
}

-- Of the first bytes of a file: what it is if it is no plain text, and what to do; nil: nothing shows.
local function kind_of(head)
  for _, row in ipairs(KINDS) do
    if head:sub(1, #row[1]) == row[1] then return row[2], row[3] end
  end
  local _, zeros = head:gsub("%z", "")
  if zeros > 0 then
    -- Text in UTF-16 that says so by no mark: every second byte of Latin letters is 0.
    for first, name in ipairs { "UTF-16BE", "UTF-16LE" } do
      local there = 0
      for at = first, #head, 2 do there = there + (head:byte(at) == 0 and 1 or 0) end
      if there > #head / 4 and there == zeros then
        return "a text in UTF-16, by its zeros", ("make it UTF-8: iconv -f %s -t UTF-8"):format(name)
      end
    end
    return ("no text, by %s of its first %d bytes, which are 0"):format(zeros, #head), "take out what is none"
  end
  local first = head:match("^%s*([^\n]*)\n")
  if first and first:find('^{%s*"[^"]*"%s*:') and first:find("}%s*$") then
    return "JSON lines", "write the texts alone into a file, with empty lines between"
  end
end

-- Says what a file is that is taken as it is, byte for byte, but looks like something else than a text.
function content.tell(path, what, note)
  local kind, remedy = kind_of(files.read(path, what, 4096))
  if not kind then return end
  note(("note: %s: %s is %s; all of its bytes are taken for the text, as they are. For another text: %s"):format(what,
    path, kind, remedy))
end

return content
