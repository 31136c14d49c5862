local cairn = require "cairn"
local ffi = require "ffi"
local harness = require "harness"
local test, equal, near, fails = harness.test, harness.equal, harness.near, harness.fails

local function regression()
  local g = assert(cairn.graph())
  local x, target = g:input("x", { 8, 2 }), g:input("target", { 8, 1 })
  local w = g:parameter("w", { 1, 2 }, { init = "normal", scale = 0.5 })
  local b = g:parameter("b", { 1 }, { no_decay = true })
  local y = g:region("layer", function() return (g:op("linear", x, w, b)) end)
  local loss, weight = g:op("mse", y, target)
  return assert(g:freeze { loss = loss, weight = weight, outputs = { g:name(y, "y") } })
end

local function batch(n)
  local x, target = {}, {}
  for i = 1, 8 do
    local a, c = math.sin(n * 8 + i), math.cos(3 * (n * 8 + i))
    x[2 * i - 1], x[2 * i], target[i] = a, c, 2 * a - 3 * c + 0.5
  end
  return x, target
end

local function stepper_of(options, plan_options)
  local device = assert(cairn.device("cpu", { threads = 1 }))
  local plan = assert(cairn.plan(regression(), device, plan_options))
  local session = assert(cairn.session(plan))
  assert(session:initialise(1))
  return assert(cairn.stepper(session, options)), session, plan
end

local function step(stepper, session, n)
  local x, target = batch(n)
  assert(session:write("x", x))
  assert(session:write("target", target))
  return assert(stepper:micro())
end

test("a line is learned; reports tell what happened", function()
  local stepper, session = stepper_of { rate = 0.05, weight_decay = 0 }
  local first = step(stepper, session, 0)
  equal(first.outcome, "applied")
  equal(first.step, 1)
  equal(first.weight, 8)
  for n = 1, 400 do step(stepper, session, n) end
  local w, b = assert(session:read("w")), assert(session:read("b"))
  near(w[1], 2, 0.05, "w[1]")
  near(w[2], -3, 0.05, "w[2]")
  near(b[1], 0.5, 0.05, "b")
  equal(#session:read("w/gradient"), 2)
  equal(#session:digest(), 32)
end)

test("a step moves a statistic, a run a cache, and the host reads and writes both", function()
  local g = cairn.graph()
  local x, target, at = g:input("x", { 2, 2 }), g:input("target", { 2, 1 }), g:input("at", { 1 }, "i32")
  local mean, cache = g:statistic("mean", { 2 }, { fill = 1 }), g:cache("cache", { 4, 2 })
  equal(mean:info().kind, "statistic")
  equal(cache:info().kind, "cache")
  equal(g:op("running_mean", x, mean, { momentum = 0.5 }), nil)
  g:op("append", cache, x, at)
  local loss, weight = g:op("mse", g:op("linear", x, g:parameter("w", { 1, 2 }, { scale = 0.5 })), target)
  g:freeze { loss = loss, weight = weight }
  local session = assert(cairn.session(assert(cairn.plan(g, assert(cairn.device("cpu", { threads = 1 }))))))
  assert(session:initialise(1))
  local stepper = assert(cairn.stepper(session, { rate = 0.05 }))
  assert(session:write("target", { 1, 1 }))
  for n, rows in ipairs { { 2, 4, 4, 8 }, { 1, 1, 1, 1 } } do
    assert(session:write("x", rows))
    assert(session:write("at", { 2 * (n - 1) }))
    assert(stepper:micro())
  end
  local means = assert(session:read("mean"))
  near(means[1], 1.5, 1e-6, "1, then half way to 3, then to 1")
  near(means[2], 2.25, 1e-6, "1, then half way to 6, then to 1")
  equal(table.concat(assert(session:read("cache")), " "), "2 4 4 8 1 1 1 1")
  assert(session:write("mean", { 0, 7 }))
  equal(assert(session:read("mean"))[2], 7)
end)

test("planned and measured peaks are equal", function()
  local stepper, session, plan = stepper_of()
  step(stepper, session, 0)
  equal(session:usage("device").peak_bytes, plan:summary().peak_bytes.device, "device peak")
  local total, categories = 0, plan:summary()
  for _, name in ipairs { "parameters", "gradients", "optimizer", "activations", "workspace" } do
    total = total + categories[name .. "_bytes"]
  end
  assert(total > 0 and total <= categories.peak_bytes.device, "categories at the peak")
end)

test("the plan's table and renderings", function()
  local _, _, plan = stepper_of()
  local rows, names = plan:values(), {}
  for _, row in ipairs(rows) do names[row.name] = row end
  equal(names.w.category, "parameter")
  equal(names.w.decision, "persistent")
  assert(plan:render("json"):find("cairn.plan/1", 1, true))
  local problem = plan:render("problem")
  assert(problem:find("cairn.problem/1", 1, true))
  assert(plan:render("svg"):find("<svg", 1, true))
  assert(plan:render("html", "a title"):find("a title", 1, true))
  assert(#plan:render("file") > 0)
  assert(assert(cairn.problem_solve(problem)):find("cairn.plan/1", 1, true))
  fails("CORRUPT_FILE", cairn.problem_solve("not JSON"))
  harness.raises(function() plan:render("poem") end, "kind")
end)

test("the bytes of every tier by what they are for", function()
  local _, _, plan = stepper_of()
  local summary = plan:summary()
  for tier, peak in pairs(summary.peak_bytes) do
    local memory = assert(plan:memory(tier))
    local sum = memory.parameters + memory.gradients + memory.optimizer + memory.activations + memory.workspace
    equal(sum, peak)
    equal(summary.tier_bytes[tier].parameters, memory.parameters)
  end
  equal(summary.peak_at, plan:memory("device").peak_at)
  equal(plan:memory("host").peak_at, nil)
  harness.raises(function() plan:memory("cellar") end, "none of: device, host, disk")
end)

test("over budget names the smallest budget, which then fits", function()
  local device = assert(cairn.device("cpu", { threads = 1 }))
  local graph = regression()
  local err = fails("OVER_BUDGET", cairn.plan(graph, device, { budget_bytes = 1 }))
  equal(err.code, 4)
  equal(err.fault.budget_bytes, 1)
  equal(err.fault.tier, "device")
  local smallest = err.fault.smallest_budget_bytes
  assert(smallest > 1)
  local plan = assert(cairn.plan(graph, device, { budget_bytes = smallest }))
  assert(plan:summary().peak_bytes.device <= smallest)
  fails("OVER_BUDGET", cairn.plan(graph, device, { budget_bytes = smallest - 1 }))
end)

test("two micro-batches are one batch of both", function()
  local one, session = stepper_of { rate = 0.1, micro_steps = 2 }
  equal(step(one, session, 0).outcome, "accumulated")
  local report = step(one, session, 1)
  equal(report.outcome, "applied")
  equal(report.step_weight, 16)
  fails("WRONG_STATE", one:apply())
  equal(step(one, session, 2).micro, 1)
  fails("WRONG_STATE", one:configure { rate = 1 })
  local early = assert(one:apply())
  equal(early.outcome, "applied")
  equal(early.step_weight, 8)
  step(one, session, 3)
  assert(one:discard())
  equal(one:report().micro, 0)
  assert(one:configure { rate = 0.01, schedule = "cosine", total_steps = 10, micro_steps = 1 })
  near(step(one, session, 4).rate, 0.01 * 0.5 * (1 + math.cos(math.pi * 2 / 10)), 1e-2, "rate")
end)

test("a number that is not finite skips the step and keeps the parameters", function()
  local stepper, session = stepper_of()
  step(stepper, session, 0)
  local before = session:digest()
  local x, target = batch(1)
  x[3] = 0 / 0
  assert(session:write("x", x))
  assert(session:write("target", target))
  equal(assert(stepper:micro()).outcome, "skipped_nonfinite")
  equal(session:digest(), before)
  equal(stepper:report().skipped_steps, 1)
end)

test("reading and writing check names and sizes", function()
  local _, session = stepper_of()
  fails("NOT_FOUND", session:write("nothing", { 1 }))
  fails("NOT_FOUND", session:read("nothing"))
  harness.raises(function() session:write("b", { 1, 2 }) end, "2 numbers", "1 needed")
  harness.raises(function() session:write("b", "text") end, "array of numbers")
  harness.raises(function() session:write("b", { "1" }) end, "number 1 is a string")
  harness.raises(function() session:write("b", ffi.new("float[2]")) end, "8 bytes given, 4 needed")
  harness.raises(function() session:write("b", ffi.new("int32_t[1]")) end, "array of int given, float needed")
  assert(session:write("b", ffi.new("const float[1]", 1.5)))
  assert(session:write("b", ffi.new("uint8_t[4]")))  -- bytes of any
  harness.raises(function() session:read("b", ffi.new("int32_t[1]")) end, "array of int given, float needed")
  harness.raises(function() session:read("b/gradient", ffi.new("double[1]")) end, "array of double given")
  equal(assert(session:info("b/gradient")).dtype, "f32")
  equal(assert(session:info("b")).kind, "parameter")
  equal(assert(session:info("b")).shape[1], 1)
  fails("NOT_FOUND", session:info("nothing"))
  local one = ffi.new("float[1]")
  assert(session:write("b", ffi.cast("float*", one)))  -- a pointer says nothing about its size
  assert(session:write("b", { 4.5 }))
  equal(session:read("b")[1], 4.5)
  fails("WRONG_STATE", session:run())
end)

test("a checkpoint in the middle of an accumulation continues to the same bits", function()
  local directory = os.tmpname()
  os.remove(directory)
  local options = { rate = 0.1, micro_steps = 3, seed = 5 }
  local stepper, session = stepper_of(options)
  for n = 0, 3 do step(stepper, session, n) end
  assert(stepper:save(directory, { colour = "blue" }))
  for n = 4, 5 do step(stepper, session, n) end
  local checkpoint = assert(cairn.checkpoint(directory))
  equal(checkpoint:metadata("colour"), "blue")
  equal(checkpoint:metadata("taste"), nil)
  equal(checkpoint:verify(), true)
  equal(#checkpoint:graph():parameters(), 2)
  local again, other = stepper_of(options)
  assert(again:restore(checkpoint))
  equal(again:report().micro, 1)
  for n = 4, 5 do step(again, other, n) end
  equal(other:digest(), session:digest())
  assert(other:load(checkpoint))
  assert(cairn.inspect(directory):find("{", 1, true))
  fails("NOT_FOUND", cairn.checkpoint(directory .. "-not-there"))
  equal(cairn.remove_checkpoint(directory), true)
  fails("NOT_FOUND", cairn.remove_checkpoint(directory))
end)

test("handles may be freed in any order, by hand and by the collector", function()
  for round = 1, 20 do
    local stepper, session, plan = stepper_of()
    step(stepper, session, round)
    if round % 2 == 0 then
      plan.graph:free()
      plan:free()
      session:free()
      harness.raises(function() session:digest() end, "freed")
      assert(stepper:report().step == 1)
      stepper:free()
    end
    stepper, session, plan = nil, nil, nil -- luacheck: ignore
    collectgarbage()
  end
end)

test("devices", function()
  local list = assert(cairn.devices())
  equal(list[1].name, "cpu")
  assert(list[1].threads >= 1 and list[1].memory_bytes > 0)
  fails("NOT_FOUND", cairn.device("abacus"))
  local err = select(2, cairn.device("cuda:0"))
  if err then equal(err.status, "UNSUPPORTED") end
  harness.raises(function() cairn.device("cpu", { thread = 1 }) end, "thread", "known")
end)

test("errors print, join and say what they are", function()
  local err = fails("NOT_FOUND", cairn.checkpoint("/nowhere/at/all"))
  assert(cairn.is_error(err) and not cairn.is_error("text"))
  assert(tostring(err):find("/nowhere/at/all", 1, true))
  equal("! " .. err, "! " .. err.message)
  local version = cairn.version()
  assert(version:match("^1%.%d+%.%d+$"))
end)

return harness.finish()
