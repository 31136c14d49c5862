-- Tokenizers as datasets have them: {kind, opened, id (which tells one from others)}, and of a vocabulary also file
-- (its name in a checkpoint) and text (its content).
local cairn = require "cairn"
local content = require "cli.data.content"
local fail = require "cli.base.fail"
local files = require "cli.base.files"

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

-- That of the options; make() learns one of a text. A run that goes on, or a trained model, keeps the vocabulary that
-- it has, whatever the text is now.
function tokenizers.of(o, run, make)
  if o.tokens ~= "bpe" then return tokenizers.bytes() end
  if run.tokenizer then return fail.check("tokenizer", tokenizers.of_file(run.tokenizer)) end
  return make()
end

return tokenizers
