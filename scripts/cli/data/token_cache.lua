-- Token files of texts, made once and kept in a cache by the content of the text.
local bit = require "bit"
local ffi = require "ffi"
local fail = require "cli.base.fail"
local files = require "cli.base.files"
local posix = require "cli.base.posix"

local cache = {}

-- Calls take(words, how many) for each block of a file, as 8-byte words, the last one filled up with zeros. Returns the
-- file's bytes. what: the option that names the file, for messages.
local function words_of(path, what, take)
  local kind = posix.no_file(path)
  if kind then fail.input(("%s: %s is %s; a file is needed, which is read more than once"):format(what, path, kind)) end
  local file, size = files.open(path, what), 0
  for block in function() return files.next(file, 2 ^ 20, path, what) end do
    local words = math.floor((#block + 7) / 8)
    local buffer = ffi.new("uint64_t[?]", words)
    ffi.copy(buffer, block, #block)
    take(buffer, words)
    size = size + #block
  end
  file:close()
  if size == 0 then fail.input(("%s: %s is empty"):format(what, path)) end
  return size
end

-- The content of a file: 128 bits that tell versions of it apart, and its size. Products carry differences upwards
-- alone, so that the shifts must bring them down again: else those in the last byte of two words cancel out.
function cache.fingerprint(path, what)
  local a, b = 0x9e3779b97f4a7c15ULL, 0xd1b54a32d192ed03ULL
  local size = words_of(path, what, function(words, count)
    for i = 0, count - 1 do
      a = bit.bxor(a, words[i]) * 0xbf58476d1ce4e5b9ULL
      a = bit.bxor(a, bit.rshift(a, 32))
      b = (b + words[i]) * 0x94d049bb133111ebULL
      b = bit.bxor(b, bit.rshift(b, 29))
    end
  end)
  return bit.tohex(a, 16) .. bit.tohex(b, 16) .. ("-%d"):format(size)
end

-- The same as checkpoints of before told it: 64 bits of FNV-1a over the words, which do not see every difference.
function cache.former_fingerprint(path, what)
  local hash = 0xcbf29ce484222325ULL
  local size = words_of(path, what, function(words, count)
    for i = 0, count - 1 do hash = bit.bxor(hash, words[i]) * 0x100000001b3ULL end
  end)
  return bit.tohex(hash, 16) .. ("-%d"):format(size)
end

function cache.directory()
  local own, home = os.getenv("XDG_CACHE_HOME") or "", os.getenv("HOME") or ""
  local candidates, problem = {}, nil
  if own:find("^/") then candidates[1] = own .. "/cairn" end
  -- A home or a TMPDIR that is missing is not ours to make.
  for _, root in ipairs { home:find("^/") and home or "", posix.temporary() } do
    local place = root == home and "/.cache/cairn" or ("/cairn-%d"):format(posix.uid())
    if root ~= "" and posix.list(root) then
      candidates[#candidates + 1] = root .. place
    elseif root ~= "" then
      problem = ("there is no directory '%s'"):format(root)
    end
  end
  for _, path in ipairs(candidates) do
    local ok
    ok, problem = posix.make_directory(path)
    if ok and posix.writable(path) then return path end
  end
  fail.with(5, "no place for token files: " .. tostring(problem))
end

-- Makes `path` by make(temporary path) unless usable(path) says it is there; a half-written file is never seen.
function cache.made(path, usable, make)
  local found = usable(path)
  if found then return found end
  local temporary = ("%s.%d.tmp"):format(path, posix.pid())
  local ok, err = make(temporary)
  if not ok then
    os.remove(temporary)
    fail.check("data", nil, err)
  end
  os.rename(temporary, path)
  return fail.check("data", usable(path))
end

local BLOCK = 2 ^ 20

-- Copies bytes [from, to) of a file. Returns true, or nil and why not.
local function copy(path, from, to, out)
  local source, problem = io.open(path, "rb")
  if not source then return nil, problem end
  local target
  target, problem = io.open(out, "wb")
  local ok = target ~= nil
  if ok then ok, problem = source:seek("set", from) end
  while ok and from < to do
    local block = source:read(math.min(BLOCK, to - from))
    if not block then break end
    from = from + #block
    ok, problem = target:write(block)
  end
  source:close()
  if target then
    local closed, reason = target:close()
    if not closed then ok, problem = nil, reason end
  end
  return ok and true, problem
end

-- Where a text of `size` bytes is cut so that the rest is about `share` of it: after a line, or, where lines are longer
-- than a block, between two characters of UTF-8.
local function cut(path, size, share)
  local from = math.floor(size * (1 - share))
  local file = io.open(path, "rb")
  file:seek("set", from)
  local text = file:read(BLOCK) or ""
  file:close()
  local line = text:find("\n", 1, true)
  if line and from + line < size then return from + line end
  return from + (text:find("[^\128-\191]") or 1) - 1
end

-- Writes the tokens of the training part of a text, or of the share at its end, to a token file.
function cache.write_part(tokenizer, path, share, held_out, token_path)
  local file = io.open(path, "rb")
  local size = file:seek("end")
  file:close()
  local at, part = cut(path, size, share), token_path .. ".txt"
  if at == 0 or at >= size then
    fail.input(("eval_fraction=%.15g: %s is too short to be parted so"):format(share, path))
  end
  local ok, problem = copy(path, held_out and at or 0, held_out and size or at, part)
  if not ok then
    os.remove(part)
    fail.with(5, tostring(problem))
  end
  local wrote, err = tokenizer:write(part, token_path)
  os.remove(part)
  return wrote, err
end

return cache
