-- cairn.schedules: what there is, how stages are written, and what a stepper makes of them.
local cairn = require "cairn"
local harness = require "harness"
local test, equal, near, raises, fails = harness.test, harness.equal, harness.near, harness.raises, harness.fails
local optim = cairn.optim

local function rates(options, count)
  options.rate = options.rate or 1
  return assert(cairn.schedule_rates(options, 0, count))
end

test("schedules are listed with what they take", function()
  local by_name = {}
  for _, row in ipairs(cairn.schedules()) do by_name[row.name] = row end
  equal(by_name.wsd.parameters[2].words[3], "sqrt")
  equal(by_name.wsd.parameters[2].default, "linear")
  equal(by_name.onecycle.parameters[2].default, 25)
  equal(by_name.multistep.parameters[1].list, true)
  equal(by_name.cosine.ends, true)
  equal(by_name.step.ends, false)
end)

test("a text, a stage and stages are the same schedule", function()
  local text = "linear:2:start_factor=0.5:end_factor=1,multistep:milestones=1/3:gamma=0.5"
  local stages = { { "linear", steps = 2, start_factor = 0.5, end_factor = 1 },
                   { "multistep", milestones = { 1, 3 }, gamma = 0.5 } }
  local one, other = rates({ schedule = text }, 7), rates({ schedule = stages }, 7)
  for i, wanted in ipairs { 0.5, 0.75, 1, 0.5, 0.5, 0.25, 0.25 } do
    near(one[i], wanted, 1e-15, "rate " .. i)
    equal(other[i], one[i])
  end
  one = rates({ schedule = "wsd", total_steps = 20 }, 25)
  other = rates({ schedule = { "wsd", decay_steps = 2, decay_shape = "linear" }, total_steps = 20 }, 25)
  for i = 1, 25 do equal(other[i], one[i]) end
end)

test("one-cycle has momenta, others have none", function()
  local function momenta(stage) return select(2, rates({ schedule = stage, total_steps = 10 }, 10)) end
  local list = momenta { "onecycle", three_phase = true, anneal = "linear" }
  near(list[1], 0.95, 1e-15)
  near(list[3], 0.85, 1e-15)
  near(list[10], 0.95, 1e-15)
  equal(momenta({ "onecycle", cycle_momentum = false })[1], nil)
  equal(momenta("constant")[1], nil)
end)

test("what is wrong is said", function()
  local err = fails("INVALID_ARGUMENT", cairn.schedule_rates { schedule = "cosin" })
  equal(err.message:find("inverse_sqrt", 1, true) ~= nil, true)
  err = fails("INVALID_ARGUMENT", cairn.schedule_rates { schedule = { "step", step_size = 2, power = 2 } })
  equal(err.message:find("no parameter 'power'", 1, true) ~= nil, true)
  fails("INVALID_ARGUMENT", cairn.schedule_rates { schedule = { "step", step_size = 2.5 } })
  fails("INVALID_ARGUMENT", cairn.schedule_rates { schedule = { "multistep", milestones = { 4, 2 } } })
  fails("INVALID_ARGUMENT", cairn.schedule_rates { schedule = "cosine", total_steps = 5, warmup_steps = 6 })
  for _, count in ipairs { -1, 1.5, 2 ^ 27, 0 / 0, "3" } do
    raises(function() cairn.schedule_rates({}, 0, count) end, "schedules_test.lua:", "count")
    raises(function() cairn.schedule_rates({}, count == 2 ^ 27 and 2 ^ 60 or count, 1) end, "schedules_test.lua:",
      "first")
  end
  raises(function() cairn.schedule_rates { schedule = 4 } end, "schedules_test.lua:", "schedule")
  raises(function() cairn.schedule_rates { schedule = "cosine:x" } end, "schedules_test.lua:", "'x'")
  raises(function() cairn.schedule_rates { schedule = { { "cosine" }, 7 } } end, "schedule[2]")
  raises(function() cairn.schedule_rates { schedule = { { "step", step_size = print } } } end, "step_size", "function")
  for _, text in ipairs { "", ",", "1cosine", "cosine:0", "cosine:1:2", "cosine:steps=3", "step:gamma=", "linear:a=1/b",
                          "linear:=3", "linear::x=1" } do
    local stages, problem = cairn.parse_schedule(text)
    equal(stages, nil, text)
    equal(type(problem), "string")
  end
end)

test("optim has them under short names", function()
  local options = optim.with(optim.adamw { learningRate = 1 }, optim.schedule("polynomial", { total = 10, power = 2 }))
  equal(options.total_steps, 10)
  near(rates(optim.schedule("polynomial", { total = 10, power = 2 }), 6)[6], 0.25, 1e-15)
  near(rates(optim.joined({ { "constant", steps = 1, factor = 0.5 }, { "cosine" } }, { total = 3, warmup = 1 }), 2)[2],
    0.5, 1e-15)
  near(optim.scaled(0.1, "linear", 64, 16), 0.4, 1e-15)
  near(optim.scaled(0.1, "sqrt", 64, 16), 0.2, 1e-15)
  raises(function() optim.scaled(0.1, "cubic", 64, 16) end, "linear sqrt")
  raises(function() optim.scaled(0.1, "sqrt", 64, 0) end, "above 0")
end)

return harness.finish()
