local ffi = require "ffi"
local cairn = require "cairn"
local harness = require "harness"
local test, equal, fails = harness.test, harness.equal, harness.fails

local function options(more)
  local made = { data = "drawings", width = 12, height = 12, most = 30, seed = 5, workers = 2, ahead = 1,
                 shuffle = true }
  for key, value in pairs(more or {}) do made[key] = value end
  return made
end

local function batch(pictures, index, rows)
  local to = { pixels = ffi.new("float[?]", rows * 432), labels = ffi.new("int32_t[?]", rows),
               others = ffi.new("int32_t[?]", rows), shares = ffi.new("float[?]", rows),
               items = ffi.new("uint64_t[?]", rows), masks = ffi.new("int32_t[?]", rows * 144) }
  local filled = assert(pictures:batch(index, rows, to))
  local text = {}
  for name, buffer in pairs(to) do text[#text + 1] = name .. ffi.string(buffer, ffi.sizeof(buffer)) end
  table.sort(text)
  return table.concat(text), filled, to
end

test("pictures: what they are", function()
  local pictures = assert(cairn.pictures(options()))
  local info = assert(pictures:info())
  equal(info.count, 30)
  equal(info.classes, 10)
  equal(info.texts, true)
  equal(info.bad, 0)
  equal(assert(pictures:content()):match("^%x+%-30$") ~= nil, true)
  equal(pictures:class(0), "circle")
  fails("NOT_FOUND", pictures:class(10))
  local _, rows, to = batch(pictures, 0, 8)
  equal(rows, 8)
  local text = assert(pictures:text(to.items[2]))
  equal(text:find(pictures:class(to.labels[2]), 1, true) ~= nil, true)
  fails("NOT_FOUND", pictures:text(30))
  pictures:free()
end)

test("pictures: a micro-batch is a function of its number", function()
  local more = { crop = "random-resized", flip = 0.5, randaugment = 2, magnitude = 9, mixup = 1, cutmix = 1, hue = 0.1 }
  local first, again = assert(cairn.pictures(options(more))), assert(cairn.pictures(options(more)))
  local made = {}
  for index = 0, 9 do made[index] = batch(first, index, 8) end
  for _, index in ipairs { 7, 8, 2, 0 } do equal(batch(again, index, 8) == made[index], true) end
  equal(select(2, batch(first, 3, 8)), 6)  -- of 30
  more.workers = 0
  local alone = assert(cairn.pictures(options(more)))
  equal(batch(alone, 5, 8) == made[5], true)
end)

test("pictures: wrong options and buffers", function()
  fails("INVALID_ARGUMENT", cairn.pictures(options { data = "nothing" }))
  fails("INVALID_ARGUMENT", cairn.pictures(options { width = 0 }))
  fails("INVALID_ARGUMENT", cairn.pictures(options { hue = 2 }))
  fails("INVALID_ARGUMENT", cairn.pictures(options { deviation = { 1, 0, 1 } }))
  fails("NOT_FOUND", cairn.pictures(options { data = "folder:/nowhere at all" }))
  equal(pcall(cairn.pictures, options { scale = { 1 } }), false)
  equal(pcall(cairn.pictures, options { crop = "middle" }), false)
  local pictures = assert(cairn.pictures(options()))
  equal(pcall(pictures.batch, pictures, 0, 8, { pixels = ffi.new("float[?]", 431) }), false)
  equal(pcall(pictures.batch, pictures, 0, 8, { pixel = ffi.new("float[?]", 432) }), false)
end)

return harness.finish()
