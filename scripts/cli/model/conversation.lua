-- A conversation with a model: turns written by the model's template, answers that end where its turns end, and caches
-- that are kept as long as the text so far stays what it was.
local architecture = require "families.parts.architecture"
local fail = require "cli.base.fail"
local posix = require "cli.base.posix"
local texts = require "cli.model.texts"

local Conversation = {}
Conversation.__index = Conversation

local CONTEXT = 4096  -- tokens, where neither the user nor the model says less
local PREFILLS = { 64, 256, 1024 }  -- tokens that programs read at once; they cost what they may read
local INCOMPLETE = "\239\191\189"  -- U+FFFD, which stands for a character of which a token has a part
local MARK = "Qk7WzJ"  -- an answer that no template writes by itself

-- Tokens that a model's context holds by default.
local function context_of(source)
  local model = source.recipe and source.recipe.directory
  if not model then return source.o and source.o.seq or CONTEXT end
  return math.min(architecture.of(model.text, model.name).positions or CONTEXT, CONTEXT)
end

-- What ends a turn: a set of tokens, and a text where the template writes no token of its own behind an answer.
local function turn_ends(source, chat)
  local tokenizer, ends, stop = source.tokenizer, {}, nil
  for token in pairs(source.ends) do ends[token] = true end
  local last = chat.tokens and chat.tokens.eos_token
  local id = last and tokenizer:find(last)
  if id then ends[id] = true end
  local written = chat:render({ { role = "user", content = "a" }, { role = "assistant", content = MARK } }, nil, false)
  local behind = written and written:match(MARK .. "%s*(.*)$")
  if behind and behind ~= "" then
    local tokens = fail.check("template", tokenizer:encode_with(behind, {}))
    if fail.check("template", tokenizer:decode_with({ tokens[0] }, { skip_special = true })) == "" then
      ends[tokens[0]] = true
    else
      stop = behind:match("^%S+")
    end
  end
  return ends, stop
end

-- source: of cli.model.trained; chat: of cli.data.chat; options: of the command (context, length, system, ...); drawn:
-- how tokens are drawn, as the generator takes it.
local function open(source, chat, options, drawn)
  local self = setmetatable({ source = source, chat = chat, drawn = drawn, length = options.length,
                              context = options.context or context_of(source), system = options.system }, Conversation)
  local lengths = { 1 }
  for _, length in ipairs(PREFILLS) do
    if length >= self.context then break end
    lengths[#lengths + 1] = length
  end
  if #lengths <= #PREFILLS then lengths[#lengths + 1] = self.context end
  local programs = texts.programs(source.recipe, source.o, { samples = 1, lengths = lengths, rows = self.context,
    dtype = options.amp == "bf16" and "bf16" or nil }, source.mismatch)
  local sessions
  if programs then
    sessions = texts.open(programs, options, source)
  else
    sessions = { source.windowed(self.context).session }
  end
  self.writer = texts.writer(sessions, programs ~= nil, source.tokenizer)
  self.ends, self.stop = turn_ends(source, chat)
  self:reset()
  return self
end

-- Forgets all turns.
function Conversation:reset()
  self.messages = self.system and { { role = "system", content = self.system } } or {}
end

-- How much of a text that grows can be shown: whole characters, nothing that may be the beginning of `stop`.
local function settled(text, stop)
  local size = #text
  while text:sub(size - #INCOMPLETE + 1, size) == INCOMPLETE do size = size - #INCOMPLETE end
  for part = math.min(stop and #stop - 1 or 0, size), 1, -1 do
    if text:sub(size - part + 1, size) == stop:sub(1, part) then return size - part end
  end
  return size
end

-- Tokens of all turns, with what comes before an answer; nil, and why the template does not write them.
local function prompt_of(self)
  local text, err = self.chat:render(self.messages, nil, true)
  if not text then return nil, tostring(err) end
  local array, count = self.source.tokenizer:encode_with(text, {})
  fail.check("template", array, count)
  local tokens = {}
  for i = 1, count do tokens[i] = array[i - 1] end
  return tokens
end

-- The model's answer to a text; shown(part) is told of it as it is made. Returns {text, tokens, prompt_tokens,
-- read_tokens, why, seconds}; or nil, and what is wrong with the text, which is then no part of the conversation.
function Conversation:say(said, shown)
  local messages = self.messages
  messages[#messages + 1] = { role = "user", content = said }
  local tokens, problem = prompt_of(self)
  if tokens and #tokens == 0 then tokens, problem = nil, "the template writes nothing of the conversation" end
  if tokens and #tokens >= self.context then
    problem = ("the conversation has %d tokens, and the context holds %d; /reset begins again, --context N makes " ..
      "room"):format(#tokens, self.context)
    tokens = nil
  end
  if not tokens then
    messages[#messages] = nil
    return nil, problem
  end
  local began, before, tokenizer = posix.now(), self.writer:info(), self.source.tokenizer
  fail.check("chat", self.writer:extend(0, tokens, self.drawn))
  local answer = { tokens = {}, prompt_tokens = #tokens, text = "", why = "length" }
  local put = 0
  local most = math.min(self.length, self.context - #tokens)
  if most < self.length then answer.why = "context" end
  for _ = 1, most do
    local token = fail.check("chat", self.writer:next())[1]
    if #answer.tokens == 0 then
      local now = self.writer:info()
      answer.read_tokens = now.prefill_tokens - before.prefill_tokens
    end
    answer.tokens[#answer.tokens + 1] = token
    if self.ends[token] then
      answer.why = "end"
      break
    end
    answer.text = texts.decoded(tokenizer, answer.tokens)
    local at = self.stop and answer.text:find(self.stop, 1, true)
    if at then
      answer.text, answer.why = answer.text:sub(1, at - 1), "end"
      break
    end
    local size = settled(answer.text, self.stop)
    if size > put then
      shown(answer.text:sub(put + 1, size))
      put = size
    end
  end
  if #answer.text > put then shown(answer.text:sub(put + 1)) end
  fail.check("chat", self.writer:finish(0))
  answer.seconds = posix.now() - began
  messages[#messages + 1] = { role = "assistant", content = answer.text }
  return answer
end

return { open = open, CONTEXT = CONTEXT }
