-- What cli.data.pictures gives of each kind; run by pictures_test.py.
local pictures = require "cli.data.pictures"

local function options(more)
  local o = { batch = 4, vocab = 0 }
  for _, rows in ipairs { pictures.options { image = 16, augment = "none" }, pictures.text_options { seq = 24 } } do
    for _, row in ipairs(rows) do o[row[1]] = row[2] end
  end
  for key, value in pairs(more or {}) do o[key] = value end
  return o
end

local run = { seed = 3 }
local o = options { samples = 10, eval_samples = 9 }
for key, value in pairs(pictures.settle(o, "text", run)) do o[key] = value end
assert(o.vocab == 257 and o.classes == 10)
local data = pictures.dataset(o, run, "text")
assert(data.batches == 2)  -- of 4; the last 2 are left out
local arrays, rows = data.batch(3)
assert(rows == 4)
for row = 0, 3 do
  local length = arrays.text_length[row]
  assert(length >= 10 and length <= 24)
  assert(arrays.text[row * 24] == ("a"):byte())
  assert(arrays.text[row * 24 + length - 1] == 256)
  assert(length == 24 or arrays.text[row * 24 + length] == 0)
end
assert(pictures.evaluation(o, run, "text").data().batches == 2)
assert(pictures.evaluation(options { evaluate = "none" }, run) == nil)

o = options()
o.classes = pictures.settle(o, "mask").classes
assert(o.classes == 11 and pictures.check(o, "mask") == nil)
local masks = pictures.dataset(o, run, "mask").batch(0).target
local seen = {}
for i = 0, 4 * 256 - 1 do seen[masks[i]] = true end
assert(seen[0])
assert(pictures.check(options { augment = "flip" }, "mask") and pictures.check(options { mixup = 1 }, "text"))

o = options { mixup = 0.4, cutmix = 1, samples = 6, remainder = "own" }
assert(pictures.mixes(o))
data = pictures.dataset(o, run)
arrays = data.batch(0)
assert(arrays.share[0] >= 0 and arrays.share[0] <= 1 and arrays.target2[1] == arrays.target[0])
local which
arrays, rows, which = data.batch(1)
assert(rows == 2 and which == "remainder" and data.remainders[1].changes.batch == 2)
assert(require("ffi").sizeof(arrays.target) == 8)
assert(pictures.evaluation(o, run).data().batch(0).share == nil)

o = options { samples = 6 }
arrays, rows = pictures.dataset(o, run).batch(1)
assert(rows == 2 and arrays.target[1] >= 0 and arrays.target[2] == -100)
assert(next((pictures.dataset(o, run, "plain").batch(0))) == "input")
print "fine"
