-- What a row of instruction data is, by its keys: a conversation, a prompt with its answer, or a text. A row of FORMS
-- knows one form; what is none of them is refused with its line.
--   {form, messages (JSON texts), trained (of each, whether its answer counts), tools (a JSON text, or nil)}
--   {form, prompt, answer, system}   {form, text}
local decode = require "cli.base.json_decode"
local fields = require "cli.data.fields"
local json = require "cli.base.json"
local spans = require "cli.base.json_spans"
local unicode = require "cli.base.unicode"

local forms = {}

local PROMPTS = { "prompt", "instruction", "question" }
local ANSWERS = { "completion", "response", "output", "answer" }
local WANTED = "wanted: messages, conversations, text, or a prompt (prompt, instruction, question) with its answer " ..
  "(completion, response, output, answer); prompt=NAME answer=NAME name others; form=text takes a file as it is"
local ROLES = { system = true, developer = true, user = true, assistant = true, tool = true, ["function"] = true }
-- What ShareGPT's speakers are.
local SPEAKERS = { human = "user", user = "user", gpt = "assistant", assistant = "assistant", chatgpt = "assistant",
                   bot = "assistant", model = "assistant", system = "system", tool = "tool", observation = "tool",
                   function_response = "tool", function_call = "assistant", tool_call = "assistant" }
local CALLS = { function_call = true, tool_call = true }

local function quoted(name) return ("'%s'"):format(unicode.shown(tostring(name))) end

local function first_of(names, row)
  for _, name in ipairs(names) do
    if row[name] ~= nil then return name end
  end
end

local function is_array(raw) return raw ~= nil and raw:sub(1, 1) == "[" end
local function is_object(raw) return raw ~= nil and raw:sub(1, 1) == "{" end

-- The text of a cell; refuses another type.
local function text_in(row, name, refuse)
  local value = row[name]
  if type(value) ~= "string" then
    refuse(("%s is %s; wanted: a text"):format(quoted(name), fields.shown(value)))
  end
  return value
end

-- A list of messages, as JSON texts, added to made.messages. from: the first whose answers count.
local function add_messages(made, list, raws, name, refuse)
  for i, raw in ipairs(raws) do
    local message, where = list[i], ("%s, message %d"):format(quoted(name), i)
    if not is_object(raw) then refuse(("%s is %s; wanted: an object"):format(where, fields.shown(message))) end
    if not ROLES[message.role] then
      refuse(("%s: its role is %s; wanted: system, developer, user, assistant, tool"):format(where,
        message.role and fields.shown(message.role) or "missing"))
    end
    local kind = type(message.content)
    local says = kind == "string" or kind == "table"
    if not says and not (kind == "nil" and message.role == "assistant") then
      refuse(("%s: its content is %s; wanted: a text"):format(where, fields.shown(message.content)))
    end
    local answers = message.role == "assistant" and (says and message.content ~= "" or message.tool_calls ~= nil or
      message.reasoning_content ~= nil or message.thinking ~= nil)
    local at = #made.messages + 1
    made.messages[at], made.trained[at] = raw, answers and message.weight ~= 0 or false
  end
end

local function complete(made, name, refuse)
  if #made.messages == 0 then refuse(("%s is empty; wanted: messages"):format(quoted(name))) end
  for _, counts in ipairs(made.trained) do
    if counts then return made end
  end
  return refuse(("%s has no answer: no message of the assistant that counts says anything"):format(quoted(name)))
end

-- The tools of a row: an array, or a text with one in it.
local function tools_of(row, raw, refuse)
  local tools = row.tools
  if tools == nil or tools == "" then return nil end
  local text = type(tools) == "string" and tools or raw.tools
  local ok = type(tools) ~= "string" or pcall(decode, tools)
  if not ok or not is_array(text:match("^%s*(.*)$")) then
    refuse(("'tools' is %s; wanted: an array of tools"):format(fields.shown(tools)))
  end
  return text
end

local function expect_list(row, raw, name, refuse)
  if not is_array(raw[name]) then
    refuse(("%s is %s; wanted: an array of messages"):format(quoted(name), fields.shown(row[name])))
  end
  return spans.array(raw[name])
end

local function new_conversation(form, row, raw, refuse)
  return { form = form, messages = {}, trained = {}, tools = tools_of(row, raw, refuse) }
end

local function messages_in(name, form)
  return function(row, raw, _, refuse)
    local made = new_conversation(form, row, raw, refuse)
    add_messages(made, row[name], expect_list(row, raw, name, refuse), name, refuse)
    return complete(made, name, refuse)
  end
end

-- The text of a call as the field tool_calls of a message has it: an object {name, arguments}, or an array of them.
local function calls_of(value, where, refuse)
  local ok, call = pcall(decode, value)
  if not ok or type(call) ~= "table" or not (call.name or call[1]) then
    refuse(("%s: the call is no JSON object with a name: %s"):format(where, fields.shown(value)))
  end
  local list = call.name and { value } or spans.array(value)
  for i, each in ipairs(list) do list[i] = ('{"type":"function","function":%s}'):format(each) end
  return "[" .. table.concat(list, ",") .. "]"
end

local function sharegpt(row, raw, _, refuse)
  local raws = expect_list(row, raw, "conversations", refuse)
  if type(row.conversations[1]) == "table" and row.conversations[1].role then
    return messages_in("conversations", "messages")(row, raw, nil, refuse)
  end
  local made, list, texts = new_conversation("conversations (ShareGPT)", row, raw, refuse), {}, {}
  if row.system ~= nil and row.system ~= "" then
    list[1] = { role = "system", content = text_in(row, "system", refuse) }
    texts[1] = json.encode(list[1])
  end
  for i, part in ipairs(raws) do
    local turn, where = row.conversations[i], ("'conversations', turn %d"):format(i)
    if not is_object(part) then refuse(("%s is %s; wanted: an object"):format(where, fields.shown(turn))) end
    local role = SPEAKERS[turn.from]
    if not role then
      refuse(("%s: it is from %s; wanted: human, gpt, system, tool, observation, function_call"):format(where,
        turn.from and fields.shown(turn.from) or "nobody"))
    end
    if type(turn.value) ~= "string" then
      refuse(("%s: its value is %s; wanted: a text"):format(where, fields.shown(turn.value)))
    end
    local value = spans.object(part, decode).value
    local message = { role = role, content = turn.value, weight = turn.weight }
    local text = ('{"role":"%s","content":%s}'):format(role, value)
    if CALLS[turn.from] then
      message.tool_calls = calls_of(turn.value, where, refuse)
      text = ('{"role":"assistant","content":"","tool_calls":%s}'):format(message.tool_calls)
    end
    list[#list + 1], texts[#texts + 1] = message, text
  end
  add_messages(made, list, texts, "conversations", refuse)
  return complete(made, "conversations", refuse)
end

-- A prompt and its answer, as texts or as lists of messages, of which those of the answer count.
local function pair(row, raw, names, refuse)
  local prompt, answer = names.prompt, names.answer
  if is_array(raw[prompt]) then
    local made = new_conversation("prompts and answers of messages", row, raw, refuse)
    add_messages(made, row[prompt], spans.array(raw[prompt]), prompt, refuse)
    for i = 1, #made.trained do made.trained[i] = false end
    add_messages(made, row[answer], expect_list(row, raw, answer, refuse), answer, refuse)
    return complete(made, answer, refuse)
  end
  local made = { form = "prompts and answers", prompt = text_in(row, prompt, refuse) }
  if prompt == "instruction" and row.input ~= nil and row.input ~= "" then
    made.form = "instructions with inputs (Alpaca)"
    made.prompt = made.prompt .. "\n" .. text_in(row, "input", refuse)
  end
  if row.system ~= nil and row.system ~= "" then made.system = text_in(row, "system", refuse) end
  if type(row.history) == "table" and #row.history > 0 then
    refuse("it has a 'history', which is not read; wanted: the conversation as messages")
  end
  made.answer = text_in(row, answer, refuse)
  if made.answer == "" then refuse(("%s is empty: there is no answer to learn"):format(quoted(answer))) end
  return made
end

local SIDES = { "chosen", "rejected" }

-- How many messages two lists begin with alike, as they are written.
local function alike(a, b)
  local count = 0
  while a[count + 1] and a[count + 1] == b[count + 1] do count = count + 1 end
  return count
end

-- A pair of preferences as two samples, the preferred one first: texts or lists of messages that follow `prompt`;
-- without one, what both begin with is the prompt. o: the option prompt.
function forms.preference(row, text, o, refuse)
  local raw = text and spans.object(text, decode) or {}
  local prompt, made = o.prompt and o.prompt ~= "" and o.prompt or "prompt", {}
  for i, side in ipairs(SIDES) do
    if row[side] == nil then
      refuse(("it has no %s; wanted: chosen and rejected, texts or lists of messages"):format(quoted(side)))
    end
    if row[prompt] ~= nil then
      made[i] = pair(row, raw, { prompt = prompt, answer = side }, refuse)
    elseif is_array(raw[side]) then
      made[i] = messages_in(side, "pairs of conversations")(row, raw, nil, refuse)
    else
      made[i] = { form = "pairs of texts", prompt = "", answer = text_in(row, side, refuse) }
    end
  end
  if row[prompt] ~= nil then return made end
  if (made[1].messages == nil) ~= (made[2].messages == nil) then refuse("chosen and rejected are of two kinds") end
  if made[1].messages then
    local shared = alike(made[1].messages, made[2].messages)
    for i, sample in ipairs(made) do
      for at = 1, shared do sample.trained[at] = false end
      complete(sample, SIDES[i], refuse)
    end
    return made
  end
  local a, b, shared = made[1].answer, made[2].answer, 0
  while shared < math.min(#a, #b) and a:byte(shared + 1) == b:byte(shared + 1) do shared = shared + 1 end
  -- Words stay together: a space goes with what follows it.
  shared = #a:sub(1, shared):match("^(.-)%S*$"):match("^(.-) ?$")
  for i, sample in ipairs(made) do
    if sample.answer == "" then refuse(("%s is empty: there is no answer to compare"):format(quoted(SIDES[i]))) end
    sample.prompt, sample.answer = sample.answer:sub(1, shared), sample.answer:sub(shared + 1)
  end
  return made
end

local function preferences(_, _, _, refuse)
  return refuse("it is a pair of preferences (chosen, rejected), which objective=dpo and reward train with; " ..
    "the next token of answers is trained with the chosen ones alone, as messages or as a prompt with its answer")
end

-- Rows: whether one reads a row with these keys; what it makes of it. The first that does counts.
local FORMS = {
  { function(row) return row.chosen ~= nil and row.rejected ~= nil end, preferences },
  { function(row, names) return names.named and row[names.prompt] ~= nil and row[names.answer] ~= nil end, pair },
  { function(row) return row.messages ~= nil end, messages_in("messages", "messages") },
  { function(row) return row.conversations ~= nil end, sharegpt },
  { function(row, names) return names.prompt ~= nil and names.answer ~= nil and row[names.answer] ~= nil end, pair },
  { function(row, names) return row.text ~= nil and names.prompt == nil end, function(row, _, _, refuse)
    local text = text_in(row, "text", refuse)
    if text == "" then refuse("'text' is empty") end
    return { form = "texts", text = text }
  end },
}

local function refuse_unknown(row, names, refuse)
  local keys = {}
  for key in pairs(row) do keys[#keys + 1] = tostring(key) end
  table.sort(keys)
  if names.prompt and row[names.prompt] ~= nil then
    refuse(("it has %s and no answer; wanted: one of %s, or answer=NAME"):format(quoted(names.prompt),
      table.concat(ANSWERS, ", ")))
  end
  refuse(("it is none of the forms of instruction data (%s); %s"):format(#keys == 0 and "it has no keys"
    or "its keys: " .. unicode.shown(table.concat({ unpack(keys, 1, 12) }, ", ")), WANTED))
end

-- What a row is. text: the row as it is written (of JSON lines); o: the options prompt and answer; refuse(message).
function forms.of(row, text, o, refuse)
  local asked = function(name) return o[name] and o[name] ~= "" and o[name] or nil end
  local names = { prompt = asked("prompt") or first_of(PROMPTS, row), named = asked("prompt") or asked("answer"),
                  answer = asked("answer") or first_of(ANSWERS, row) }
  for _, option in ipairs { "prompt", "answer" } do
    if asked(option) and row[asked(option)] == nil then
      refuse(("it has no %s, which %s= names"):format(quoted(asked(option)), option))
    end
  end
  local raw = text and spans.object(text, decode) or {}
  for _, form in ipairs(FORMS) do
    if form[1](row, names) then return form[2](row, raw, names, refuse) end
  end
  return refuse_unknown(row, names, refuse)
end

return forms
