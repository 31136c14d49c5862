-- Mixed precision through the binding: classes, rules, what a plan says of them.
local cairn = require "cairn"
local harness = require "harness"
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails

local device = assert(cairn.device("cpu", { threads = 1 }))

local function model()
  local g = assert(cairn.graph())
  local x = g:input("x", { 4, 8 })
  local out = x
  for i = 1, 2 do
    out = g:region("h" .. i, function()
      local w = g:parameter("w" .. i, { 8, 8 }, { init = "normal", scale = 0.5 })
      return g:op("softmax", g:op("linear", out, w))
    end)
  end
  local loss, weight = g:op("mse", out, g:input("target", { 4, 8 }))
  return assert(g:freeze { loss = loss, weight = weight })
end

local function digest(options)
  local session = assert(cairn.session(assert(cairn.plan(model(), device, options))))
  assert(session:initialise(1))
  local stepper = assert(cairn.stepper(session, { rate = 0.01 }))
  local x, target = {}, {}
  for i = 1, 32 do x[i], target[i] = math.sin(i), math.cos(i) end
  assert(session:write("x", x))
  assert(session:write("target", target))
  for _ = 1, 3 do assert(stepper:micro()) end
  return assert(session:digest())
end

test("classes are listed, and each op has one", function()
  local known = {}
  for _, class in ipairs(cairn.amp_classes()) do known[class.name] = class end
  equal(known.half.by_rule, true)
  equal(known.as_is.by_rule, false)
  for _, op in ipairs(assert(cairn.ops())) do equal(known[op.amp_class] ~= nil, true, op.name) end
end)

test("rules change classes, and the plan says which", function()
  local plan = assert(cairn.plan(model(), device, {
    amp = { "bf16", { op = "softmax", class = "half" }, { region = "h2", class = "full" } } }))
  local rows = assert(plan:ops())
  equal(#rows, 5)
  equal(rows[1].op, "linear")
  equal(rows[1].amp_class, "half")
  equal(rows[1].amp_rule, nil)
  equal(rows[2].amp_class, "half")
  equal(rows[2].amp_rule, 1)
  equal(rows[4].region, "h2")
  equal(rows[4].amp_class, "full")
  equal(rows[4].amp_rule, 2)
  equal(rows[5].amp_class, "mixed")
end)

test("a string and a list without rules are the same", function()
  equal(digest { amp = { "bf16" } }, digest { amp = "bf16" })
  equal(digest { amp = { "bf16", { op = "*", class = "full" } } }, digest {})
  equal(digest { amp = "bf16" } ~= digest {}, true)
end)

test("wrong rules are refused", function()
  local g = model()
  local function plan(...)
    local amp = { ... }
    return function() return cairn.plan(g, device, { amp = amp }) end
  end
  raises(plan("fp8"), "'fp8' is none of: bf16, fp16, off")
  raises(plan({ op = "softmax", class = "half" }), "none of: bf16, fp16, off")
  raises(function() cairn.plan(g, device, { amp = { "bf16", full = { "softmax" } } }) end, "unknown 'full'")
  raises(plan("bf16", { ops = "softmax", class = "half" }), "amp[2]: unknown 'ops'")
  raises(plan("bf16", { op = "softmax" }), "amp[2].class")
  raises(plan("bf16", { op = "softmax", class = "half" }, { op = 3, class = "half" }), "amp[3].op")
  raises(plan("bf16", "softmax"), "amp[2]")
  fails("INVALID_ARGUMENT", plan("bf16", { op = "sofmax", class = "half" })())
  fails("INVALID_ARGUMENT", plan("bf16", { op = "softmax", class = "quarter" })())
end)

return harness.finish()
