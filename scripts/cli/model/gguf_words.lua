-- A tokenizer and chat templates as metadata of a GGUF file, by llama.cpp's names.
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local files = require "cli.base.files"
local posix = require "cli.base.posix"
local unicode = require "cli.base.unicode"

local words = {}

local MOST_BYTES = 2 ^ 28
local MARK = "\226\150\129"
local NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

-- tokenizer.ggml.pre by the expression that cuts text (runtime/io/gguf/splitters.def has them the other way round):
-- {of a model whose words may be tokens whatever merges say, of another}.
local CONTRACTIONS, ENDS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)", [[|\s*[\r\n]+|\s+(?!\S)|\s+]]
local HEAD = [=[[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]]=]
local TAIL = [=[[\p{Ll}\p{Lm}\p{Lo}\p{M}]]=]
local SPLITTERS = {
  [CONTRACTIONS .. [=[|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*]=] .. ENDS] =
    { "llama-bpe", "dbrx" },
  [CONTRACTIONS .. [=[|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*]=] .. ENDS] = { "qwen2", "qwen2" },
  [CONTRACTIONS .. [=[|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*]=] .. ENDS] =
    { "qwen35", "qwen35" },
  [HEAD .. "*" .. TAIL .. "+|" .. HEAD .. "+" .. TAIL .. [=[*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*]=] .. ENDS] =
    { "tekken", "tekken" },
  [HEAD .. "*" .. TAIL .. "+" .. CONTRACTIONS .. "?|" .. HEAD .. "+" .. TAIL .. "*" .. CONTRACTIONS ..
    [=[?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*]=] .. ENDS] = { "gpt-4o", "gpt-4o" },
}

local function object_in(directory, name)
  if not posix.is_there(directory .. "/" .. name) then return nil end
  local ok, object = pcall(decode, files.read(directory .. "/" .. name, "tokenizer", MOST_BYTES))
  if not ok or type(object) ~= "table" then fail.input(("%s/%s is no JSON object"):format(directory, name)) end
  return object
end

-- The parts of a sequence, or the one part.
local function parts_of(part, list)
  if type(part) ~= "table" then return {} end
  return part[list] or { part }
end
local function find(parts, kind)
  for _, part in ipairs(parts) do
    if part.type == kind then return part end
  end
end

-- tokenizer.ggml.pre of a vocabulary of bytes.
local function splitter(read, where)
  local parts = parts_of(read.pre_tokenizer, "pretokenizers")
  local split, digits = find(parts, "Split"), find(parts, "Digits")
  if not split then return digits and "smollm" or "gpt-2" end
  local expression = type(split.pattern) == "table" and split.pattern.Regex or ""
  local names = not digits and SPLITTERS[expression]
  if not names then
    fail.input(("%s cuts text by '%s', for which GGUF has no name that is known here; --no-tokenizer writes the " ..
      "model alone"):format(where, unicode.shown(expression)))
  end
  return names[read.model.ignore_merges and 1 or 2]
end

-- Tokens and their types by number, from 0.
local function listed(read, size, bytes)
  local tokens, types, added = {}, {}, {}
  for token, id in pairs(read.model.vocab) do tokens[id], types[id] = token, NORMAL end
  for _, row in ipairs(read.added_tokens or {}) do
    local text = row.content
    added[row.id] = true
    types[row.id] = row.special and CONTROL or USER
    if not row.special then text = text:gsub(MARK, " ") end
    tokens[row.id] = text
  end
  local most = size - 1
  for id in pairs(tokens) do most = math.max(most, id) end
  for id = 0, most do
    if not tokens[id] then tokens[id], types[id] = ("[PAD%d]"):format(id), UNUSED end
    if not bytes and not added[id] and tokens[id]:find("^<0x%x%x>$") then types[id] = BYTE end
    if not bytes and tokens[id] == read.model.unk_token then types[id] = UNKNOWN end
  end
  return tokens, types, most + 1
end

local function list(tokens, count)
  local made = {}
  for i = 1, count do made[i] = tokens[i - 1] end
  return made
end

local function merges_of(read)
  local made = {}
  for i, pair in ipairs(read.model.merges or {}) do
    made[i] = type(pair) == "table" and pair or { pair:match("^(.-) (.*)$") }
  end
  return made
end

-- Tokens around a text: the special ones that a template begins and ends with.
local function around(read)
  local template = find(parts_of(read.post_processor, "processors"), "TemplateProcessing")
  local single = template and template.single or {}
  local function id_of(part)
    local name = part and part.SpecialToken and part.SpecialToken.id
    return name and (template.special_tokens[name].ids or {})[1]
  end
  return id_of(single[1]), #single > 1 and id_of(single[#single]) or nil
end

-- Numbers of special tokens: as tokenizer_config.json names them, or config.json numbers them.
local function special(put, config, model_config, ids)
  local KEYS = { bos = "bos", eos = "eos", unk = "unknown", pad = "padding" }
  for word, key in pairs(KEYS) do
    local token = config[word .. "_token"]
    local text = type(token) == "table" and token.content or token
    local id = text and ids[text] or model_config[word .. "_token_id"]
    if type(id) == "table" then id = id[1] end
    if type(id) == "number" then put(("tokenizer.ggml.%s_token_id"):format(key), "u32", id) end
  end
end

local function templates(put, directory, config)
  local file = directory .. "/chat_template.jinja"
  local given = posix.is_there(file) and files.read(file, "tokenizer", MOST_BYTES) or config.chat_template
  if type(given) == "string" then put("tokenizer.chat_template", "text", given) end
  if type(given) ~= "table" then return end
  local names = {}
  for _, row in ipairs(given) do
    local default = row.name == "default"
    put("tokenizer.chat_template" .. (default and "" or "." .. row.name), "text", row.template)
    if not default then names[#names + 1] = row.name end
  end
  put("tokenizer.chat_templates", "text", names)
end

-- put(key, type, value) is called with all that a directory says; size: tokens of the model. False: it has no tokenizer
-- that is kept as a tokenizer.json.
function words.of_directory(put, directory, size, model_config)
  local where = directory .. "/tokenizer.json"
  local read, config = object_in(directory, "tokenizer.json"), object_in(directory, "tokenizer_config.json") or {}
  if not read then return false end
  if type(read.model) ~= "table" or read.model.type ~= "BPE" then
    fail.input(("%s: a tokenizer of the kind '%s' is not written into a GGUF file; --no-tokenizer writes the model " ..
      "alone"):format(where, unicode.shown(tostring(read.model and read.model.type))))
  end
  local bytes = find(parts_of(read.pre_tokenizer, "pretokenizers"), "ByteLevel") ~= nil
  local tokens, types, count = listed(read, size, bytes)
  local ids, merges = {}, merges_of(read)
  for id = 0, count - 1 do ids[tokens[id]] = id end
  put("tokenizer.ggml.model", "text", bytes and "gpt2" or "llama")
  put("tokenizer.ggml.pre", "text", bytes and splitter(read, where) or "default")
  put("tokenizer.ggml.tokens", "text", list(tokens, count))
  put("tokenizer.ggml.token_type", "i32", list(types, count))
  if bytes then
    local texts = {}
    for i, pair in ipairs(merges) do texts[i] = pair[1] .. " " .. pair[2] end
    put("tokenizer.ggml.merges", "text", texts)
  else
    local scores = {}
    for i = 1, count do scores[i] = -#merges - i end
    for i = #merges, 1, -1 do
      local id = read.model.vocab[merges[i][1] .. merges[i][2]]
      if id then scores[id + 1] = -i end
    end
    put("tokenizer.ggml.scores", "f32", scores)
    local normal, pre = find(parts_of(read.normalizer, "normalizers"), "Prepend"),
      find(parts_of(read.pre_tokenizer, "pretokenizers"), "Metaspace")
    put("tokenizer.ggml.add_space_prefix", "bool", normal ~= nil or pre ~= nil and pre.prepend_scheme ~= "never")
  end
  special(put, config, model_config, ids)
  local first, last = around(read)
  put("tokenizer.ggml.bos_token_id", "u32", first)
  put("tokenizer.ggml.eos_token_id", "u32", last)
  put("tokenizer.ggml.add_bos_token", "bool", first ~= nil)
  put("tokenizer.ggml.add_eos_token", "bool", last ~= nil)
  templates(put, directory, config)
  return true
end

-- The same of another GGUF file's metadata, as `cairn inspect` gives them.
local TYPES = { ["tokenizer.ggml.token_type"] = "i32", ["tokenizer.ggml.scores"] = "f32" }
function words.of_gguf(put, metadata)
  local names = {}
  for key in pairs(metadata) do
    if key:find("^tokenizer%.") then names[#names + 1] = key end
  end
  table.sort(names)
  for _, key in ipairs(names) do
    local value = metadata[key]
    local one = type(value) == "table" and value[1] or value
    local kind = TYPES[key] or type(one) == "boolean" and "bool" or type(one) == "number" and "u32" or "text"
    put(key, kind, value)
  end
end

return words
