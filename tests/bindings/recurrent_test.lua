local cairn = require "cairn"
local golden = require "torch_golden"
local harness = require "harness"
local nn = cairn.nn
local test, equal = harness.test, harness.equal

local function wave(count, factor, size)
  local list = {}
  for i = 1, count do list[i] = math.floor(size * math.sin(factor * i) * 1e6 + 0.5) / 1e6 end
  return list
end

local function device() return assert(cairn.device("cpu", { threads = 1 })) end

for kind, gates in pairs { LSTM = 4, GRU = 3 } do
  test(kind .. " is PyTorch's", function()
    local wanted, graph = golden[kind], assert(cairn.graph())
    local ends = nn.attach(graph, nn[kind](3, 4), nn.MSECriterion(), { 2, 5, 3 })
    graph:name(ends.output, "y")
    assert(graph:freeze { loss = ends.loss, weight = ends.weight, outputs = { ends.output } })
    local session = assert(cairn.session(assert(cairn.plan(graph, device(), { micro_steps = 2 }))))
    assert(session:write("weight_ih", wave(gates * 4 * 3, 1.1, 0.6)))
    assert(session:write("weight_hh", wave(gates * 4 * 4, 1.3, 0.6)))
    assert(session:write("bias_ih", wave(gates * 4, 1.7, 0.4)))
    assert(session:write("bias_hh", wave(gates * 4, 1.9, 0.4)))
    assert(session:write("input", wave(30, 1.3, 1)))
    assert(session:write("target", wave(40, 0.7, 1)))
    assert(assert(cairn.stepper(session, { micro_steps = 2 })):micro())
    local function near(name, found, first, stride)
      for i, value in ipairs(wanted[name]) do harness.near(found[first + (i - 1) * stride], value, 1e-5, name) end
    end
    near("output", session:read "y", 1, 1)
    near("weight_ih", session:read "weight_ih/gradient", 1, 3)
    near("weight_hh", session:read "weight_hh/gradient", 2, 4)
    near("bias_hh", session:read "bias_hh/gradient", 1, 1)
  end)

  test(kind .. " learns, by its last state, one time and many", function()
    for _, time in ipairs { 1, 2, 19 } do
      local trainer = assert(nn.Trainer {
        model = nn.Sequential():add(nn[kind](2, 8)):add(nn[kind](8, 8, { last = true, bias = false }))
          :add(nn.Linear(8, 1)),
        criterion = nn.MSECriterion(), input = { 4, time, 2 }, seed = 3, device = device(),
        optim = cairn.optim.adamw { learningRate = 1e-2, weightDecay = 0 },
      })
      local x, target = wave(4 * time * 2, 1.7, 1), wave(4, 0.9, 1)
      local first, last = assert(trainer:step(x, target)).loss, nil
      for _ = 1, 150 do last = assert(trainer:step(x, target)).loss end
      assert(last < 0.2 * first, ("time %d: loss went from %g to %g"):format(time, first, last))
      trainer:free()
    end
  end)

  test(kind .. " says what it wants", function()
    harness.raises(function() nn[kind](2, 4, { bais = true }) end, "recurrent_test.lua:", "'bais'", "bias")
    harness.raises(function() nn.build(nn[kind](2, 4), nil, { 4, 2 }) end, "x[batch, time, 2]", "[4, 2]")
    equal(tostring(nn[kind](2, 4)), ("nn.%s(2 -> 4)"):format(kind))
  end)
end

return harness.finish()
