-- The texts of pictures as tokens: what models of pictures and texts read.
local fail = require "cli.base.fail"
local numbers = require "cairn.numbers"
local tokenizers = require "cli.data.tokenizers"

local texts = {}

local END_OF_BYTES = 256  -- ends a text of bytes, after the 256 of them

local ROWS = {
  { "seq", 64, "tokens of a text; of longer ones the first, and the one that ends it", whole = true, least = 2,
    most = 65536 },
  { "tokens", "bytes", "kind of tokens; auto: those of the model's directory", choices = { "bytes", "auto" } },
}

function texts.options(defaults)
  local list = {}
  for i, row in ipairs(ROWS) do
    local own = {}
    for key, value in pairs(row) do own[key] = value end
    if defaults and defaults[row[1]] ~= nil then own[2] = defaults[row[1]] end
    list[i] = own
  end
  return list
end

local function tokenizer_of(o, run)
  run.picture_tokenizer = run.picture_tokenizer or tokenizers.of(o, run)
  return run.picture_tokenizer
end

-- How many tokens there are.
function texts.vocabulary(o, run)
  local tokenizer = tokenizer_of(o, run)
  local least = tokenizer.kind == "bytes" and END_OF_BYTES + 1 or tokenizer.opened:vocabulary()
  if o.vocab > 0 and o.vocab < least then
    fail.input(("vocab=%.0f: the texts have %.0f tokens"):format(o.vocab, least))
  end
  return o.vocab > 0 and o.vocab or least
end

-- What fills text and text_length of micro-batches. The last token of a text that is cut is the one that ends it.
function texts.filler(o, run)
  local tokenizer = tokenizer_of(o, run)
  local bytes = tokenizer.kind == "bytes"
  return {
    tokenizer = tokenizer,
    buffers = function(arrays, to)
      arrays.text, arrays.text_length = numbers.buffer("i32", o.batch * o.seq), numbers.buffer("i32", o.batch)
      to.items = numbers.buffer("i64", o.batch)
    end,
    fill = function(arrays, to, pictures)
      for row = 0, o.batch - 1 do
        local text = fail.check("data", pictures:text(to.items[row]))
        local list, there = fail.check("tokenizer", tokenizer.opened:encode_with(text, { special = not bytes }))
        local count = bytes and there + 1 or math.max(there, 1)
        local kept = math.min(count, o.seq)
        for i = 0, o.seq - 1 do arrays.text[row * o.seq + i] = i < math.min(kept, there) and list[i] or 0 end
        arrays.text[row * o.seq + kept - 1] = bytes and END_OF_BYTES or there > 0 and list[there - 1] or 0
        arrays.text_length[row] = kept
      end
    end,
  }
end

return texts
