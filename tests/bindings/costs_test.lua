-- Costs and traces.
local cairn = require "cairn"
local harness = require "harness"
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails

local function regression()
  local g = assert(cairn.graph())
  local x, target = g:input("x", { 8, 512 }), g:input("target", { 8, 1 })
  for i = 1, 4 do
    local w = g:parameter("w" .. i, { 512, 512 }, { init = "normal", scale = 0.05 })
    x = g:region("layer" .. i, function() return (g:op("gelu", g:op("linear", x, w))) end)
  end
  local loss, weight = g:op("mse", g:op("linear", x, g:parameter("head", { 1, 512 })), target)
  return assert(g:freeze { loss = loss, weight = weight })
end

local function trainer(options)
  local device = assert(cairn.device("cpu", { threads = 1 }))
  local graph = regression()
  local plan = assert(cairn.plan(graph, device, options))
  local session = assert(cairn.session(plan))
  assert(session:initialise(1))
  local x = {}
  for i = 1, 8 * 512 do x[i] = i % 7 * 0.1 end
  assert(session:write("x", x))
  assert(session:write("target", { 0, 1, 2, 3, 4, 5, 6, 7 }))
  return assert(cairn.stepper(session, { rate = 0.01 })), session, plan, graph, device
end

test("a traced run fills a profile, which plans", function()
  local stepper, session, _, graph, device = trainer()
  local costs = assert(cairn.costs(device))
  fails("WRONG_STATE", costs:add_run(session))
  assert(session:trace(true))
  for _ = 1, 3 do
    local report = assert(stepper:micro())
    assert(costs:add_run(session, report.seconds, report.optimizer_seconds))
  end
  local spans = assert(session:spans())
  for _, span in ipairs(spans) do
    equal(span.lane, "compute")
    equal(span.tier, nil)
    assert(span.end_seconds >= span.begin_seconds and span.live_bytes > 0 and #span.name > 0)
  end
  local text = assert(costs:json())
  assert(text:find("cairn.profile/1", 1, true))
  local summary = assert(assert(cairn.plan(graph, device, { costs = assert(cairn.read_costs(text)) })):summary())
  equal(summary.counters.measured_ops, summary.op_count)
  assert(summary.update_seconds > 0 and summary.predicted_seconds > 0 and #spans >= summary.op_count)
  assert(session:trace(false))
end)

test("spans of copies name their tier", function()
  local stepper, session = trainer { policy = "offload", tiers = "host" }
  assert(session:trace(true))
  assert(stepper:micro())
  local lanes = {}
  for _, span in ipairs(session:spans()) do
    lanes[span.lane] = true
    if span.lane ~= "compute" then equal(span.tier, "host") end
  end
  assert(lanes.compute and lanes.copy_out and lanes.copy_in)
end)

test("a profile of another machine is refused unless forced", function()
  local _, _, _, graph, device = trainer()
  local text = assert(assert(cairn.costs(device)):json()):gsub('"threads": 1', '"threads": 7')
  local costs = assert(cairn.read_costs(text))
  local err = fails("INVALID_ARGUMENT", cairn.plan(graph, device, { costs = costs }))
  assert(err.message:find("threads '7' there and '1' here", 1, true), err.message)
  assert(cairn.plan(graph, device, { costs = costs, force_costs = true }))
  fails("INVALID_ARGUMENT", costs:measure_link(device, "host"))
end)

test("texts that are none, and misuse", function()
  fails("CORRUPT_FILE", cairn.read_costs("{"))
  fails("CORRUPT_FILE", cairn.read_costs('{"format": "cairn.problem/1"}'))
  fails("INVALID_ARGUMENT", cairn.read_costs('{"format": "cairn.device-model/1"}'))
  local _, _, _, graph, device = trainer()
  local costs = assert(cairn.costs(device))
  raises(function() costs:measure_link(device, "attic") end, "host", "disk")
  raises(function() cairn.plan(graph, device, { costs = {} }) end, "costs expected")
end)

return harness.finish()
