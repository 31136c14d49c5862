-- Text to tokens to batches.
local ffi = require "ffi"
local core = require "cairn.core"
local instance = require "cairn.instance"
local C = core.C

local Tokenizer = core.class "tokenizer"
local Dataset = core.class "dataset"

-- kind "bytes", "bpe" with the path of a sentencepiece model, or "pretrained" with a published model's directory or one
-- of its files. Returns the tokenizer, or nil, err.
function Tokenizer.open(kind, path)
  core.expect_type(kind, "string", "kind")
  local out = ffi.new("cairn_tokenizer_t*[1]")
  local status = C.cairn_tokenizer_open(instance.get(), kind, path, out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return Tokenizer.wrap(out[0], { kind = kind, path = path })
end

-- Trains a byte-pair vocabulary on a text file and writes the model.
function Tokenizer.train(text_path, vocabulary, model_path)
  return core.done(C.cairn_tokenizer_train(instance.get(), text_path, vocabulary, model_path, core.raw_error))
end

function Tokenizer:vocabulary() return tonumber(C.cairn_tokenizer_vocabulary(self:raw())) end

-- Token numbers as an FFI array int32_t[?], and how many they are; or nil, err.
function Tokenizer:encode_array(text)
  core.expect_type(text, "string", "text")
  local out = ffi.new("cairn_text_t*[1]")
  local status = C.cairn_tokenizer_encode(self:raw(), text, #text, out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  local bytes = tonumber(C.cairn_text_size(out[0]))
  local tokens = ffi.new("int32_t[?]", math.max(bytes / 4, 1))
  ffi.copy(tokens, C.cairn_text_data(out[0]), bytes)
  C.cairn_text_release(out[0])
  return tokens, bytes / 4
end

-- The same with options: { special = true } also gives the tokens that the tokenizer puts around a text;
-- { offsets = true } also returns an FFI array uint32_t[?] with two numbers a token, the bytes of the text it stands
-- for: begin and end.
function Tokenizer:encode_with(text, options)
  core.expect_type(text, "string", "text")
  local out, places = ffi.new("cairn_text_t*[1]"), options.offsets and ffi.new("cairn_text_t*[1]") or nil
  local status = C.cairn_tokenizer_encode_with(self:raw(), text, #text, options.special and C.CAIRN_ENCODE_SPECIAL or 0,
    out, places, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  local function numbers(made, kind)
    local bytes = tonumber(C.cairn_text_size(made[0]))
    local array = ffi.new(kind, math.max(bytes / 4, 1))
    ffi.copy(array, C.cairn_text_data(made[0]), bytes)
    C.cairn_text_release(made[0])
    return array, bytes / 4
  end
  local tokens, count = numbers(out, "int32_t[?]")
  return tokens, count, places and (numbers(places, "uint32_t[?]"))
end

-- An array of token numbers, or nil, err.
function Tokenizer:encode(text)
  local tokens, count = self:encode_array(text)
  if not tokens then return nil, count end
  local list = {}
  for i = 1, count do list[i] = tokens[i - 1] end
  return list
end

function Tokenizer:decode(tokens)
  local array = ffi.new("int32_t[?]", math.max(#tokens, 1), tokens)
  local out = ffi.new("cairn_text_t*[1]")
  local status = C.cairn_tokenizer_decode(self:raw(), array, #tokens, out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return core.take_text(out)
end

-- The text of tokens without special ones (options.skip_special); U+FFFD stands for what is no UTF-8, which decode()
-- leaves as it is.
function Tokenizer:decode_with(tokens, options)
  local array = ffi.new("int32_t[?]", math.max(#tokens, 1), tokens)
  local out = ffi.new("cairn_text_t*[1]")
  local flags = options.skip_special and C.CAIRN_DECODE_SKIP_SPECIAL or 0
  local status = C.cairn_tokenizer_decode_with(self:raw(), array, #tokens, flags, out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return core.take_text(out)
end

-- A token as the vocabulary spells it; and the number of one that is spelled so. Or nil, err.
function Tokenizer:token(id)
  local out = ffi.new("cairn_text_t*[1]")
  local status = C.cairn_tokenizer_token(self:raw(), id, out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return core.take_text(out)
end

function Tokenizer:find(token)
  core.expect_type(token, "string", "token")
  local out = ffi.new("int32_t[1]")
  local status = C.cairn_tokenizer_find(self:raw(), token, #token, out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return out[0]
end

-- Writes the file that opens the tokenizer again; of a GGUF file the tokenizer.json that says the same.
function Tokenizer:save(path) return core.done(C.cairn_tokenizer_save(self:raw(), path, core.raw_error)) end

-- Writes the token file of a text file.
function Tokenizer:write(text_path, token_path)
  return core.done(C.cairn_tokenizer_write(self:raw(), text_path, token_path, core.raw_error))
end

-- Windows of length + 1 tokens from a token file. Returns the dataset, or nil, err.
function Dataset.open(token_path, length)
  local out = ffi.new("cairn_dataset_t*[1]")
  local status = C.cairn_dataset_open(instance.get(), token_path, length, out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return Dataset.wrap(out[0])
end

-- Tokens drawn from the seed, for benchmarks.
function Dataset.random(seed, vocabulary, length)
  local out = ffi.new("cairn_dataset_t*[1]")
  local status = C.cairn_dataset_random(instance.get(), seed, vocabulary, length, out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return Dataset.wrap(out[0])
end

-- {tokens, windows, vocabulary, length}.
function Dataset:info()
  local info = ffi.new("cairn_dataset_info_t", { ffi.sizeof("cairn_dataset_info_t") })
  local status = C.cairn_dataset_info(self:raw(), info, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return { tokens = tonumber(info.tokens), windows = tonumber(info.windows), vocabulary = info.vocabulary,
           length = info.length }
end

-- Ends the call if an FFI array has no room for as many bytes. Of a pointer nothing is known.
local function check_room(buffer, bytes, what)
  if type(buffer) == "cdata" and tostring(ffi.typeof(buffer)):find("[", 1, true) and ffi.sizeof(buffer) < bytes then
    error(("%s: an array of %d bytes given, %.0f needed"):format(what, ffi.sizeof(buffer), bytes), 3)
  end
end

-- Micro-batch number `index` (from 0) into two int32 buffers of batch * length. Returns the rows filled, or nil, err.
function Dataset:batch(seed, index, batch, inputs, targets)
  local handle = self:raw()
  self.row_bytes = self.row_bytes or 4 * self:info().length
  check_room(inputs, batch * self.row_bytes, "inputs")
  check_room(targets, batch * self.row_bytes, "targets")
  local rows = ffi.new("uint32_t[1]")
  local status = C.cairn_dataset_batch(handle, seed, index, batch, inputs, targets, rows, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return tonumber(rows[0])
end

return { Tokenizer = Tokenizer, Dataset = Dataset }
