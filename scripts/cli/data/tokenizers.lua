-- Tokenizers as datasets have them: {kind, opened, id (which tells one from others)}, and of a vocabulary also file
-- (its name in a checkpoint) and text (its content).
local cairn = require "cairn"
local content = require "cli.data.content"
local fail = require "cli.base.fail"
local files = require "cli.base.files"
local gguf = require "cli.model.gguf"
local posix = require "cli.base.posix"

local tokenizers = {}

function tokenizers.bytes()
  return { kind = "bytes", opened = fail.check("tokenizer", cairn.tokenizer("bytes")), id = "bytes" }
end

-- That of a vocabulary's file, under a name of its own or that of the file; nil, err as the binding.
function tokenizers.of_file(path, name, kind)
  kind = kind or "bpe"
  local opened, err = cairn.tokenizer(kind, path)
  if not opened then return nil, err end
  return { kind = kind, file = name or path:match("([^/]+)$"), text = files.read(path, "tokenizer"), opened = opened,
           id = ("%s%d-%s"):format(kind, opened:vocabulary(), content.digest(path, "tokenizer"):sub(1, 16)) }
end

-- The files that say how a published model's text is cut; the first that its directory has counts, as in the library.
local PRETRAINED = { "tokenizer.json", "tekken.json", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model" }

-- The opened tokenizer of a published model: its directory or a file. Ends the command where it is none, or has a part
-- that is not known.
function tokenizers.opened(path)
  local opened, err = cairn.tokenizer("pretrained", path)
  if not opened and err.status == "UNSUPPORTED" then fail.input("tokenizer: " .. tostring(err)) end
  return fail.check("tokenizer", opened, err)
end

-- The file of a directory that says how text is cut; nil: it has none.
local function file_in(path)
  for _, name in ipairs(PRETRAINED) do
    if posix.is_there(path .. "/" .. name) then return path .. "/" .. name end
  end
  if posix.is_there(path .. "/vocab.json") and posix.is_there(path .. "/merges.txt") then
    fail.input(("tokenizer: %s has vocab.json and merges.txt; a run keeps one file: save the tokenizer as " ..
      "tokenizer.json"):format(path))
  end
  if posix.is_there(path .. "/vocab.txt") then
    fail.input(("tokenizer: %s has vocab.txt alone, which does not say how text is cut: save the tokenizer as " ..
      "tokenizer.json"):format(path))
  end
end

-- That of a published model's file, as datasets have them.
function tokenizers.pretrained(file)
  tokenizers.opened(file):free()
  return fail.check("tokenizer", tokenizers.of_file(file, nil, "pretrained"))
end

-- That of a GGUF file, as datasets have them: kept as a tokenizer.json.
local function of_gguf(path)
  if not gguf.inspect(path).metadata["tokenizer.ggml.tokens"] then return tokenizers.bytes() end
  local opened = tokenizers.opened(path)
  local folder = fail.check("tokenizer", posix.temporary_directory(posix.temporary()))
  local file = folder .. "/tokenizer.json"
  local made, err = opened:save(file)
  local kept = made and tokenizers.pretrained(file)
  posix.remove_file(file)
  posix.remove_empty_directory(folder)
  fail.check("tokenizer", made, err)
  return kept
end

-- That of a model's directory or GGUF file; bytes where it has none.
function tokenizers.of_directory(path)
  if path and gguf.is(path) then return of_gguf(path) end
  local file = path and file_in(path)
  return file and tokenizers.pretrained(file) or tokenizers.bytes()
end

-- That of the options; make() learns one of a text. A run that goes on, or a trained model, keeps the vocabulary that
-- it has, whatever the text is now. auto: that of the model's directory, run.directory.
function tokenizers.of(o, run, make)
  if o.tokens ~= "bpe" and o.tokens ~= "auto" then return tokenizers.bytes() end
  if o.tokens == "auto" then
    if run.tokenizer then return tokenizers.pretrained(run.tokenizer) end
    return tokenizers.of_directory(run.directory)
  end
  if run.tokenizer then return fail.check("tokenizer", tokenizers.of_file(run.tokenizer)) end
  return make()
end

return tokenizers
