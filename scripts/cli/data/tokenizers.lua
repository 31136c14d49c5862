-- Tokenizers as datasets have them: {kind, opened, id (which tells one from others)}, and of a vocabulary also file
-- (its name in a checkpoint) and text (its content).
local cairn = require "cairn"
local content = require "cli.data.content"
local fail = require "cli.base.fail"
local files = require "cli.base.files"
local posix = require "cli.base.posix"

local tokenizers = {}

function tokenizers.bytes()
  return { kind = "bytes", opened = fail.check("tokenizer", cairn.tokenizer("bytes")), id = "bytes" }
end

-- That of a vocabulary's file, under a name of its own or that of the file; nil, err as the binding.
function tokenizers.of_file(path, name)
  local opened, err = cairn.tokenizer("bpe", path)
  if not opened then return nil, err end
  return { kind = "bpe", file = name or path:match("([^/]+)$"), text = files.read(path, "tokenizer"), opened = opened,
           id = ("bpe%d-%s"):format(opened:vocabulary(), content.digest(path, "tokenizer"):sub(1, 16)) }
end

-- That of a model's directory; bytes where it has none.
function tokenizers.of_directory(path)
  local file = path and path .. "/tokenizer.model"
  if not file or not posix.is_there(file) then return tokenizers.bytes() end
  return fail.check("tokenizer", tokenizers.of_file(file))
end

-- That of the options; make() learns one of a text. A run that goes on, or a trained model, keeps the vocabulary that
-- it has, whatever the text is now. auto: that of the model's directory, run.directory.
function tokenizers.of(o, run, make)
  if o.tokens == "bytes" then return tokenizers.bytes() end
  if run.tokenizer then return fail.check("tokenizer", tokenizers.of_file(run.tokenizer)) end
  if o.tokens == "auto" then return tokenizers.of_directory(run.directory) end
  return make()
end

return tokenizers
