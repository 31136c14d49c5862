-- Statistics of masked samples: TOKENIZER TEXT.
local cairn = require "cairn"
local ffi = require "ffi"
local frame = require "cli.data.frame"
local masked = require "cli.data.masked"
local parts = require "cli.data.parts"

local tokenizer_file, text = ...
local tokenizer = assert(cairn.tokenizer("pretrained", tokenizer_file))
local around = frame.of(tokenizer)
assert(around.before[1] == 2 and #around.before == 1 and around.after[1] == 3 and #around.after == 1)
assert(around.mask == 4)

local SEQ, BATCH = 42, 8
local o = { data = text, tokens = "auto", samples = "windows", seq = SEQ, batch = BATCH, vocab = 27, eval_fraction = 0,
            eval_data = "", remainder = "pad", mask_rate = 0.15, mask_share = 0.8, random_share = 0.1, mask_token = -1 }
local function run(seed) return { seed = seed, note = print, tokenizer = tokenizer_file } end
local data = masked.dataset(o, run(1))
local most = masked.most(o)
assert(most == 6)

local function copy_of(arrays)
  local copy = {}
  for name, array in pairs(arrays) do
    copy[name] = {}
    for i = 0, ffi.sizeof(array) / 4 - 1 do copy[name][i + 1] = array[i] end
  end
  return copy
end
local function same(a, b)
  for name, list in pairs(a) do
    for i, value in ipairs(list) do
      if b[name][i] ~= value then return false end
    end
  end
  return true
end

local kinds, chosen, all, epochs = { mask = 0, other = 0, kept = 0 }, 0, 0, {}
for index = 0, 20 * data.batches - 1 do
  local arrays, _, _, there = data.batch(index)
  local copy = copy_of(arrays)
  for row = 0, there - 1 do
    assert(arrays.tokens[row * SEQ] == 2 and arrays.tokens[row * SEQ + SEQ - 1] == 3)
    local last = -1
    all = all + SEQ - 2
    for slot = row * most, (row + 1) * most - 1 do
      local at, target = arrays.chosen[slot], arrays.targets[slot]
      assert(at > row * SEQ and at < (row + 1) * SEQ - 1 and at > last, "of its own sample, each once, no special one")
      assert(target >= 5, "special tokens are never to be found")
      local now = arrays.tokens[at]
      local kind = now == 4 and "mask" or now == target and "kept" or "other"
      assert(now == 4 or now >= 5, "no special token is drawn")
      kinds[kind], chosen, last = kinds[kind] + 1, chosen + 1, at
    end
  end
  for slot = there * most, BATCH * most - 1 do assert(arrays.targets[slot] == -100) end
  if index % data.batches == 0 then epochs[#epochs + 1] = copy end
end
assert(math.abs(chosen / all - 0.15) < 1e-9, chosen / all)
local function near(kind, share) assert(math.abs(kinds[kind] / chosen - share) < 0.01, kind .. kinds[kind] / chosen) end
near("mask", 0.8)
near("other", 0.1 * 21 / 22)
near("kept", 0.1 + 0.1 / 22)

-- A function of seed, epoch and index alone.
local again = masked.dataset(o, run(1))
again.batch(3)
assert(same(epochs[3], copy_of((again.batch(2 * data.batches)))))
assert(not same(epochs[1], epochs[2]))
assert(not same(epochs[1], copy_of((masked.dataset(o, run(2)).batch(0)))))

-- In equal parts, places are those of the part.
local all_of_it, halves = copy_of((data.batch(0))), parts.dataset(data, 2)
local inputs = { { name = "tokens", shape = { BATCH / 2, SEQ } }, { name = "chosen", shape = { BATCH / 2 * most } },
                 { name = "targets", shape = { BATCH / 2 * most } } }
for part = 0, 1 do
  local arrays = parts.of("here", (halves.batch(part)), part, 2, inputs)
  for i = 0, BATCH / 2 * most - 1 do
    local at = part * BATCH / 2 * most + i + 1
    assert(arrays.chosen[i] == all_of_it.chosen[at] - part * BATCH / 2 * SEQ)
    assert(arrays.targets[i] == all_of_it.targets[at])
    assert(arrays.tokens[arrays.chosen[i]] == all_of_it.tokens[all_of_it.chosen[at] + 1])
  end
end
