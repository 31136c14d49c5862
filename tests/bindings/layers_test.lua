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

-- What a model's parameters hold that was just started: numbers by name.
local function started(model, dims, seed)
  local graph = assert(nn.build(model, nil, dims))
  local session = assert(cairn.session(assert(cairn.plan(graph, device()))))
  assert(session:initialise(seed or 3))
  local numbers = {}
  for _, info in ipairs(graph:parameters()) do numbers[info.name] = assert(session:read(info.name)) end
  return numbers
end

local function moments(list)
  local sum, squares, most = 0, 0, 0
  for _, v in ipairs(list) do sum, squares, most = sum + v, squares + v * v, math.max(most, math.abs(v)) end
  return sum / #list, math.sqrt(squares / #list - (sum / #list) ^ 2), most
end

for _, name in ipairs { "both", "causal" } do
  test("MultiHeadAttention is PyTorch's: " .. name, function()
    local wanted, graph = golden[name], assert(cairn.graph())
    local ends = nn.attach(graph, nn.MultiHeadAttention(8, 2, { causal = name == "causal" }), nn.MSECriterion(),
      { 2, 5, 8 })
    graph:name(ends.output, "y")
    assert(graph:freeze { loss = ends.loss, weight = ends.weight, outputs = { ends.output } })
    local session = assert(cairn.session(assert(cairn.plan(graph, device(), { micro_steps = 2 }))))
    for i, part in ipairs { "query", "key", "value" } do
      assert(session:write(part .. ".weight", wave(64, 1 + 0.1 * i, 0.5)))
      assert(session:write(part .. ".bias", wave(8, 2 + 0.1 * i, 0.3)))
    end
    assert(session:write("out.weight", wave(64, 1.7, 0.5)))
    assert(session:write("out.bias", wave(8, 2.7, 0.3)))
    assert(session:write("input", wave(80, 1.3, 1)))
    assert(session:write("target", wave(80, 0.7, 1)))
    assert(assert(cairn.stepper(session, { micro_steps = 2 })):micro())
    local y, query, value = session:read "y", session:read "query.weight/gradient", session:read "value.weight/gradient"
    for row = 0, 9 do
      for i = 1, 2 do harness.near(y[8 * row + i], wanted.output[2 * row + i], 1e-5, "output") end
    end
    for i = 1, 8 do
      harness.near(query[i], wanted.gradient[i], 1e-3, "gradient of the queries")
      harness.near(value[24 + i], wanted.value_gradient[i], 1e-3, "gradient of the values")
    end
  end)
end

test("MultiHeadAttention refuses what it cannot do", function()
  harness.raises(function() nn.MultiHeadAttention(8, 3) end, "layers_test.lua:", "3 heads", "width 8")
  harness.raises(function() nn.MultiHeadAttention(8, 4, { kvHeads = 3 }) end, "kvHeads 3")
  harness.raises(function() nn.MultiHeadAttention(8, 2, { casual = true }) end, "layers_test.lua:", "casual", "causal")
  equal(tostring(nn.MultiHeadAttention(8, 2, { causal = true })):match("^[^{]*"),
    "nn.MultiHeadAttention of 2 heads, causal ")
  harness.raises(function() return nn.MultiheadAttention end, "nn.MultiHeadAttention(width, heads)")
end)

test("initialisers have the deviations and bounds of their formulas", function()
  local function weight(start) return started(nn.Linear(300, 100, { init = start }), { 2, 300 })["weight"] end
  for _, row in ipairs {
    { nn.init.xavierUniform(), math.sqrt(6 / 400) / math.sqrt(3), math.sqrt(6 / 400) },
    { nn.init.xavierUniform("tanh"), 5 / 3 * math.sqrt(2 / 400), 5 / 3 * math.sqrt(6 / 400) },
    { nn.init.xavierNormal(2), 2 * math.sqrt(2 / 400) },
    { nn.init.kaimingUniform(), math.sqrt(2 / 300), math.sqrt(6 / 300) },
    { nn.init.kaimingUniform(1, "fan_out"), math.sqrt(1 / 100), math.sqrt(3 / 100) },
    { nn.init.kaimingNormal(), math.sqrt(2 / 300) },
    { nn.init.normal(0.3), 0.3 }, { nn.init.uniform(0.3), 0.3 / math.sqrt(3), 0.3 },
  } do
    local mean, deviation, most = moments(weight(row[1]))
    harness.near(mean, 0, 0.03 * row[2], "mean")
    harness.near(deviation, row[2], 0.03 * row[2], "deviation")
    if row[3] then assert(most <= row[3] and most > 0.99 * row[3], most) end
  end
  equal(weight(nn.init.constant(3))[7], 3)
  local rows = started(nn.Embedding(50, 40, nn.init.xavierNormal()), { 2, dtype = "i32" }).weight
  harness.near(select(2, moments(rows)), math.sqrt(2 / 90), 0.01, "of an embedding")
end)

test("truncated normal and orthogonal starts", function()
  local function weight(start, inputs, outputs)
    return started(nn.Linear(inputs, outputs, { init = start }), { 2, inputs }).weight
  end
  local _, deviation, most = moments(weight(nn.init.truncatedNormal(0.5), 300, 200))
  assert(most <= 1 and most > 0.99, most)
  harness.near(deviation, 0.5 * math.sqrt(0.7737413), 0.005, "deviation")
  local w = weight(nn.init.orthogonal(2), 20, 10)
  for a = 0, 9 do
    for b = 0, a do
      local sum = 0
      for k = 1, 20 do sum = sum + w[20 * a + k] * w[20 * b + k] end
      harness.near(sum, a == b and 4 or 0, 1e-5, "rows")
    end
  end
  local graph = assert(cairn.graph())
  harness.raises(function() graph:parameter("b", { 4 }, nn.init.orthogonal()({ 4 })) end, "layers_test.lua:", "[4]",
    "two dimensions")
end)

test("mistakes in starts are told", function()
  local function built(start)
    return function() nn.build(nn.Linear(2, 2, { init = start }), nil, { 1, 2 }) end
  end
  harness.raises(built("xavier"), "nn.init.NAME(...)", "string")
  harness.raises(built(nn.init.kaimingNormal(nil, "fan")), "'fan'", "fan_in, fan_out")
  harness.raises(function() nn.init.xavierNormal("rleu") end, "'rleu'", "relu")
  harness.raises(function() nn.init.normal(-1) end, "layers_test.lua:", "at least 0")
end)

test("a slip in a name is taken for one", function()
  harness.raises(function() return nn.Liner(2, 2) end, "layers_test.lua:", "'Liner'", "did you mean 'Linear'?")
  harness.raises(function() return nn.embedding end, "did you mean 'Embedding'?")
  harness.raises(function() return nn.MSECritrion end, "did you mean 'MSECriterion'?")
  harness.raises(function() return nn.LookupTabel end, "did you mean 'LookupTable'?")
  equal(nn.Nonesuch, nil)
end)

test("dropout's share is one", function()
  for _, rate in ipairs { -0.1, 1, 0 / 0, "a" } do
    harness.raises(function() nn.Dropout(rate) end, "layers_test.lua:", "below 1")
  end
end)

test("the table of modules has all of them", function()
  local rows = {}
  for _, section in ipairs(require "cairn.nn.reference") do
    for _, row in ipairs(section[2]) do
      assert(not rows[row[1]], row[1])
      rows[row[1]] = row
    end
  end
  for name, value in pairs(nn) do
    if name:find("^%u") and type(value) == "function" and name ~= "Trainer" then assert(rows[name], name) end
  end
  for name in pairs(nn.init) do
    if name ~= "gain" and name ~= "options" then
      local found = false
      for _, row in ipairs(require("cairn.nn.reference").init) do
        found = found or row[1]:find("`" .. name .. "(", 1, true) ~= nil
      end
      assert(found, name)
    end
  end
end)

return harness.finish()
