-- Text data for recipes: windows of tokens to train with, and others to evaluate with.
local ffi = require "ffi"
local buckets = require "cli.data.buckets"
local cache = require "cli.data.token_cache"
local cairn = require "cairn"
local content = require "cli.data.content"
local fail = require "cli.base.fail"
local share = require "cli.data.share"
local tokenizers = require "cli.data.tokenizers"

local text = {}

local MOST_TOKENS = 2 ^ 28  -- of a micro-batch: what one array of the interpreter holds
local IGNORED = -100  -- a target that counts for nothing
local RANDOM_EVALUATIONS = 8  -- micro-batches to evaluate with where tokens are drawn from the seed
local WORTH_A_NOTE = 0.01  -- of a text's tokens

local function fraction_of(o) return o.eval_fraction or 0 end

-- The tokenizer of a text: a vocabulary is learned from what is trained on, and not from what is held out.
local function tokenizer_of(o, run, source)
  return tokenizers.of(o, run, function()
    local part = fraction_of(o)
    local name = ("%s-bpe%d"):format(source.content, o.vocab)
    return source.cache:made((part > 0 and "%s-but-%.15g.model" or "%s.model"):format(name, part),
      { source.content, "vocabulary", ("%d"):format(o.vocab), ("%.15g"):format(part) },
      function(path) return tokenizers.of_file(path, name .. ".model") end,
      function(path)
        run.note("training a vocabulary of " .. o.vocab .. " on " .. o.data)
        return share.with(o.data, part > 0 and share.range(o.data, part, false) or nil, path,
          function(text_path) return cairn.train_tokenizer(text_path, o.vocab, path) end)
      end, source.unchanged)
  end)
end

-- The windows of the tokens of a text, or of a range of it. about: {path, content (of the text), unchanged, range,
-- words (which part of it, for names of files), what (of which option, for messages)}.
local function windows(source, seq, about)
  local tokenizer, range = source.tokenizer, about.range
  local bytes = range and range.to - range.from or tonumber(about.content:match("%d+$"))
  return source.cache:made(("%s-%s%s.tokens"):format(about.content, tokenizer.id, about.words or ""),
    { about.content, tokenizer.id, range and ("%d to %d"):format(range.from, range.to) or "all" },
    function(path)
      local found, err = cairn.dataset(path, seq)
      -- Too short for one window: writing the file again would not help.
      if not found and err.status == "INVALID_ARGUMENT" then fail.check(about.what, nil, err) end
      if found and tokenizer.kind == "bytes" and fail.check(about.what, found:info()).tokens ~= bytes then
        return nil, { status = "CORRUPT_FILE", message = about.what .. ": was changed while it was read" }
      end
      return found, err
    end,
    function(path)
      return share.with(about.path, range, path, function(part) return tokenizer.opened:write(part, path) end)
    end, about.unchanged)
end

-- Says which tokens at the end of a text no window holds, where they are more than a little of it.
local function tell_rest(info, what, note)
  local rest = info.tokens - 1 - info.windows * info.length
  if rest <= info.tokens * WORTH_A_NOTE then return end
  note(("note: %s: the last %d of %d tokens fill no window of seq=%d and are left out; a smaller seq leaves fewer, " ..
    "lengths= none"):format(what, rest, info.tokens, info.length))
end

-- A text that an option names (see content.open); what it is besides a text is said once.
local function opened_text(run, path, what)
  local self = content.open(run, path, what)
  if not run.told[path] then content.tell(path, what, run.note) end
  run.told[path] = true
  return self
end

-- What the options say about data, opened once a run: {cache, content, former_content, tokenizer}; all nil for random
-- tokens. needs_tokenizer_alone: `data` is not read, for it says no more than the tokenizer.
local function source_of(o, run, needs_tokenizer_alone)
  if o.data == "" then fail.usage("data=FILE is needed (or data=random)") end
  local count = o.batch * o.seq
  if count > MOST_TOKENS then
    fail.usage(("batch=%.0f and seq=%.0f make %.0f tokens of a micro-batch; at most %.0f: take a smaller batch and " ..
      "--accumulate"):format(o.batch, o.seq, count, MOST_TOKENS))
  end
  if o.data == "random" then return {} end
  local key = ("%s %s %s %.15g"):format(o.data, tostring(o.tokens), tostring(o.vocab), fraction_of(o))
  run.text_sources = run.text_sources or {}
  if run.text_sources[key] then return run.text_sources[key] end
  run.told = run.told or {}
  local self = needs_tokenizer_alone and {} or opened_text(run, o.data, "data")
  self.cache = cache.open(run.note)
  self.tokenizer = tokenizer_of(o, run, self)
  run.text_sources[key] = self
  return self
end

local function has_lengths(o) return o.lengths ~= nil and o.lengths ~= "" end

-- Batches of text for a language model with inputs "tokens" and "targets", both [batch, seq].
-- o: data (file, or "random"), tokens ("bytes", "bpe"), vocab, seq, batch, lengths (texts by length: cli.data.buckets),
-- eval_fraction (share at the end that is left out), remainder ("pad", "own", "drop": the windows that fill no
-- micro-batch at the end of an epoch). run: seed, note(message).
function text.dataset(o, run)
  local source, part = source_of(o, run), fraction_of(o)
  if has_lengths(o) then
    local made = buckets.dataset(o, run, source.tokenizer, { path = o.data, to = 1 - part })
    made.tokenizer, made.content, made.former_content = source.tokenizer, source.content, source.former_content
    return made
  end
  local dataset
  if not source.tokenizer then
    dataset = fail.check("data", cairn.random_dataset(run.seed, o.vocab, o.seq))
  else
    local about = { path = o.data, content = source.content, unchanged = source.unchanged, what = "data: " .. o.data }
    if part > 0 then
      about.range, about.words = share.range(o.data, part, false), ("-but-%.15g"):format(part)
      about.what = ("data: %s, without eval_fraction=%.15g of it"):format(o.data, part)
    end
    dataset = windows(source, o.seq, about)
    tell_rest(fail.check("data", dataset:info()), about.what, run.note)
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
  local source, part = source_of(o, run, run.trained and (o.eval_data or "") ~= ""), fraction_of(o)
  local count = o.batch * o.seq
  local tokens, targets = ffi.new("int32_t[?]", count), ffi.new("int32_t[?]", count)
  local dataset, batches, own
  if not source.tokenizer then
    dataset, batches = fail.check("data", cairn.random_dataset(run.seed + 1, o.vocab, o.seq)), RANDOM_EVALUATIONS
  else
    own = o.eval_data ~= ""
    local about = own and opened_text(run, o.eval_data, "eval_data")
      or { path = o.data, content = source.content, unchanged = source.unchanged }
    if has_lengths(o) then
      local one = {}
      for key, value in pairs(o) do one[key] = value end
      one.lengths, one.remainder = ("%d"):format(o.seq), "pad"
      local made = buckets.dataset(one, run, source.tokenizer, own and { path = o.eval_data, what = "eval_data" }
        or { path = o.data, from = 1 - part, what = "eval_fraction" })
      if not own then made.content, made.former_content = source.content, source.former_content end
      return made
    end
    about.what = own and "eval_data: " .. o.eval_data or ("eval_fraction=%.15g of %s"):format(part, o.data)
    if not own then about.range, about.words = share.range(o.data, part, true), ("-held-%.15g"):format(part) end
    dataset = windows(source, o.seq, about)
    tell_rest(fail.check("eval_data", dataset:info()), about.what, run.note)
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
  local file, part = o.eval_data ~= "", fraction_of(o)
  if not file and part == 0 then return nil end
  if file and part > 0 then fail.usage("eval_data and eval_fraction exclude each other") end
  if file and o.data == "random" then fail.usage("eval_data=FILE goes with data=FILE, whose tokens it is cut into") end
  local own = {}
  for key, value in pairs(o) do own[key] = value end
  own.dropout, own.lengths = o.dropout and 0, ""
  return { o = own, data = function() return held_out(o, run) end }
end

return text
