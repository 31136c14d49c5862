-- Texts by a program of a whole window (inputs tokens[1, window] and position[1], output logits), which is read anew
-- for each token: of models that have no programs with caches. It is asked as cairn.generator is.
local cairn = require "cairn"
local posix = require "cli.base.posix"
local slice = require "cli.base.slice"

local Windows = {}
Windows.__index = Windows

-- vocabulary: tokens to draw from, where there are more logits.
local function open(session, vocabulary)
  local info = { cache_bytes = 0, prefill_tokens = 0, decode_tokens = 0, prefill_seconds = 0, decode_seconds = 0 }
  return setmetatable({ session = session, vocabulary = vocabulary, texts = {}, most = -1, work = info }, Windows)
end

-- source: tokens that the text answers, of a model with an encoder.
function Windows:begin(sample, prompt, sampling, source)
  self.texts[sample] = { tokens = slice(prompt, 1), sampling = sampling, source = source }
  self.most = math.max(self.most, sample)
  return true
end

-- A window is read anew for each token, so nothing is kept.
Windows.extend = Windows.begin

function Windows:finish(sample)
  self.texts[sample] = nil
  return true
end

-- Writes tokens, the last that a window takes, and 0 behind them. Returns how many are left out; nil, err.
local function write(session, name, tokens)
  local window, size = {}, session.graph:info(name).shape[2]
  local first = math.max(#tokens - size, 0)
  for i = 1, size do window[i] = tokens[first + i] or 0 end
  local ok, err = session:write(name, window)
  return ok and first, err
end

-- The next token of a text; nil, err.
function Windows:token(text)
  local tokens, session, began, work = text.tokens, self.session, posix.now(), self.work
  local first, ran, err = nil, true, nil
  if text.source then
    ran, err = write(session, "source", text.source)
    if ran then ran, err = session:write("source_lengths", { #text.source }) end
  end
  if ran then first, err = write(session, "tokens", tokens) end
  ran = first
  if ran then ran, err = session:write("position", { #tokens - first - 1 }) end
  if ran then ran, err = session:run() end
  local logits = ran
  if ran then logits, err = session:read("logits") end
  if not logits then return nil, err end
  for i = #logits, self.vocabulary + 1, -1 do logits[i] = nil end
  local kind = text.begun and "decode" or "prefill"
  work[kind .. "_tokens"] = work[kind .. "_tokens"] + (text.begun and 1 or #tokens)
  work[kind .. "_seconds"] = work[kind .. "_seconds"] + posix.now() - began
  text.begun = true
  return cairn.draw(logits, tokens, text.sampling)
end

function Windows:next()
  local made = {}
  for i = 0, self.most do
    local text, token, err = self.texts[i], -1, nil
    if text then token, err = self:token(text) end
    if not token then return nil, err end
    made[i + 1] = token
  end
  for i, text in pairs(self.texts) do text.tokens[#text.tokens + 1] = made[i + 1] end
  return made
end

function Windows:info() return self.work end
function Windows.free() end

return { open = open }
