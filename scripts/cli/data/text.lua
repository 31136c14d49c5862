-- Text data for recipes: windows of tokens to train with, and others to evaluate with.
local ffi = require "ffi"
local buckets = require "cli.data.buckets"
local cache = require "cli.data.token_cache"
local cairn = require "cairn"
local fail = require "cli.base.fail"

local text = {}

local MOST_TOKENS = 2 ^ 28  -- of a micro-batch: what one array of the interpreter holds
local IGNORED = -100  -- a target that counts for nothing
local RANDOM_EVALUATIONS = 8  -- micro-batches to evaluate with where tokens are drawn from the seed

-- The tokenizer of a file's content, and what names of cached files begin with.
local function tokenizer_of(o, run, base)
  if run.tokenizer then return run.tokenizer, ("%s-%s"):format(base, run.tokenizer.content) end
  if o.tokens ~= "bpe" then
    return { kind = "bytes", opened = fail.check("tokenizer", cairn.tokenizer("bytes")) }, base .. "-bytes"
  end
  local model = ("%s-bpe%d.model"):format(base, o.vocab)
  local opened = cache.made(model, function(path) return cairn.tokenizer("bpe", path) end, function(path)
    run.note("training a vocabulary of " .. o.vocab .. " on " .. o.data)
    return cairn.train_tokenizer(o.data, o.vocab, path)
  end)
  return { kind = "bpe", file = model, opened = opened }, ("%s-bpe%d"):format(base, o.vocab)
end

-- The windows of a token file; write(path) makes the file if it is not in the cache. what: of which option, and of
-- which file, for messages.
local function windows(path, seq, what, write)
  local last
  return cache.made(path, function(found_path)
    local found, err = cairn.dataset(found_path, seq)
    -- Too short for one window: writing the file again would not help.
    if not found and err.status == "INVALID_ARGUMENT" then fail.check(what, nil, err) end
    last = err
    return found, last
  end, write)
end

-- What the options say about data, opened: {content, former_content, tokenizer, base, encode}; all nil for random
-- tokens. needs_tokenizer_alone: `data` is not read, for it says no more than the tokenizer.
local function source_of(o, run, needs_tokenizer_alone)
  if o.data == "" then fail.usage("data=FILE is needed (or data=random)") end
  local count = o.batch * o.seq
  if count > MOST_TOKENS then
    fail.usage(("batch=%.0f and seq=%.0f make %.0f tokens of a micro-batch; at most %.0f: take a smaller batch and " ..
      "--accumulate"):format(o.batch, o.seq, count, MOST_TOKENS))
  end
  if o.data == "random" then return {} end
  local self = {}
  if needs_tokenizer_alone then
    self.content = "model"
  else
    self.content = cache.fingerprint(o.data, "data")
    function self.former_content() return cache.former_fingerprint(o.data, "data") end
  end
  self.tokenizer, self.base = tokenizer_of(o, run, cache.directory() .. "/" .. self.content)
  function self.encode(words) return fail.check("data", self.tokenizer.opened:encode(words)) end
  return self
end

local function has_lengths(o) return o.lengths ~= nil and o.lengths ~= "" end
local function fraction_of(o) return o.eval_fraction or 0 end

-- Batches of text for a language model with inputs "tokens" and "targets", both [batch, seq].
-- o: data (file, or "random"), tokens ("bytes", "bpe"), vocab, seq, batch, lengths (texts by length: cli.data.buckets),
-- eval_fraction (share at the end that is left out), remainder ("pad", "own", "drop": the windows that fill no
-- micro-batch at the end of an epoch). run: seed, note(message).
function text.dataset(o, run)
  local source, share = source_of(o, run), fraction_of(o)
  if has_lengths(o) then
    local made = buckets.dataset(o, run, source.encode, { path = o.data, to = 1 - share })
    made.tokenizer, made.content, made.former_content = source.tokenizer, source.content, source.former_content
    return made
  end
  local opened = source.tokenizer and source.tokenizer.opened
  local dataset
  if not source.tokenizer then
    dataset = fail.check("data", cairn.random_dataset(run.seed, o.vocab, o.seq))
  elseif share > 0 then
    dataset = windows(("%s-but-%.15g.tokens"):format(source.base, share), o.seq,
      ("data: %s, without eval_fraction=%.15g of it"):format(o.data, share),
      function(path) return cache.write_part(opened, o.data, share, false, path) end)
  else
    dataset = windows(source.base .. ".tokens", o.seq, "data: " .. o.data,
      function(path) return opened:write(o.data, path) end)
  end
  local info, count = fail.check("data", dataset:info()), o.batch * o.seq
  local tokens, targets = ffi.new("int32_t[?]", count), ffi.new("int32_t[?]", count)
  local made = { tokenizer = source.tokenizer, info = info, content = source.content,
                 former_content = source.former_content }
  local function fill(index)
    local rows = fail.check("data", dataset:batch(run.seed, index, o.batch, tokens, targets))
    return { tokens = tokens, targets = targets }, rows * o.seq, nil, rows
  end
  made.batch = fill
  if o.data == "random" then return made end
  made.batches = math.ceil(info.windows / o.batch)
  local rest = info.windows % o.batch
  if rest == 0 then return made end
  if o.remainder == "drop" then
    local of_epoch = made.batches
    made.batches = of_epoch - 1
    if made.batches == 0 then
      fail.input(("data: %s has %d windows of %d tokens, fewer than batch=%d, and remainder=drop leaves them out")
        :format(o.data, info.windows, o.seq, o.batch))
    end
    made.batch = function(index)
      return fill(math.floor(index / made.batches) * of_epoch + index % made.batches)
    end
  elseif o.remainder == "own" then
    made.remainders = { { name = "remainder", changes = { batch = rest } } }
    local own = { tokens = ffi.new("int32_t[?]", rest * o.seq), targets = ffi.new("int32_t[?]", rest * o.seq) }
    made.batch = function(index)
      local arrays, found, _, rows = fill(index)
      if index % made.batches < made.batches - 1 then return arrays, found, nil, rows end
      for name, array in pairs(own) do ffi.copy(array, arrays[name], 4 * found) end
      return own, found, "remainder", rows
    end
  end
  return made
end

-- Data to evaluate with, all windows once: of eval_data, or the share eval_fraction at the end of data.
local function held_out(o, run)
  local source = source_of(o, run, run.tokenizer and o.eval_data ~= "")
  local share, count = fraction_of(o), o.batch * o.seq
  local tokens, targets = ffi.new("int32_t[?]", count), ffi.new("int32_t[?]", count)
  local dataset, batches, own
  if not source.tokenizer then
    dataset, batches = fail.check("data", cairn.random_dataset(run.seed + 1, o.vocab, o.seq)), RANDOM_EVALUATIONS
  else
    own = o.eval_data ~= ""
    local content = own and cache.fingerprint(o.eval_data, "eval_data")
    if has_lengths(o) then
      local one = {}
      for key, value in pairs(o) do one[key] = value end
      one.lengths, one.remainder = ("%d"):format(o.seq), "pad"
      local made = buckets.dataset(one, run, source.encode, own and { path = o.eval_data, what = "eval_data" }
        or { path = o.data, from = 1 - share, what = "eval_fraction" })
      if not own then made.content, made.former_content = source.content, source.former_content end
      return made
    end
    local opened = source.tokenizer.opened
    if own then
      dataset = windows(("%s-for-%s.tokens"):format(source.base, content), o.seq, "eval_data: " .. o.eval_data,
        function(path) return opened:write(o.eval_data, path) end)
    else
      dataset = windows(("%s-held-%.15g.tokens"):format(source.base, share), o.seq,
        ("eval_fraction=%.15g of %s"):format(share, o.data),
        function(path) return cache.write_part(opened, o.data, share, true, path) end)
    end
    batches = math.ceil(fail.check("eval_data", dataset:info()).windows / o.batch)
  end
  return {
    batches = batches,
    batch = function(index)
      local rows = fail.check("eval_data", dataset:batch(0, index, o.batch, tokens, targets))
      for i = rows * o.seq, count - 1 do targets[i] = IGNORED end
      return { tokens = tokens, targets = targets }, rows * o.seq, nil, rows
    end,
    content = not own and source.content or nil, former_content = not own and source.former_content or nil,
  }
end

-- What a recipe of text evaluates with: nothing without eval_data and eval_fraction. Nothing is dropped out.
function text.evaluation(o, run)
  local file, share = o.eval_data ~= "", fraction_of(o)
  if not file and share == 0 then return nil end
  if file and share > 0 then fail.usage("eval_data and eval_fraction exclude each other") end
  if file and o.data == "random" then fail.usage("eval_data=FILE goes with data=FILE, whose tokens it is cut into") end
  local own = {}
  for key, value in pairs(o) do own[key] = value end
  own.dropout, own.lengths = o.dropout and 0, ""
  return { o = own, data = function() return held_out(o, run) end }
end

return text
