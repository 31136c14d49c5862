-- What parameters are stored as, by the patterns of their names.
local cairn = require "cairn"
local harness = require "harness"
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails

local device = assert(cairn.device("reference", { threads = 1 }))

-- x[2, 64] -> a frozen layer and one that trains.
local function model()
  local graph = assert(cairn.graph())
  local x = graph:input("x", { 2, 64 })
  local w = graph:parameter("h.0.weight", { 64, 64 }, { init = "normal", frozen = true, scale = 1 })
  local h = graph:op("linear", x, w)
  local y = graph:op("linear", h, graph:parameter("head", { 1, 64 }, { init = "normal", scale = 1 }))
  return assert(graph:freeze { loss = (graph:op("mse", y, graph:input("t", { 2, 1 }))) })
end

local function planned(rows) return cairn.plan(model(), device, { formats = rows }) end

test("a session reads the numbers that are stored", function()
  local rows = { { pattern = "h.*", format = "int8" } }
  local plan = assert(planned(rows))
  equal(assert(planned {}):summary().parameters_bytes - plan:summary().parameters_bytes, 64 * 64 * 4 - 64 * 68)
  local session = assert(cairn.session(plan))
  assert(session:initialise(3))
  equal(session:info("h.0.weight").dtype, "f32")
  local numbers = {}
  for i = 1, 64 * 64 do numbers[i] = (i - 1) % 64 == 0 and 127 or (i - 1) % 64 - 31 + 0.25 end
  assert(session:write("h.0.weight", numbers))
  local read = session:read("h.0.weight")
  for i = 1, #numbers do equal(read[i], math.floor(numbers[i])) end  -- the scale is 1
end)

test("formats are listed", function()
  local by_name = {}
  for _, row in ipairs(cairn.formats()) do by_name[row.name] = row end
  local int8 = by_name.int8
  equal(int8.bits, 8)
  equal(int8.block, 64)
  equal(int8.scale_bytes, 4)
  equal(int8.read, "dequantised")
  equal(int8.computed_as, "f32")
  equal(int8.trains, false)
  equal(by_name.split.trains, true)
end)

test("rows that are none raise, and rows that fit nothing fail", function()
  local function refused(word, rows)
    local err = fails("INVALID_ARGUMENT", planned(rows))
    equal(tostring(err):find(word, 1, true) ~= nil, true, tostring(err))
  end
  local function with(rows) return function() return planned(rows) end end
  raises(with("h.*=int8"), "formats: table expected")
  raises(with { pattern = "h.*", format = "int8" }, "unknown '")
  raises(with { { format = "int8" } }, "formats[1].pattern")
  raises(with { { pattern = "h.*" } }, "formats[1].format")
  raises(with { { pattern = "h.*", form = "int8" } }, "unknown 'form'")
  refused("no parameter", { { pattern = "k.*", format = "int8" } })
  refused("trained", { { pattern = "head", format = "int8" } })
  refused("int3", { { pattern = "h.*", format = "int3" } })
end)

return harness.finish()
