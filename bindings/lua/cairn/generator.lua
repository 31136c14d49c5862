-- Text from a model, token by token: several samples at once, keys and values in caches of the store.
local ffi = require "ffi"
local core = require "cairn.core"
local session = require "cairn.session"
local C = core.C

local Generator = core.class "generator"

local SAMPLING = { repetition_penalty = "repetition_penalty", temperature = "temperature", top_p = "top_p",
                   min_p = "min_p", seed = "seed", top_k = "top_k" }
local DEFAULTS = { repetition_penalty = 1, temperature = 1, top_p = 1 }

local function sampling_of(sampling)
  local given = {}
  for key, value in pairs(DEFAULTS) do given[key] = value end
  for key, value in pairs(sampling or {}) do given[key] = value end
  return core.options("cairn_sampling_t", given, SAMPLING, 3)
end

local token = ffi.new("int32_t[1]")

-- A token from logits (an array from 1, or count of them as a float[]), as a generator draws it. seen: the text so far,
-- an array; sampling: as of begin. Returns the token, which counts from 0, or nil, err.
local function draw(logits, seen, sampling, count)
  local struct = sampling_of(sampling)
  local array = ffi.new("int32_t[?]", math.max(#seen, 1), seen)
  if type(logits) == "table" then logits, count = ffi.new("float[?]", math.max(#logits, 1), logits), #logits end
  local status = C.cairn_sampling_draw(struct, logits, count, array, #seen, token, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return token[0]
end

-- sessions: a list of sessions on one store: the program of one token, and those that read prompts. vocabulary: tokens
-- to draw from, where there are more logits. Returns the generator, or nil, err.
function Generator.new(sessions, vocabulary)
  core.expect_type(sessions, "table", "sessions")
  local raw = ffi.new("cairn_session_t*[?]", math.max(#sessions, 1))
  for i, each in ipairs(sessions) do raw[i - 1] = core.expect(session.Session, each, "session"):raw() end
  local out = ffi.new("cairn_generator_t*[1]")
  local status = C.cairn_generator_create(raw, #sessions, vocabulary or 0, out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  local made = Generator.wrap(out[0])
  local info = made:info()
  made.samples, made.tokens, made.columns = info.samples, ffi.new("int32_t[?]", info.samples), info.vocabulary
  return made
end

-- Sample number `sample`, from 0, begins with this array of tokens. sampling: {temperature, top_k, top_p, min_p,
-- repetition_penalty, seed}; nil: the numbers that change nothing. Returns true, or nil, err.
function Generator:begin(sample, prompt, sampling)
  local struct = sampling_of(sampling)
  local array = ffi.new("int32_t[?]", math.max(#prompt, 1), prompt)
  return core.done(C.cairn_generator_begin(self:raw(), sample, array, #prompt, struct, core.raw_error))
end

-- The same for a text that begins as what the sample has: what both begin with is not read again.
function Generator:extend(sample, text, sampling)
  local struct = sampling_of(sampling)
  local array = ffi.new("int32_t[?]", math.max(#text, 1), text)
  return core.done(C.cairn_generator_extend(self:raw(), sample, array, #text, struct, core.raw_error))
end

function Generator:finish(sample) return core.done(C.cairn_generator_end(self:raw(), sample, core.raw_error)) end

-- The next token of each sample, as an array from 1 (the sample's number + 1); -1: it did not begin. Or nil, err.
function Generator:next()
  local status = C.cairn_generator_next(self:raw(), self.tokens, self.samples, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  local list = {}
  for i = 1, self.samples do list[i] = self.tokens[i - 1] end
  return list
end

-- The logits that a sample's last token was drawn from, as an array from 1; or nil, err.
function Generator:logits(sample)
  local numbers = ffi.new("float[?]", self.columns)
  local status = C.cairn_generator_logits(self:raw(), sample, numbers, self.columns, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  local list = {}
  for i = 1, self.columns do list[i] = numbers[i - 1] end
  return list
end

-- {samples, vocabulary, capacity (nil: no end), cache_bytes, prefill_tokens, decode_tokens, prefill_seconds,
-- decode_seconds}.
function Generator:info()
  local info = ffi.new("cairn_generator_info_t", { ffi.sizeof("cairn_generator_info_t") })
  local status = C.cairn_generator_info(self:raw(), info, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  local capacity = tonumber(info.capacity)
  return { samples = tonumber(info.samples), vocabulary = tonumber(info.vocabulary),
           capacity = capacity > 0 and capacity or nil, cache_bytes = tonumber(info.cache_bytes),
           prefill_tokens = tonumber(info.prefill_tokens), decode_tokens = tonumber(info.decode_tokens),
           prefill_seconds = info.prefill_seconds, decode_seconds = info.decode_seconds }
end

return { Generator = Generator, draw = draw, sampling_of = sampling_of }
