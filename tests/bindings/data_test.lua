local ffi = require "ffi"
local cairn = require "cairn"
local harness = require "harness"
local test, equal, fails = harness.test, harness.equal, harness.fails

local function text_file(text)
  local path = os.tmpname()
  local file = io.open(path, "wb")
  file:write(text)
  file:close()
  return path
end

test("pretrained: special tokens, offsets, names", function()
  local folder = debug.getinfo(1, "S").source:match("^@(.*)/bindings/") .. "/runtime/data/tokenizer/golden/"
  local tokenizer = assert(cairn.tokenizer("pretrained", folder .. "bert_cased.json"))
  local tokens, count, offsets = tokenizer:encode_with("the way", { special = true, offsets = true })
  equal(tokenizer:token(tokens[0]), "[CLS]")
  equal(tokenizer:find("[SEP]"), tokens[count - 1])
  equal(offsets[2], 0)
  equal(offsets[2 * count - 3], 7)
  local list = {}
  for i = 1, count do list[i] = tokens[i - 1] end
  equal(tokenizer:decode_with(list, { skip_special = true }), "the way")
  equal(select(2, tokenizer:find("no such token")).status, "NOT_FOUND")
end)

test("bytes: encode and decode", function()
  local tokenizer = assert(cairn.tokenizer("bytes"))
  equal(tokenizer:vocabulary(), 256)
  local tokens = assert(tokenizer:encode("héllo\0!"))
  equal(#tokens, 8)
  equal(tokens[1], ("h"):byte())
  equal(tokenizer:decode(tokens), "héllo\0!")
  equal(#tokenizer:encode(""), 0)
  fails("INVALID_ARGUMENT", tokenizer:decode { 256 })
end)

test("a trained vocabulary gives the same bytes back", function()
  local text = ("the quick brown fox jumps over the lazy dog, and the dog sleeps on.\n"):rep(50)
  local path, model = text_file(text), os.tmpname()
  assert(cairn.train_tokenizer(path, 300, model))
  local tokenizer = assert(cairn.tokenizer("bpe", model))
  local tokens = assert(tokenizer:encode(text))
  assert(#tokens < #text)
  equal(tokenizer:decode(tokens), text)
  os.remove(path)
  os.remove(model)
end)

test("batches are a pure function of seed and index, targets the next tokens", function()
  local text, tokens = {}, os.tmpname()
  for i = 1, 100 do text[i] = string.char(i) end
  local path = text_file(table.concat(text))
  assert(assert(cairn.tokenizer("bytes")):write(path, tokens))
  local dataset = assert(cairn.dataset(tokens, 9))
  local info = dataset:info()
  equal(info.tokens, 100)
  local inputs, targets = ffi.new("int32_t[36]"), ffi.new("int32_t[36]")
  local seen, rows = {}, 0
  for index = 0, math.ceil(info.windows / 4) - 1 do
    local filled = assert(dataset:batch(7, index, 4, inputs, targets))
    rows = rows + filled
    for row = 0, filled - 1 do
      equal(seen[inputs[9 * row]], nil, "window twice in an epoch")
      seen[inputs[9 * row]] = true
      for i = 0, 8 do equal(targets[9 * row + i], inputs[9 * row + i] + 1) end
    end
    for row = filled, 3 do equal(targets[9 * row], -100) end
  end
  equal(rows, info.windows)
  local again = ffi.new("int32_t[36]")
  dataset:batch(7, 1, 4, inputs, targets)
  dataset:batch(7, 1, 4, again, targets)
  equal(ffi.string(again, 144), ffi.string(inputs, 144))
  fails("INVALID_ARGUMENT", cairn.dataset(tokens, 1000))
  fails("CORRUPT_FILE", cairn.dataset(path, 9))
  os.remove(path)
  os.remove(tokens)
  fails("NOT_FOUND", cairn.dataset(tokens, 9))
end)

test("random tokens stay inside the vocabulary", function()
  local dataset = assert(cairn.random_dataset(3, 50, 16))
  local inputs, targets = ffi.new("int32_t[64]"), ffi.new("int32_t[64]")
  equal(dataset:batch(3, 1000, 4, inputs, targets), 4)
  for i = 0, 63 do assert(inputs[i] >= 0 and inputs[i] < 50) end
  harness.raises(function() dataset:batch(3, 0, 5, inputs, targets) end, "data_test.lua:", "inputs", "320 needed")
  harness.raises(function() dataset:batch(3, 0, 4, inputs, ffi.new("int32_t[?]", 63)) end, "data_test.lua:", "targets")
end)

return harness.finish()
