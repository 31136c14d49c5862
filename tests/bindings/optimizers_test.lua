-- Optimizers, parameter groups and hyper-parameters through the binding; several programs on one store.
local cairn = require "cairn"
local harness = require "harness"
local nn, optim = cairn.nn, cairn.optim
local test, equal, near, raises, fails = harness.test, harness.equal, harness.near, harness.raises, harness.fails

local device = assert(cairn.device("cpu", { threads = 1 }))

local function regression(rows, evaluates)
  local g = assert(cairn.graph())
  local x = g:input("x", { rows, 2 })
  local w = g:parameter("w", { 1, 2 }, { init = "normal", scale = 0.5 })
  local b = g:parameter("b", { 1 }, { no_decay = true })
  local y = g:name(g:op("linear", x, w, b), "y")
  if evaluates then return assert(g:freeze { outputs = { y } }) end
  local loss, weight = g:op("mse", y, g:input("target", { rows, 1 }))
  return assert(g:freeze { loss = loss, weight = weight, outputs = { y } })
end

local function feed(session, first, rows)
  local x, target = {}, {}
  for i = 1, rows do
    local a, c = math.sin(first + i), math.cos(3 * (first + i))
    x[2 * i - 1], x[2 * i], target[i] = a, c, 2 * a - 3 * c + 0.5
  end
  assert(session:write("x", x))
  if session.graph:info("target") then assert(session:write("target", target)) end
end

local function stepper_of(plan_options, options)
  local plan = assert(cairn.plan(regression(8), device, plan_options))
  local session = assert(cairn.session(plan))
  assert(session:initialise(1))
  return assert(cairn.stepper(session, options)), session, plan
end

test("optimizers are listed with their states and hyper-parameters", function()
  local known = {}
  for _, row in ipairs(cairn.optimizers()) do known[row.name] = row end
  equal(cairn.optimizers()[1].name, "adamw")
  equal(known.lion.states[1].name, "m")
  equal(known.sgd.states[1].name, "momentum")
  equal(known.sgd.states[1].when, "momentum")
  local defaults = {}
  for _, hyper in ipairs(known.lion.hypers) do defaults[hyper.name] = hyper.default end
  equal(defaults.beta2, 0.99)
  equal(defaults.rate_scale, 1)
  equal(known.muon.otherwise, "adamw")
  equal(known.adamw.otherwise, nil)
  equal(#known.adafactor.states, 3)
end)

test("settings have defaults and ranges", function()
  local function of(...)
    local rows = {}
    for _, row in ipairs(cairn.settings(...)) do rows[row.name] = row end
    return rows
  end
  local muon = of("optimizer", "muon")
  equal(muon.momentum.default, 0.95)
  equal(muon.momentum.below, true)
  equal(muon.momentum.allowed, "at least 0 and below 1")
  equal(muon.nesterov.default, true)
  equal(muon.ns_steps.most, 99)
  equal(muon.ns_steps.integer, true)
  equal(of("stepper").rate.above, true)
  equal(of("stepper").loss_scale.or_zero, true)
  equal(of("schedule", "wsd").decay_shape.default, "linear")
  equal(#of("schedule", "wsd").decay_shape.words, 3)
  equal(of("schedule", "multistep").milestones.list, true)
  raises(function() cairn.settings("optimiser", "muon") end, "optimiser", "optimizer")
  raises(function() cairn.settings("optimizer", "muom") end, "muom", "muon")
  for _, row in ipairs(cairn.optimizers()) do equal(type(optim[row.name]), "function", row.name) end
  equal(optim.adamw { epsilon = 1e-6 }.eps, 1e-6)
  equal(optim.muon { nsEpsilon = 1e-6, matchRmsAdamw = true }.ns_eps, 1e-6)
end)

for _, case in ipairs { { "sgd", { momentum = 0.9 }, 0.05 }, { "sgd", { momentum = 0.9, nesterov = true }, 0.05 },
                        { "lion", {}, 0.01 }, { "adam", {}, 0.05 }, { "adafactor", { clip_threshold = 2 }, 0.1 },
                        { "muon", { ns_steps = 3 }, 0.02 } } do
  test(case[1] .. " learns a line", function()
    local stepper, session, plan = stepper_of({ optimizer = case[1], hypers = case[2] }, { rate = case[3] })
    local first, last
    for n = 0, 400 do
      feed(session, 8 * n, 8)
      last = assert(stepper:micro()).loss
      first = first or last
    end
    near(last / first, 0, 0.02, "the share of the loss that is left")
    equal(session:usage().peak_bytes, plan:summary().peak_bytes.device)
  end)
end

test("groups have optimizers and hyper-parameters of their own", function()
  local stepper, session, plan = stepper_of({ optimizer = "sgd", groups = {
    { pattern = "b", optimizer = "lion", rate_scale = 0, beta1 = 0.5 } } }, { hypers = { b = { beta2 = 0.75 } } })
  equal(plan:summary().optimizer_bytes >= 4, true, "b has a state of Lion's")
  equal(stepper:get("beta1", "b"), 0.5)
  equal(stepper:get("beta2", "b"), 0.75)
  equal(stepper:get("momentum"), 0)
  local before = assert(session:read("b"))[1]
  feed(session, 0, 8)
  assert(stepper:micro())
  equal(assert(session:read("b"))[1], before, "b at a rate of 0")
  assert(stepper:set("rate_scale", 1, "b"))
  assert(stepper:micro())
  assert(session:read("b")[1] ~= before, "b at the schedule's rate")
  assert(stepper:set("weight_decay", 0.5))
  equal(stepper:get("weight_decay", "b"), 0.5, "of all groups")
  equal(stepper:get("weight_decay", ""), 0.5)
end)

-- Each: options of cairn.plan that are refused, and what the message must hold.
for _, case in ipairs {
  { { optimizer = "adamax" }, "'adamax'", "lion" },
  { { optimizer = "sgd", hypers = { beta1 = 0.5 } }, "'beta1'", "momentum" },
  { { optimizer = "sgd", hypers = { momentum = 1 } }, "momentum is 1", "below 1" },
  { { hypers = { ["x.*"] = { eps = 1 } } }, "'x.*'" },
  { { groups = { { pattern = "x.*" } } }, "'x.*'", "matches no parameter", "w" },
  { { groups = { { pattern = "b" }, { pattern = "?" } } }, "'b'", "'?'" },
  { { groups = { { pattern = "b", momentum = 0.5 } } }, "'adamw'", "'momentum'" },
  { { no_optimizer = true, optimizer = "sgd" }, "no_optimizer" },
} do
  test("refused: " .. case[2], function()
    local err = fails("INVALID_ARGUMENT", cairn.plan(regression(8), device, case[1]))
    for i = 2, #case do
      if not err.message:find(case[i], 1, true) then error(("'%s' is not in: %s"):format(case[i], err.message)) end
    end
  end)
end

test("what is no option at all raises", function()
  raises(function() cairn.plan(regression(8), device, { hypers = { momentum = "much" } }) end, "momentum", "number")
  raises(function() cairn.plan(regression(8), device, { groups = { { optimizer = "sgd" } } }) end, "groups[1].pattern")
  raises(function() cairn.plan(regression(8), device, { groups = { "*.bias" } }) end, "groups[1]", "table")
  local nameless = { { pattern = "b", optimizer = 3 } }
  raises(function() cairn.plan(regression(8), device, { groups = nameless }) end, "groups[1].optimizer")
  raises(function() cairn.plan(regression(8), device, { hypers = 0.9 }) end, "hypers: ", "table")
  raises(function() optim.sgd { moment = 0.9 } end, "moment", "momentum")
end)

test("steppers refuse what there is not", function()
  local stepper, session = stepper_of({ optimizer = "sgd" }, { micro_steps = 2 })
  fails("INVALID_ARGUMENT", stepper:set("beta1", 0.5))
  fails("INVALID_ARGUMENT", stepper:set("momentum", 0.5))  -- its state is not in the plan
  fails("INVALID_ARGUMENT", stepper:get("momentum", "b"))
  raises(function() stepper:set(nil, 1) end, "name")
  fails("INVALID_ARGUMENT", cairn.stepper(session, { hypers = { beta1 = 0.5 } }))
  feed(session, 0, 8)
  assert(stepper:micro())
  fails("WRONG_STATE", stepper:set("weight_decay", 0.5))
end)

test("optim.muon has settings for the parameters that it leaves to AdamW", function()
  local plan, stepper = optim.split(optim.muon { learningRate = 0.02, otherwiseRate = 0.005, beta1 = 0.8, nsSteps = 4 })
  equal(plan.optimizer, "muon")
  equal(plan.hypers.ns_steps, 4)
  equal(plan.hypers.beta1, 0.8)
  near(plan.hypers["/adamw"].rate_scale, 0.25, 1e-12, "rate_scale")
  equal(stepper.rate, 0.02)
  equal(stepper.otherwise_rate, nil)
  local groups = { { pattern = "*.bias", rate_scale = 2 }, { pattern = "w", optimizer = "sgd" }, { pattern = "v" } }
  plan = optim.split(optim.muon { learningRate = 0.02, otherwiseRate = 0.005 }, groups)
  near(plan.hypers["/adamw"].rate_scale, 0.25, 1e-12, "rate_scale")
  near(plan.hypers["*.bias/adamw"].rate_scale, 0.5, 1e-12, "rate_scale of a group's rest")
  near(plan.hypers["v/adamw"].rate_scale, 0.25, 1e-12, "rate_scale of a group's rest")
  equal(plan.hypers["w/adamw"], nil)
  raises(function() optim.split(optim.adafactor { learningRate = 1, otherwiseRate = 1 }) end, "adafactor",
    "otherwiseRate")
  raises(function() optim.split(optim.muon { otherwiseRate = 1 }) end, "learningRate")
end)

test("each of optim trains a network", function()
  for _, settings in ipairs { optim.sgd { learningRate = 0.1, momentum = 0.9 }, optim.lion { learningRate = 0.01 },
                              optim.adam { learningRate = 0.02 }, optim.adamw8 { learningRate = 0.02 },
                              optim.adafactor { learningRate = 0.1 },
                              optim.muon { learningRate = 0.05, otherwiseRate = 0.02, weightDecay = 0 } } do
    local trainer = assert(nn.Trainer {
      model = nn.Sequential():add(nn.Linear(2, 32)):add(nn.ReLU()):add(nn.Linear(32, 1)), seed = 3, optim = settings,
      criterion = nn.MSECriterion(), input = { 4, 2 }, device = device,
    })
    local report
    for _ = 1, 300 do report = assert(trainer:step({ 0, 0, 0, 1, 1, 0, 1, 1 }, { 0, 1, 1, 0 })) end
    near(report.loss, 0, 0.01, "loss by " .. settings.optimizer)
  end
end)

local function programs()
  return { { name = "train", graph = regression(8) }, { name = "rest", graph = regression(3) },
           { name = "evaluation", graph = regression(32, true) } }
end

-- Ten steps of two unequal micro-batches, as digests; all memory is taken once.
local function trained(evaluates)
  local plans = assert(cairn.plan_set(programs(), device, { optimizer = "sgd", hypers = { momentum = 0.5 } }))
  local sessions = assert(cairn.sessions(plans))
  local train, rest, evaluation = unpack(sessions)
  assert(train:initialise(1))
  local stepper = assert(cairn.stepper(train, { rate = 0.1, micro_steps = 2 }))
  local digests = {}
  for n = 1, 10 do
    feed(train, 8 * n, 8)
    assert(stepper:micro())
    if evaluates then
      feed(evaluation, 0, 32)
      assert(evaluation:run())
      equal(#assert(evaluation:read("y")), 32)
    end
    feed(rest, n, 3)
    local report = assert(stepper:micro(rest))
    equal(report.step_weight, 11, "rows of a step")
    equal(report.step, n)
    digests[n] = train:digest()
    equal(evaluation:digest(), digests[n])
  end
  local peak = 0
  for _, plan in ipairs(plans) do peak = math.max(peak, plan:summary().peak_bytes.device) end
  for _, each in ipairs(sessions) do equal(each:usage().reserved_bytes, peak, "bytes of the store") end
  return table.concat(digests, " ")
end

test("unequal micro-batches on one store, and evaluation between them", function()
  equal(trained(true), trained(false), "digests")
end)

test("programs that do not go together are named", function()
  local list = programs()
  local g = assert(cairn.graph())
  local y = g:op("linear", g:input("x", { 8, 2 }), g:parameter("w", { 2, 2 }))
  assert(g:freeze { outputs = { y } })
  list[4] = { name = "wide", graph = g }
  local err = fails("INVALID_ARGUMENT", cairn.plan_set(list, device))
  assert(err.message:find("'w'", 1, true) and err.message:find("'wide'", 1, true), err.message)
  fails("INVALID_ARGUMENT", cairn.plan_set({}, device))
  raises(function() cairn.plan_set({ { graph = g } }, device) end, "programs[1].name")
  local plans = assert(cairn.plan_set(programs(), device))
  fails("INVALID_ARGUMENT", cairn.sessions { plans[2], plans[1], plans[3] })
  fails("INVALID_ARGUMENT", cairn.session(plans[1]))
  local here, there = assert(cairn.sessions(plans)), assert(cairn.sessions(plans))
  assert(here[1]:initialise(1))
  local stepper = assert(cairn.stepper(here[1]))
  fails("INVALID_ARGUMENT", stepper:micro(there[1]))
  fails("WRONG_STATE", stepper:micro(here[3]))
  raises(function() stepper:micro(plans[1]) end, "session")
end)

return harness.finish()
