-- An error of every status, as a program meets it: nil and a table with code, name, message and, about memory, bytes.
local cairn = require "cairn"
local core = require "cairn.core"
local harness = require "harness"
local test, equal, fails, raises = harness.test, harness.equal, harness.fails, harness.raises

local device = assert(cairn.device("cpu", { threads = 1 }))

local function line(width, first, last)
  local graph = assert(cairn.graph())
  local x = graph:input("x", { 4, 2 })
  local h = graph:op("linear", x, graph:parameter("a", { width, 2 }, { init = "constant", scale = first or 0.1 }))
  local y = graph:op("linear", h, graph:parameter("b", { 1, width }, { init = "constant", scale = last or 0.1 }))
  local loss, weight = graph:op("mse", y, graph:input("target", { 4, 1 }))
  return assert(graph:freeze { loss = loss, weight = weight })
end
local function plan_of(options, ...) return assert(cairn.plan(line(2, ...), device, options)) end

local CASES = {
  INVALID_ARGUMENT = function() return cairn.plan(line(2), device, { optimizer = "adamv" }) end,
  WRONG_STATE = function() return assert(cairn.session(plan_of())):run() end,
  OUT_OF_MEMORY = function() return cairn.session(assert(cairn.plan(line(2 ^ 45), device))) end,
  OVER_BUDGET = function() return cairn.plan(line(2), device, { budget_bytes = 1 }) end,
  UNSUPPORTED = function() return cairn.plan(line(2), device, { amp = "fp16", no_optimizer = true }) end,
  NOT_FOUND = function() return cairn.device("abacus") end,
  CORRUPT_FILE = function() return cairn.problem_solve("no JSON") end,
  IO = function() return line(2):save("/nowhere/at/all/graph") end,
  CANCELLED = function()
    local session = assert(cairn.session(plan_of()))
    assert(session:initialise(1))
    assert(session:write("x", { 1, 1, 1, 1, 1, 1, 1, 1 }))
    assert(session:write("target", { 0, 0, 0, 0 }))
    session:cancel()
    return assert(cairn.stepper(session)):micro()
  end,
  NON_FINITE = function()  -- the gradient overflows, and is found when other parameters were updated
    local session = assert(cairn.session(plan_of({ fuse_update = true }, 1e-30, 1e10)))
    assert(session:initialise(1))
    assert(session:write("x", { 1e30, 1e30, 1e30, 1e30, 1e30, 1e30, 1e30, 1e30 }))
    assert(session:write("target", { 0, 0, 0, 0 }))
    return assert(cairn.stepper(session, { clip_norm = 0 })):micro()
  end,
}

local seen = {}
for status, call in pairs(CASES) do
  test(status, function()
    local err = fails(status, call())
    equal(tostring(err), err.message)
    assert(#err.message > 10, err.message)
    equal(err.code, core.C["CAIRN_STATUS_" .. status])
    equal(err.fault ~= nil, status == "OUT_OF_MEMORY" or status == "OVER_BUDGET")
  end)
  seen[status] = true
end

test("a number that an option cannot hold is no other number", function()
  local session = assert(cairn.session(plan_of()))
  for _, wrong in ipairs { -1, 2.5, 2 ^ 32, 0 / 0, 1 / 0 } do
    raises(function() cairn.stepper(session, { micro_steps = wrong }) end, "errors_test.lua:", "micro_steps")
    raises(function() cairn.device("cpu", { threads = wrong }) end, "errors_test.lua:", "threads")
  end
  raises(function() cairn.stepper(session, { seed = -1 }) end, "'seed' is -1", "at least 0")
  raises(function() cairn.stepper(session, { loss_scale_interval = 5e9 }) end, "5000000000; a smaller number")
  fails("INVALID_ARGUMENT", cairn.stepper(session, { clip_norm = 0 / 0 }))
  assert(cairn.stepper(session, { micro_steps = 2 ^ 32 - 1, seed = 2 ^ 63 }))
end)

-- A lost device and a bug of the library's cannot be made here; what becomes of their codes can.
test("every other code has its name", function()
  local others = {}
  for code = 1, 13 do
    local err = core.make_error(code, "words")
    equal(err.code, code)
    if not seen[err.status] then others[#others + 1] = err.status end
  end
  equal(table.concat(others, " "), "DEVICE_LOST INTERNAL UNKNOWN")
end)

return harness.finish()
