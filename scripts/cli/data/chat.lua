-- Conversations as texts, by the template of the model, and as tokens with a mask of what is learned: an answer is what
-- the template writes of a message of the assistant after the prompt for one, with what ends the turn.
local cairn = require "cairn"
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local files = require "cli.base.files"
local json = require "cli.base.json"
local posix = require "cli.base.posix"
local tokenizers = require "cli.data.tokenizers"

local chat = {}
local Chat = {}
Chat.__index = Chat

local MOST_BYTES = 2 ^ 25  -- of a tokenizer's file
local TOKENS = { "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token" }
local NONE = "none"  -- of the option: no template, even if the model has one

-- A file of a directory as JSON; an empty table where there is none.
local function read_json(path)
  if not posix.is_there(path) then return {} end
  local ok, found = pcall(decode, files.read(path, "template", MOST_BYTES))
  if not ok or type(found) ~= "table" then fail.input(("template: %s is no JSON object"):format(path)) end
  return found
end

-- Templates of a directory by their names, and the file they are from; "default" is what most have alone.
local function templates_in(directory, config)
  local plain = directory .. "/chat_template.jinja"
  if posix.is_there(plain) then
    local with_tools = directory .. "/additional_chat_templates/tool_use.jinja"
    return { default = files.read(plain, "template"),
             tool_use = posix.is_there(with_tools) and files.read(with_tools, "template") or nil }, plain
  end
  local place, given = directory .. "/tokenizer_config.json", config.chat_template
  if given == nil then
    place = directory .. "/chat_template.json"
    given = read_json(place).chat_template
  end
  if type(given) == "string" then return { default = given }, place end
  local list = {}
  for _, row in ipairs(type(given) == "table" and given or {}) do
    if type(row) == "table" and row.name then list[row.name] = row.template end
  end
  return list, place
end

-- The special tokens of a directory as they are spelled, by the names that templates have for them.
local function tokens_in(directory, config)
  local found, map = {}, read_json(directory .. "/special_tokens_map.json")
  for _, name in ipairs(TOKENS) do
    local token = config[name] or map[name]
    if type(token) == "table" then token = token.content end
    found[name] = type(token) == "string" and token or nil
  end
  return found
end

local function is_gguf(path)
  return posix.look(path) ~= nil and not posix.no_file(path) and files.read(path, "template", 4) == "GGUF"
end

-- Tokens whose names in GGUF are others.
local OF_GGUF = { unk_token = "unknown_token", sep_token = "seperator_token", pad_token = "padding_token" }

-- The same two of a GGUF file, from its metadata.
local function of_gguf(path)
  local metadata, tokens = decode(fail.check(path, cairn.inspect(path))).metadata or {}, {}
  local spelled = metadata["tokenizer.ggml.tokens"] or {}
  for _, name in ipairs(TOKENS) do
    local id = tonumber(metadata[("tokenizer.ggml.%s_id"):format(OF_GGUF[name] or name)])
    tokens[name] = id and spelled[id + 1]
  end
  local key = "tokenizer.chat_template"
  return { default = metadata[key], tool_use = metadata[key .. ".tool_use"] }, path, tokens
end

-- What the option `template` is for a model: the templates, their names and the special tokens, as the text of a JSON
-- object, which checkpoints keep. template: the option, a file or that text; directory: of the model, or a GGUF file.
function chat.settle(template, directory)
  if template:find("^{") then return template end
  local list, place, tokens = {}, "", {}
  if directory and is_gguf(directory) then
    list, place, tokens = of_gguf(directory)
  elseif directory then
    local config = read_json(directory .. "/tokenizer_config.json")
    tokens = tokens_in(directory, config)
    if template == "" then list, place = templates_in(directory, config) end
  end
  if template == NONE then
    list = {}
  elseif template ~= "" then
    list, place = { default = files.read(template, "template") }, template
  end
  return json.encode { templates = list, place = place:match("[^/]*$"), tokens = tokens }
end

-- The kinds of text that a row of instruction data becomes, opened for a model. o: template, tokens; run: directory,
-- tokenizer (as recipes are given them); tokenizer: as datasets have them, if it is open.
function chat.open(o, run, tokenizer)
  local about = decode(chat.settle(o.template or "", run.directory))
  local self = setmetatable({ tokens = about.tokens, name = about.place, sources = about.templates, made = {} }, Chat)
  self.tokenizer = tokenizer or tokenizers.of(o, run)
  self.has_template = self.sources.default ~= nil
  if next(self.sources) and not self.has_template then
    fail.input(("template: %s has templates by name, and none is 'default'; template=FILE names one"):format(self.name))
  end
  return self
end

-- The engine for conversations with tools, or without; or nil, err.
function Chat:template(tools)
  local name = tools and self.sources.tool_use and "tool_use" or "default"
  if not self.made[name] then
    if not self.has_template then
      return nil, "the model has no template to write conversations with; template=FILE names one"
    end
    local made, err = cairn.template(self.sources[name], self.name)
    if not made then fail.input("template: " .. tostring(err)) end
    self.made[name] = made
  end
  return self.made[name]
end

local function message_text(message) return type(message) == "string" and message or json.encode(message) end

-- The text of the first `count` messages (all of them by default). messages: JSON texts, or tables with role and
-- content; tools: a JSON text, or nil. generate: with what comes before an answer. Or nil, err.
function Chat:render(messages, tools, generate, count)
  local list = {}
  for i = 1, count or #messages do list[i] = message_text(messages[i]) end
  local parts = { ('{"messages":[%s],"tools":%s,"documents":null,"add_generation_prompt":%s'):format(
    table.concat(list, ","), tools or "null", generate and "true" or "false") }
  for _, name in ipairs(TOKENS) do
    if self.tokens[name] then parts[#parts + 1] = (',"%s":%s'):format(name, json.encode(self.tokens[name])) end
  end
  parts[#parts + 1] = "}"
  local template, err = self:template(tools)
  if not template then return nil, err end
  return template:render(table.concat(parts))
end

local function begins(text, with) return text:sub(1, #with) == with end

-- How many bytes two texts have in common at their beginnings; at their ends.
local function common_start(a, b)
  local low, high = 0, math.min(#a, #b)
  while low < high do
    local middle = math.ceil((low + high) / 2)
    if a:sub(low + 1, middle) == b:sub(low + 1, middle) then low = middle else high = middle - 1 end
  end
  return low
end
local function common_end(a, b) return common_start(a:reverse(), b:reverse()) end

-- Answers that no other has, of different first and last letters: what they leave of a text is around every answer.
local OTHERS = { "Qk7WzJ", "Xv9YpH" }

local function table_of(message) return type(message) == "string" and decode(message) or message end

-- A list of messages with another one at `at`.
local function with_other(messages, at, content)
  local changed = {}
  for i, message in ipairs(messages) do changed[i] = message end
  changed[at] = ('{"role":"assistant","content":"%s"}'):format(content)
  return changed
end

-- Whether the text of all messages is the same without an answer: templates that expect pictures know no plain texts,
-- others no calls of tools.
local function is_left_out(self, messages, tools, at, text)
  local content = table_of(messages[at]).content
  local says = type(content) == "string" and content:match("^%s*(.-)%s*$") or content
  if says == "" or says == nil then
    return self:render(with_other(messages, at, ""), tools, false) == text
  end
  if type(says) == "string" and text:find(says, 1, true) then return false end
  return self:render(with_other(messages, at, OTHERS[1]), tools, false) == text
end

-- How many bytes the special token takes that stands at a byte of a text; nil: none does. It ends a turn in templates
-- that write another one at the end of the last.
local function special_token_at(self, text, place)
  local array, count, offsets = self.tokenizer.opened:encode_with(text, { offsets = true })
  for i = 0, array and count - 1 or -1 do
    if offsets[2 * i] == place and offsets[2 * i + 1] > place then
      local plain = self.tokenizer.opened:decode_with({ array[i] }, { skip_special = true })
      return plain == "" and offsets[2 * i + 1] - place or nil
    end
  end
end

-- What of `text`, all messages, the template writes of an answer in another way than the message has alone: around it,
-- other answers change nothing. Returns the bytes from and to, or nil and why there are none.
local function answer_around(self, messages, tools, at, text)
  local from, behind = math.huge, math.huge
  local alone, same_end = self:render(messages, tools, false, at), math.huge
  if not alone then return nil, "the template writes no conversation that ends with this answer" end
  for _, other in ipairs(OTHERS) do
    local changed = with_other(messages, at, other)
    local whole, err = self:render(changed, tools, false)
    local short = whole and self:render(changed, tools, false, at)
    if not short then return nil, tostring(err or "the template writes no conversation that ends with this answer") end
    from, behind = math.min(from, common_start(text, whole)), math.min(behind, common_end(text, whole))
    same_end = math.min(same_end, common_end(alone, short))
  end
  local stop, turn_end = #text - behind, alone:sub(#alone - same_end + 1)
  if from >= stop then return nil, "the template leaves it out" end
  local ends = common_start(text:sub(stop + 1), turn_end)
  -- What ends a conversation may be more, as </s> after <|end|>; the next turn may begin with some of its letters.
  if ends < #turn_end then ends = #(turn_end:sub(1, ends):match("^.*[%s>%]]") or "") end
  if turn_end:find("%S") and not turn_end:sub(1, ends):find("%S") then
    ends = #text:match("^%s*", stop + 1)
    local size = special_token_at(self, text, stop + ends)
    if not size then return nil, "what ends its turn is nowhere after it" end
    ends = ends + size
  end
  local before = self:render(messages, tools, false, at - 1)
  local prompt = self:render(messages, tools, true, at - 1)
  if before and prompt and begins(text, before) then
    -- The prompt may go on to what this answer does not have, as the beginning of a thought.
    local place = common_start(text, prompt)
    if place > #before then from = math.min(from, place) end
  end
  return from, stop + ends
end

-- The bytes {from, to} of the answers in the text of all messages, or nil and why an answer has none.
local function answers_in(self, messages, tools, trained, text)
  local list, last = {}, 0
  for at = 1, #messages do
    if trained[at] then
      local prompt = self:render(messages, tools, true, at - 1)
      local turn = at == #messages and text or self:render(messages, tools, false, at)
      local from, to, problem
      if is_left_out(self, messages, tools, at, text) then
        return nil, ("the answer in message %d: the template leaves it out"):format(at)
      end
      if prompt and turn and begins(turn, prompt) and begins(text, turn) and #turn > #prompt then
        from, to = #prompt, #turn
      else
        from, problem = answer_around(self, messages, tools, at, text)
        to = from and problem
      end
      if not from then return nil, ("the answer in message %d: %s"):format(at, problem) end
      if from < last then return nil, ("the answer in message %d begins within the one before"):format(at) end
      list[#list + 1], last = { from, to }, to
    end
  end
  return list
end

-- The tokens of a text and the mask of those that stand for a part of `answers`, bytes {from, to} in order; all: of
-- every token. special: with what the tokenizer puts around a text. Or nil, err.
function Chat:masked(text, answers, special)
  local array, count, offsets = self.tokenizer.opened:encode_with(text, { special = special, offsets = true })
  if not array then return nil, count end
  local ids, mask, at = {}, {}, 1
  for i = 0, count - 1 do
    local begin, stop = offsets[2 * i], offsets[2 * i + 1]
    while answers ~= "all" and answers[at] and begin >= answers[at][2] do at = at + 1 end
    local answer = answers ~= "all" and answers[at]
    local counts = answers == "all" or answer and stop > answer[1] and stop > begin
    ids[i + 1], mask[i + 1] = array[i], counts and 1 or 0
  end
  return ids, mask
end

-- A conversation as tokens, their mask and its text. trained: of each message, whether its answer is learned (default:
-- the assistant's all are); "all": everything is. Or nil, err.
function Chat:ids(messages, tools, trained)
  local text, err = self:render(messages, tools, false)
  if not text then return nil, tostring(err) end
  local answers = trained
  if trained ~= "all" then
    local counts = trained
    if not counts then
      counts = {}
      for i, message in ipairs(messages) do counts[i] = table_of(message).role == "assistant" end
    end
    answers, err = answers_in(self, messages, tools, counts, text)
    if not answers then return nil, err end
  end
  local ids, mask = self:masked(text, answers, false)
  return ids, mask, text
end

-- A prompt and its answer, or a text alone (prompt ""), as they are, with the token that ends a text where the model
-- has one: tokens, their mask and the text. Or nil, err.
function Chat:plain(prompt, answer, all)
  local last = self:last_token()
  local text = prompt .. answer
  if last and text:sub(-#last) ~= last then text = text .. last end
  local ids, mask = self:masked(text, all and "all" or { { #prompt, #text } }, true)
  return ids, mask, text
end

-- How the token that ends a text is spelled, where the model has one and the tokenizer does not put it there itself.
function Chat:last_token()
  if self.last == nil then
    local opened, token = self.tokenizer.opened, self.tokens.eos_token
    local tokens, count, offsets = opened:encode_with("a", { special = true, offsets = true })
    fail.check("tokenizer", tokens, count)
    local ends = count > 1 and offsets[2 * count - 1] == offsets[2 * count - 2]
    self.last = not ends and self.tokenizer.kind ~= "bytes" and token and opened:find(token) and token or false
  end
  return self.last
end

return chat
