-- A model's directory, of Hugging Face's form: config.json, weights as safetensors (one file, or shards with an index),
-- a tokenizer; or a GGUF file, which is all of that. What is asked of it before anything is loaded.
local cairn = require "cairn"
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local files = require "cli.base.files"
local gguf = require "cli.model.gguf"
local posix = require "cli.base.posix"
local unicode = require "cli.base.unicode"
local words = require "cli.model.gguf_words"

local directory = {}

local MOST_BYTES = 2 ^ 20  -- of config.json
local MOST_INDEX_BYTES = 2 ^ 26
local WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"

-- Whether a word of the command line names a model's directory, one that is no run, or a GGUF file.
function directory.is(name)
  return posix.no_file(name) == "a directory" and posix.is_there(name .. "/config.json") or gguf.is(name)
end

-- What there is instead of a model in a directory without config.json, in words.
function directory.problem(name)
  local run = posix.is_there(name .. "/manifest.cairn") or posix.is_there(name .. "/run.json")
  return ("%s is a directory without config.json%s"):format(unicode.shown(name), run
    and ": a run, which --resume goes on with; wanted: a recipe, or a model's directory"
    or "; wanted: a recipe, or a model's directory as Transformers' save_pretrained writes it")
end

-- Names of its tensors, as a set; nil: it has no weights.
local function tensors(path)
  if posix.is_there(path .. "/" .. INDEX) then
    local ok, index = pcall(decode, files.read(path .. "/" .. INDEX, "weights", MOST_INDEX_BYTES))
    if not ok or type(index) ~= "table" or type(index.weight_map) ~= "table" then
      fail.input(("%s/%s is no index of shards%s"):format(path, INDEX, ok and "" or ": " .. tostring(index)))
    end
    return index.weight_map
  end
  if not posix.is_there(path .. "/" .. WHOLE) then return nil end
  local text, err = cairn.inspect(path .. "/" .. WHOLE)
  return decode(fail.check(path .. "/" .. WHOLE, text, err)).tensors or {}
end

-- {path, text (of config.json), name (for messages), tensors (a set of names, or nil), gguf (what inspect says of such
-- a file, or nil)}.
function directory.open(name)
  if gguf.is(name) then return gguf.open(name) end
  local path = posix.real_path(name) or name
  local config = name:gsub("/+$", "") .. "/config.json"
  return { path = path, name = config, text = files.read(config, "model", MOST_BYTES), tensors = tensors(path) }
end

-- Whether the head of a model is its token table: what config.json says of it, or else whether the files have no head.
-- a: its architecture; says: whether the config has the key.
function directory.tied(self, a, says)
  if not self.tensors or not a.names.head or self.gguf then return a.tied end
  local head, found = a.names.head .. ".weight", false
  for name in pairs(self.tensors) do
    if name == head or name:sub(-#head - 1) == "." .. head then found = true end
  end
  if a.head_in_file then return not found end
  if not found and says and not a.tied then
    fail.input(("%s: tie_word_embeddings is false, and the files have no '%s'"):format(self.name, head))
  end
  return a.tied or not found
end

-- Calls put(key, type, value) with the tokenizer and the chat templates of a model, as GGUF has them. vocab: tokens of
-- the model; config: its config as a table. False: it has none.
function directory.words(put, self, vocab, config)
  if not self.gguf then return words.of_directory(put, self.path, vocab, config) end
  words.of_gguf(put, self.gguf.metadata)
  return self.gguf.metadata["tokenizer.ggml.tokens"] ~= nil
end

-- What --init would be given: the directory, or nil where it has no weights.
function directory.weights(self)
  if not self.tensors then
    fail.input(("%s has no weights: neither %s nor %s; `cairn train decoder model=%s` begins without"):format(self.path,
      WHOLE, INDEX, self.name))
  end
  return self.path
end

return directory
