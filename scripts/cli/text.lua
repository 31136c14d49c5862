-- Text data for recipes: a file is turned into tokens once and kept in a cache, by the content of the file.
local bit = require "bit"
local ffi = require "ffi"
local buckets = require "cli.buckets"
local cairn = require "cairn"
local fail = require "cli.fail"
local posix = require "cli.posix"

local text = {}

-- 64 bits of FNV-1a over 8-byte words; tells versions of a file apart.
local function fingerprint(path)
  local file, problem = io.open(path, "rb")
  if not file then
    if not posix.real_path(path) then fail.input("data: " .. problem) end
    fail.with(5, "data: " .. problem)
  end
  local hash, size = 0xcbf29ce484222325ULL, 0
  while true do
    local block, reason = file:read(2 ^ 20)
    if not block then
      if reason then fail.with(5, ("data: %s: %s"):format(path, reason)) end
      break
    end
    local words = math.floor((#block + 7) / 8)
    local buffer = ffi.new("uint64_t[?]", words)
    ffi.copy(buffer, block, #block)
    for i = 0, words - 1 do hash = bit.bxor(hash, buffer[i]) * 0x100000001b3ULL end
    size = size + #block
  end
  file:close()
  if size == 0 then fail.input(("data: %s is empty"):format(path)) end
  return bit.tohex(hash, 16) .. ("-%d"):format(size)
end

local function cache_directory()
  local cache, home = os.getenv("XDG_CACHE_HOME"), os.getenv("HOME")
  local candidates = {}
  if cache and cache ~= "" then candidates[#candidates + 1] = cache .. "/cairn" end
  if home and home ~= "" then candidates[#candidates + 1] = home .. "/.cache/cairn" end
  candidates[#candidates + 1] = ("%s/cairn-%d"):format(os.getenv("TMPDIR") or "/tmp", posix.uid())
  local problem
  for _, path in ipairs(candidates) do
    local ok
    ok, problem = posix.make_directory(path)
    if ok and posix.writable(path) then return path end
  end
  fail.with(5, "no place for token files: " .. tostring(problem))
end

-- Makes `path` by make(temporary path) unless usable(path) says it is there; a half-written file is never seen.
local function cached(path, usable, make)
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

local MOST_TOKENS = 2 ^ 28  -- of a micro-batch: what one array of the interpreter holds

-- The tokenizer of a file's content, and what names of cached files begin with.
local function tokenizer_of(o, run, base)
  if o.tokens ~= "bpe" then
    return { kind = "bytes", opened = fail.check("tokenizer", cairn.tokenizer("bytes")) }, base .. "-bytes"
  end
  local model = ("%s-bpe%d.model"):format(base, o.vocab)
  local opened = cached(model, function(path) return cairn.tokenizer("bpe", path) end, function(path)
    run.note("training a vocabulary of " .. o.vocab .. " on " .. o.data)
    return cairn.train_tokenizer(o.data, o.vocab, path)
  end)
  return { kind = "bpe", file = model, opened = opened }, ("%s-bpe%d"):format(base, o.vocab)
end

-- Batches of text for a language model with inputs "tokens" and "targets", both [batch, seq].
-- o: data (file, or "random"), tokens ("bytes", "bpe"), vocab, seq, batch, lengths (texts by length: cli.buckets).
-- run: seed, note(message).
function text.dataset(o, run)
  if o.data == "" then fail.usage("data=FILE is needed (or data=random)") end
  local count = o.batch * o.seq
  if count > MOST_TOKENS then
    fail.usage(("batch=%.0f and seq=%.0f make %.0f tokens of a micro-batch; at most %.0f: take a smaller batch and " ..
      "--accumulate"):format(o.batch, o.seq, count, MOST_TOKENS))
  end
  local content, tokenizer, base
  if o.data ~= "random" then
    content = fingerprint(o.data)
    tokenizer, base = tokenizer_of(o, run, cache_directory() .. "/" .. content)
  end
  if o.lengths and o.lengths ~= "" then
    local made = buckets.dataset(o, run, tokenizer and function(words)
      return fail.check("data", tokenizer.opened:encode(words))
    end)
    made.tokenizer, made.content = tokenizer, content
    return made
  end
  local dataset
  if not tokenizer then
    dataset = fail.check("data", cairn.random_dataset(run.seed, o.vocab, o.seq))
  else
    local last
    dataset = cached(base .. ".tokens", function(path)
      local found, err = cairn.dataset(path, o.seq)
      -- Too short for one window: writing the file again would not help.
      if not found and err.status == "INVALID_ARGUMENT" then fail.check("data: " .. o.data, nil, err) end
      last = err
      return found, last
    end, function(path) return tokenizer.opened:write(o.data, path) end)
  end
  local info = fail.check("data", dataset:info())
  local tokens, targets = ffi.new("int32_t[?]", count), ffi.new("int32_t[?]", count)
  return {
    tokenizer = tokenizer, info = info, content = content,
    batches = o.data ~= "random" and math.ceil(info.windows / o.batch) or nil,
    batch = function(index)
      local rows = fail.check("data", dataset:batch(run.seed, index, o.batch, tokens, targets))
      return { tokens = tokens, targets = targets }, rows * o.seq
    end,
  }
end

return text
