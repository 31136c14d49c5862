local cairn = require "cairn"
local harness = require "harness"
local nn, optim = cairn.nn, cairn.optim
local test, equal = harness.test, harness.equal

-- Trains on one fixed batch, whose loss must fall to `share` of its start.
local function learns(name, model, criterion, input, x, target, share)
  test(name, function()
    local trainer = assert(nn.Trainer {
      model = model, criterion = criterion, input = input, seed = 3,
      device = assert(cairn.device("cpu", { threads = 1 })),
      optim = optim.adamw { learningRate = 1e-2, weightDecay = 0 },
    })
    local first = assert(trainer:step(x, target)).loss
    local last
    for _ = 1, 200 do last = assert(trainer:step(x, target)).loss end
    if last >= share * first or last ~= last then error(("loss went from %g to %g only"):format(first, last)) end
    trainer:free()
  end)
end

local function wave(count, factor)
  local list = {}
  for i = 1, count do list[i] = math.sin(factor * i) end
  return list
end
local function numbers(count, below)
  local list = {}
  for i = 1, count do list[i] = i * 7 % below end
  return list
end

for _, activation in ipairs { "ReLU", "GELU", "SiLU", "Sigmoid", "Tanh", "SoftPlus", "Abs" } do
  learns("Sequential, Linear and " .. activation,
    nn.Sequential():add(nn.Linear(4, 32)):add(nn[activation]()):add(nn.Linear(32, 2)), nn.MSECriterion(), { 8, 4 },
    wave(32, 1.7), wave(16, 0.9), 0.2)
end

learns("Power, Clamp, Exp and a smoothed CrossEntropyCriterion",
  nn.Sequential():add(nn.Linear(4, 32)):add(nn.Clamp(-1, 1)):add(nn.Exp()):add(nn.Power(0.5)):add(nn.Linear(32, 3)),
  nn.CrossEntropyCriterion { smoothing = 0.05 }, { 8, 4 }, wave(32, 1.7), numbers(8, 3), 0.6)

learns("Embedding, Positions, Block, CrossEntropyCriterion",
  nn.Sequential():add(nn.Embedding(16, 16)):add(nn.Positions(8, 16)):add(nn.Block(16, 2, { name = "h0" })):add(
    nn.LayerNorm(16)):add(nn.Linear(16, 16)), nn.CrossEntropyCriterion(), { 2, 8, dtype = "i32" }, numbers(16, 16),
  numbers(16, 13), 0.5)

local table_ = nn.Embedding(16, 16)
learns("a Llama block with a tied, fused head",
  nn.Sequential():add(table_):add(nn.Block(16, 4, { norm = "rms", mlp = "swiglu", rope = true, kvHeads = 2 })):add(
    nn.RMSNorm(16)), nn.LinearCrossEntropyCriterion(16, 16, table_), { 2, 8, dtype = "i32" }, numbers(16, 16),
  numbers(16, 13), 0.5)

learns("Residual, Dropout, View and Region",
  nn.Sequential():add(nn.View(8, 4)):add(nn.Region("r", "recompute", nn.Residual(nn.Linear(4, 4)))):add(nn.Dropout(0.1))
    :add(nn.Linear(4, 2)), nn.MSECriterion(), { 4, 8 }, wave(32, 1.7), wave(16, 0.9), 0.95)

test("predict runs forward, without dropout", function()
  local model = nn.Sequential():add(nn.Linear(2, 3)):add(nn.Dropout(0.5))
  local trainer = assert(nn.Trainer { model = model, criterion = nn.MSECriterion(), input = { 4, 2 } })
  local x = wave(8, 1)
  local y = assert(trainer:predict(x))
  equal(#y, 12)
  local w, b = trainer.session:read("1.weight"), trainer.session:read("1.bias")
  for row = 0, 3 do
    for out = 0, 2 do
      local wanted = b[out + 1] + w[2 * out + 1] * x[2 * row + 1] + w[2 * out + 2] * x[2 * row + 2]
      harness.near(y[3 * row + out + 1], wanted, 1e-5, "output")
    end
  end
  assert(trainer:step(x, wave(12, 2)))
  assert(trainer:predict(x)[1] ~= y[1], "predict sees the new parameters")
end)

test("the same module twice shares its parameters; names follow the tree", function()
  local shared = nn.Linear(4, 4)
  local graph = assert(nn.build(nn.Sequential():add(shared, "a"):add(nn.GELU()):add(shared, "b"), nil, { 2, 4 }))
  equal(#graph:parameters(), 2)
  equal(graph:parameters()[1].name, "a.weight")
end)

test("a child without a name has its parent's; contexts build graphs with inputs of one's own", function()
  local graph = assert(cairn.graph())
  local context = nn.context(graph, true)
  local inner = nn.Sequential():add(nn.LayerNorm(4, false), "ln"):add(nn.GELU(false)):add(nn.Linear(4, 4), "fc")
  local net = nn.Sequential():add(nn.Sequential():add(nn.Residual(inner), ""), "h.0")
  local y = net:build(context, graph:input("x", { 2, 4 }))
  local names = {}
  for i, info in ipairs(graph:parameters()) do names[i] = info.name end
  equal(table.concat(names, " "), "h.0.ln.weight h.0.ln.bias h.0.fc.weight h.0.fc.bias")
  local loss, weight = context:op("mse", y, graph:input("y", { 2, 4 }))
  assert(graph:freeze { loss = loss, weight = weight })
end)

test("models of one graph have names of their own, or are told how", function()
  local graph = assert(cairn.graph())
  local context, x = nn.context(graph, true), graph:input("x", { 2, 4 })
  nn.Sequential():add(nn.Linear(4, 4)):build(context, x)
  context:child("left", nn.Sequential():add(nn.Linear(4, 4)), x)
  equal(graph:parameters()[3].name, "left.1.weight")
  harness.raises(function() nn.Sequential():add(nn.Linear(4, 4)):build(context, x) end, "'1.weight' exists already",
    "context:child")
end)

-- The weights are 1 on the diagonal, so that each row of x is its own logits.
test("criterions count hits where they are asked to", function()
  local accuracy = { accuracy = true }
  for _, pair in ipairs { { nn.Linear(3, 3, false), nn.CrossEntropyCriterion(accuracy) },
                          { nn.Identity(), nn.LinearCrossEntropyCriterion(3, 3, nil, accuracy) } } do
    local graph = assert(cairn.graph())
    local ends = nn.attach(graph, pair[1], pair[2], { 5, 3 })
    local metric = ends.metrics.accuracy
    equal(metric.better, "higher")
    assert(graph:freeze { loss = ends.loss, weight = ends.weight, outputs = { metric.sum, metric.weight } })
    local session = assert(cairn.session(assert(cairn.plan(graph, assert(cairn.device("cpu"))))))
    assert(session:write(graph:parameters()[1].name, { 1, 0, 0, 0, 1, 0, 0, 0, 1 }))
    assert(session:write("input", { 3, 1, 2, 1, 3, 2, 2, 2, 1, 0, 0, 5, 1, 2, 3 }))
    assert(session:write("target", { 0, 1, 1, 2, -100 }))  -- a hit, a hit, the second of equals, a hit, ignored
    assert(assert(cairn.stepper(session)):micro())
    equal(session:read(metric.sum:name())[1], 3)
    equal(session:read(metric.weight:name())[1], 4)
  end
  local graph = assert(cairn.graph())
  equal(nn.attach(graph, nn.Linear(3, 3), nn.CrossEntropyCriterion(), { 5, 3 }).metrics, nil)
end)

-- By what the same numbers give without, and with the other ops: an offset is a weight, a cap is one of logits.
test("norms with an offset, gated units and capped logits", function()
  local function run(build, outputs)
    local graph = assert(cairn.graph())
    local made = { build(graph, nn.context(graph, true), graph:input("x", { 2, 4 })) }
    for i = 1, outputs do graph:name(made[i], "y" .. i) end
    assert(graph:freeze { outputs = made })
    local session = assert(cairn.session(assert(cairn.plan(graph, assert(cairn.device("cpu", { threads = 1 }))))))
    for i, info in ipairs(graph:parameters()) do
      local w = {}
      for k = 1, info.bytes / 4 do w[k] = math.sin(1.7 * k + i) end
      assert(session:write(info.name, w))
    end
    assert(session:write("x", { 0.3, -1.2, 2.5, 0.7, -0.4, 1.1, 9, -3 }))
    if graph:find("target") then assert(session:write("target", { 1, 2 })) end
    assert(session:run())
    local read = {}
    for i = 1, outputs do read[i] = session:read("y" .. i) end
    return read
  end
  local function near(a, b)
    equal(#a, #b)
    for i = 1, #a do harness.near(a[i], b[i], 1e-5, "number " .. i) end
  end
  local norm = run(function(_, context, x)
    return nn.RMSNorm(4, 1e-6, 1):build(context, x)
  end, 1)
  near(norm[1], run(function(graph, context, x)
    local w = graph:parameter("weight", { 4 })
    local ones = context:op("exp", context:op("scale", w, { factor = 0 }))
    return (context:op("rmsnorm", x, w + ones, { eps = 1e-6 }))
  end, 1)[1])
  local gates = run(function(_, context, x)
    return nn.SwiGLU(4, 3):build(context, x)
  end, 1)
  near(gates[1], run(function(_, context, x) return nn.GLU(4, 3):build(context, x) end, 1)[1])
  local capped = run(function(graph, context, x)
    local target = graph:input("target", { 2 }, "i32")
    local criterion = nn.LinearCrossEntropyCriterion(4, 5, nil, { scale = 0.5, softcap = 2 })
    return (criterion:build(context, x, target))
  end, 1)
  near(capped[1], run(function(graph, context, x)
    local target = graph:input("target", { 2 }, "i32")
    local logits = nn.Sequential():add(nn.Linear(4, 5, false)):add(nn.MulConstant(0.5)):add(nn.SoftCap(2))
    return (context:op("cross_entropy", logits:build(context, x), target))
  end, 1)[1])
  harness.raises(function() nn.SoftCap(0) end, "nn_test.lua:", "above 0")
  harness.raises(function() nn.CrossEntropyCriterion { scale = 2 } end, "unknown option 'scale'", "accuracy, smoothing")
end)

test("modules are found and described", function()
  local net = nn.Sequential():add(nn.Block(8, 2)):add(nn.Linear(8, 2))
  equal(#net:findModules("Linear"), 7)
  equal(#net:listModules(), 21)
  equal(tostring(nn.Sequential():add(nn.Linear(10, 25)):add(nn.ReLU(), "act"):add(nn.Region("r", "keep",
    nn.Linear(25, 1, false)))), [[
nn.Sequential {
  [input -> (1) -> (act) -> (3) -> output]
  (1): nn.Linear(10 -> 25)
  (act): nn.ReLU
  (3): nn.Region 'r', keep {
    (1): nn.Linear(25 -> 1) without bias
  }
}]])
  assert(tostring(net):find("nn.CausalSelfAttention of 2 heads", 1, true))
  for _, kind in ipairs { nn.LayerNorm(3), nn.Embedding(5, 3), nn.View(2, 3), nn.Dropout(0.1), nn.MSECriterion() } do
    assert(tostring(kind):find("^nn%.%a+"))
    equal(kind.__typename, "nn." .. kind.kind)
    assert(nn.is(kind))
  end
end)

test("Sequential is taken apart and put together as in Torch7", function()
  local a, b, c = nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)
  local net = nn.Sequential():add(a):add(c, "last"):insert(b, 2)
  equal(net:size(), 3)
  equal(net:get(2), b)
  equal(net:get(-1), c)
  equal(net:get("last"), c)
  equal(net:get(4), nil)
  equal(table.concat(net.names, " "), "1 2 last")
  equal(net:remove(1), a)
  equal(table.concat(net.names, " "), "1 last")
  equal(net:insert(a, 1):insert(nn.GELU()):remove().kind, "GELU")
  harness.raises(function() net:remove(9) end, "nn_test.lua:", "from 1 to 3", "got 9")
  harness.raises(function() net:insert(b, 0) end, "nn_test.lua:", "from 1 to 4")
  net:replace(function(each) return each.kind == "ReLU" and nn.SiLU() or each end)
  equal(#net:findModules("SiLU"), 1)
  equal(#net:findModules("ReLU"), 0)
end)

test("clones have parameters of their own; what is one in a module is one in its clone", function()
  local shared = nn.Linear(4, 4)
  local net = nn.Sequential():add(shared, "a"):add(shared, "b")
  local clone = net:clone()
  assert(clone:get("a") ~= shared and clone:get("a") == clone:get("b"))
  local graph = assert(nn.build(nn.Sequential():add(net, "one"):add(clone, "two"), nil, { 2, 4 }))
  equal(#graph:parameters(), 4)
  harness.raises(function() net:clone("weight") end, "nn_test.lua:", "added twice")
end)

test("evaluate() builds without dropout where the graph trains", function()
  local function dropouts(model)
    local graph, count = assert(nn.build(model, nn.MSECriterion(), { 2, 4 })), 0
    for _, op in ipairs(assert(cairn.plan(graph, assert(cairn.device("cpu")))):ops()) do
      if op.op == "dropout" then count = count + 1 end
    end
    return count
  end
  local net = nn.Sequential():add(nn.Linear(4, 4)):add(nn.Dropout(0.5)):add(nn.Linear(4, 2)):add(nn.Dropout(0.5))
  equal(dropouts(net), 2)
  net:get(2):evaluate()
  equal(dropouts(net), 1)
  equal(dropouts(net:evaluate()), 0)
  equal(dropouts(net:training()), 2)
end)

test("a trainer has the parameters' names and numbers, and forward", function()
  local trainer = assert(nn.Trainer { model = nn.Sequential():add(nn.Linear(2, 3)), criterion = nn.MSECriterion(),
                                      input = { 4, 2 } })
  local list = assert(trainer:parameters(true))
  equal(#list, 2)
  equal(list[1].name, "1.weight")
  equal(#list[1].values, 6)
  equal(assert(trainer:parameters())[1].values, nil)
  assert(trainer.session:write("1.weight", { 1, 0, 0, 1, 1, 1 }))
  assert(trainer.session:write("1.bias", { 0, 0, 10 }))
  local y = assert(trainer:forward { 1, 2, 0, 0, 0, 0, 0, 0 })
  equal(table.concat(y, " ", 1, 3), "1 2 13")
  trainer:free()
end)

test("SoftMax and MulConstant", function()
  local graph = assert(nn.build(nn.Sequential():add(nn.MulConstant(2)):add(nn.SoftMax()), nil, { 1, 2 }))
  local session = assert(cairn.session(assert(cairn.plan(graph, assert(cairn.device("cpu"))))))
  assert(session:write("input", { 0, 1 }))
  assert(session:run())
  harness.near(assert(session:read("output"))[2], 1 / (1 + math.exp(-2)), 1e-6)
end)

test("what of Torch7 is elsewhere says where", function()
  local net = nn.Sequential():add(nn.Linear(2, 2))
  harness.raises(function() net:forward { 1, 2 } end, "nn_test.lua:", "nn.Sequential:forward", "nn.Trainer", ":step")
  harness.raises(function() nn.MSECriterion():backward() end, "nn.MSECriterion:backward", ":step")
  harness.raises(function() net:getParameters() end, ":parameters(true)")
  harness.raises(function() net:zeroGradParameters() end, "accumulate")
  harness.raises(function() net:cuda() end, "cuda:0")
  harness.raises(function() return nn.LookupTable end, "nn_test.lua:", "nn.Embedding", "from 0")
  harness.raises(function() return nn.Conv3d end, "nn_test.lua:", "one and two spatial axes", "nn.Conv2d")
  harness.raises(function() return nn.BatchNorm2d end, "nn_test.lua:", "nn.BatchNorm(channels)")
  harness.raises(function() return nn.MSELoss end, "nn.MSECriterion()")
  harness.raises(function() return nn.ClassNLLCriterion() end, "nn.CrossEntropyCriterion")
  harness.raises(function() optim.sgd(function() end, {}) end, "nn_test.lua:", "settings", "nn.Trainer")
  equal(nn.NoSuchThing, nil)
end)

test("mistakes raise", function()
  harness.raises(function() nn.Linear(0, 4) end, "nn_test.lua:", "inputs")
  harness.raises(function() nn.Sequential():add(4) end, "module expected")
  harness.raises(function() nn.Trainer { modell = 1 } end, "modell")
  harness.raises(function() nn.CrossEntropyCriterion { acuracy = true } end, "nn_test.lua:", "acuracy", "accuracy")
  harness.raises(function() optim.adamw { learningrate = 1 } end, "learningrate", "learningRate")
end)

test("optim names the stepper's options", function()
  local settings = { learningRate = 0.1, weightDecay = 0.2, accumulate = 3 }
  local options = optim.with(optim.adamw(settings), optim.cosine(100, 5))
  equal(options.rate, 0.1)
  equal(options.weight_decay, 0.2)
  equal(options.micro_steps, 3)
  equal(options.schedule, "cosine")
  equal(options.total_steps, 100)
  equal(options.warmup_steps, 5)
end)

test("no globals are set", function()
  for _, name in ipairs { "cairn", "nn", "optim", "core" } do equal(rawget(_G, name), nil, name) end
end)

return harness.finish()
