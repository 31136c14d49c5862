-- Layers for pictures, norms by channel, branches, criterions over pairs: against sums written out here.
local cairn = require "cairn"
local harness = require "harness"
local nn = cairn.nn
local test, equal, near = harness.test, harness.equal, harness.near

local function device() return assert(cairn.device("cpu", { threads = 1 })) end

local function wave(count, factor, size)
  local list = {}
  for i = 1, count do list[i] = math.floor((size or 1) * math.sin(factor * i) * 1e6 + 0.5) / 1e6 end
  return list
end

-- A module's result on x, by the parameters that start(name, count) gives, and its shape.
local function result(model, dims, x, training, values)
  local graph = assert(cairn.graph())
  local context = nn.context(graph, training)
  local y = graph:name(model:build(context, graph:input("x", dims)), "y")
  local shape = y:shape()
  assert(graph:freeze { outputs = { y } })
  local session = assert(cairn.session(assert(cairn.plan(graph, device()))))
  assert(session:initialise(3))
  for name, list in pairs(values or {}) do assert(session:write(name, list)) end
  assert(session:write("x", x))
  assert(session:run())
  return session:read "y", shape, session
end

-- Mean loss of a criterion over two matrices that are parameters, and their gradients.
local function paired(criterion, n, width, a, b, more)
  local graph = assert(cairn.graph())
  local context = nn.context(graph, true)
  local x, y = graph:parameter("a", { n, width }), graph:parameter("b", { n, width })
  local loss, weight = criterion:build(context, x, y)
  assert(graph:freeze { loss = loss, weight = weight })
  local session = assert(cairn.session(assert(cairn.plan(graph, device(), { micro_steps = 2 }))))
  assert(session:initialise(1))
  assert(session:write("a", a))
  assert(session:write("b", b))
  for name, value in pairs(more or {}) do assert(session:write(name, value)) end
  local report = assert(assert(cairn.stepper(session, { micro_steps = 2 })):micro())
  return report.loss, session:read "a/gradient", session:read "b/gradient", report.weight
end

test("Conv2d is its sum, with stride, padding and groups", function()
  local x, w, b = wave(2 * 5 * 4 * 4, 1.1), wave(6 * 3 * 2 * 2, 0.7), wave(6, 1.9)
  local y, shape = result(nn.Conv2d(4, 6, { 3, 2 }, { stride = { 2, 1 }, padding = { 1, 0 }, groups = 2 }),
    { 2, 5, 4, 4 }, x, true, { weight = w, bias = b })
  equal(table.concat(shape, " "), "2 3 3 6")
  for n = 0, 1 do
    for i = 0, 2 do
      for j = 0, 2 do
        for o = 0, 5 do
          local sum = b[o + 1]
          for u = 0, 2 do
            for v = 0, 1 do
              for c = 0, 1 do
                local row = 2 * i + u - 1
                local channel = math.floor(o / 3) * 2 + c
                if row >= 0 and row < 5 then
                  sum = sum + x[((n * 5 + row) * 4 + j + v) * 4 + channel + 1] * w[((o * 3 + u) * 2 + v) * 2 + c + 1]
                end
              end
            end
          end
          near(y[((n * 3 + i) * 3 + j) * 6 + o + 1], sum, 1e-5, "conv")
        end
      end
    end
  end
end)

test("shapes and names are Torch7's", function()
  local function shape(model, dims)
    local count = 1
    for _, dim in ipairs(dims) do count = count * dim end
    return table.concat(select(2, result(model, dims, wave(count, 0.3), true)), " ")
  end
  local picture = { 2, 8, 6, 4 }
  equal(shape(nn.SpatialConvolution(4, 8, 3, 3, 2, 2, 1, 1), picture), "2 4 3 8")
  equal(shape(nn.SpatialMaxPooling(2, 2), picture), "2 4 3 4")
  equal(shape(nn.SpatialAveragePooling(3, 3, 1, 1), picture), "2 6 4 4")
  equal(shape(nn.MaxPool2d(3, { stride = 2, padding = 1 }), picture), "2 4 3 4")
  equal(shape(nn.AvgPool2d(2, { countPadding = false }), picture), "2 4 3 4")
  equal(shape(nn.AdaptiveAvgPool2d(3), picture), "2 3 3 4")
  equal(shape(nn.GlobalAvgPool(), picture), "2 4")
  equal(shape(nn.Upsample { scale = 2 }, picture), "2 16 12 4")
  equal(shape(nn.Upsample({ 5, 7 }, "bilinear"), picture), "2 5 7 4")
  equal(shape(nn.Patches(2, { stride = 2 }), picture), "2 4 3 16")
  equal(shape(nn.Pad({ 0, 1, 0, 0 }, { 0, 0, 2, 0 }), picture), "2 9 8 4")
  equal(shape(nn.ConvTranspose2d(4, 3, 2, { stride = 2 }), picture), "2 16 12 3")
  equal(shape(nn.Conv1d(4, 5, 3, { causal = true, dilation = 2 }), { 2, 9, 4 }), "2 9 5")
  equal(shape(nn.TemporalConvolution(4, 5, 3, 2), { 2, 9, 4 }), "2 4 5")
  equal(shape(nn.Concat(nn.Conv2d(4, 2, 1), nn.Identity()), picture), "2 8 6 6")
  equal(shape(nn.Sequential(nn.ConcatTable(nn.Conv2d(4, 4, 1), nn.Identity()), nn.CAddTable()), picture), "2 8 6 4")
  equal(shape(nn.Sequential(nn.ConcatTable(nn.ReLU(), nn.Identity()), nn.ParallelTable(nn.ReLU(), nn.ReLU()),
    nn.JoinTable()), picture), "2 8 6 8")
  equal(shape(nn.Sequential(nn.GroupNorm(2, 4), nn.LayerScale(4), nn.L2Normalize()), picture), "2 8 6 4")
  equal(shape(nn.LSTM(4, 3, { layers = 2, bidirectional = true }), { 2, 9, 4 }), "2 9 6")
  equal(shape(nn.GRU(4, 3, { bidirectional = true, last = true }), { 2, 9, 4 }), "2 6")
end)

test("BatchNorm normalises, moves its statistics once per step and evaluates by them", function()
  local x = wave(4 * 3 * 2, 1.3)
  local trainer = assert(nn.Trainer { model = nn.BatchNorm(2), criterion = nn.MSECriterion(), input = { 4, 3, 2 },
    device = device(), optim = cairn.optim.sgd { learningRate = 1e-30, accumulate = 2 } })
  local other, target = wave(4 * 3 * 2, 0.9), wave(24, 0.5)
  assert(trainer:step(x, target))
  assert(trainer:step(other, target))
  local function moments(list, channel)
    local sum, squares = 0, 0
    for i = channel, #list, 2 do sum = sum + list[i] end
    for i = channel, #list, 2 do squares = squares + (list[i] - sum / 12) ^ 2 end
    return sum / 12, squares / 12
  end
  local means, variances = trainer.session:read "running_mean", trainer.session:read "running_var"
  local y = trainer:predict(x)
  for channel = 1, 2 do
    local mean, variance = moments(x, channel)
    local mean2, variance2 = moments(other, channel)
    near(means[channel], 0.1 * (mean + mean2) / 2, 1e-6, "running_mean")
    near(variances[channel], 0.9 + 0.1 * (variance + variance2) / 2 * 12 / 11, 1e-6, "running_var")
    near(y[channel], (x[channel] - means[channel]) / math.sqrt(variances[channel] + 1e-5), 1e-5, "evaluated")
    near(result(nn.BatchNorm(2), { 4, 3, 2 }, x, true)[channel], (x[channel] - mean) / math.sqrt(variance + 1e-5), 1e-5,
      "trained")
  end
  trainer:free()
end)

test("DropPath leaves samples out, and only while a graph trains", function()
  local x = wave(32 * 2 * 3, 0.7)
  local y = result(nn.DropPath(0.25), { 32, 2, 3 }, x, true)
  local dropped = 0
  for n = 0, 31 do
    local kept = y[6 * n + 1] ~= 0
    dropped = dropped + (kept and 0 or 1)
    for i = 6 * n + 1, 6 * n + 6 do near(y[i], kept and x[i] / 0.75 or 0, 1e-6, "sample " .. n) end
  end
  assert(dropped > 1 and dropped < 20, dropped)
  near(result(nn.Sequential(nn.DropPath(0.25), nn.MulConstant(1)), { 32, 2, 3 }, x, false)[5], x[5], 1e-6)
end)

-- Numbers of rows a and b, their products times scale plus bias.
local function products(a, b, n, width, scale, bias)
  local s = {}
  for i = 0, n - 1 do
    s[i] = {}
    for j = 0, n - 1 do
      local sum = 0
      for k = 1, width do sum = sum + a[i * width + k] * b[j * width + k] end
      s[i][j] = scale * sum + (bias or 0)
    end
  end
  return s
end

-- By central differences: whether loss(a, b) has these gradients.
local function check(loss, a, b, da, db, weight, tolerance)
  for _, pair in ipairs { { a, da }, { b, db } } do
    for i = 1, #pair[1], 3 do
      local before, values = pair[1][i], {}
      for k = -1, 1, 2 do
        pair[1][i] = before + k * 1e-4
        values[k] = loss()
      end
      pair[1][i] = before
      near(pair[2][i] / weight, (values[1] - values[-1]) / 2e-4, tolerance, "gradient " .. i)
    end
  end
end

test("criterions over pairs are their sums, and so are their gradients", function()
  local n, width = 5, 4
  local a, b = wave(n * width, 1.3, 0.8), wave(n * width, 0.7, 0.8)
  local function info_nce()
    local s, loss = products(a, b, n, width, 2), 0
    for i = 0, n - 1 do
      local row, column = 0, 0
      for j = 0, n - 1 do row, column = row + math.exp(s[i][j]), column + math.exp(s[j][i]) end
      loss = loss + math.log(row) + math.log(column) - 2 * s[i][i]
    end
    return loss / (2 * n)
  end
  for _, learned in ipairs { true, false } do
    local loss, da, db, weight = paired(nn.ContrastiveCriterion { scale = 2, learned = learned }, n, width, a, b)
    near(loss, info_nce(), 1e-5, "InfoNCE")
    check(info_nce, a, b, da, db, weight or 2 * n, 1e-4)
  end
  local function siglip()
    local s, loss = products(a, b, n, width, 3, -1), 0
    for i = 0, n - 1 do
      for j = 0, n - 1 do loss = loss + math.log(1 + math.exp(i == j and -s[i][j] or s[i][j])) end
    end
    return loss / n
  end
  local loss, da, db = paired(nn.SigLIPCriterion { scale = 3, bias = -1 }, n, width, a, b)
  near(loss, siglip(), 1e-5, "SigLIP")
  check(siglip, a, b, da, db, n, 1e-4)
  local function triplet()
    local s, sum = products(a, b, n, width, 1), 0
    for i = 0, n - 1 do
      for j = 0, n - 1 do sum = sum + (i ~= j and math.max(0, 0.3 + s[i][j] - s[i][i]) or 0) end
    end
    return sum / (n * (n - 1))
  end
  loss, da, db = paired(nn.TripletCriterion(0.3), n, width, a, b)
  near(loss, triplet(), 1e-5, "triplet")
  check(triplet, a, b, da, db, n * (n - 1), 1e-4)
end)

test("mistakes are named", function()
  harness.raises(function() nn.Conv2d(4, 6, 3, { groups = 3 }) end, "picture_layers_test.lua:", "groups=3", "4 inputs")
  harness.raises(function() nn.Conv2d(4, 6, 3, { strides = 3 }) end, "picture_layers_test.lua:", "'strides'", "stride")
  harness.raises(function() nn.GroupNorm(3, 4) end, "picture_layers_test.lua:", "groups=3", "4 channels")
  harness.raises(function() nn.DropPath(1) end, "picture_layers_test.lua:", "below 1")
  harness.raises(function() nn.build(nn.BatchNorm(3), nn.MSECriterion(), { 4, 2 }) end, "x[.., 3]", "[4, 2]")
  harness.raises(function() nn.build(nn.Linear(3, 4), nn.ContrastiveCriterion(), { 1, 3 }) end, "batch of one")
  harness.raises(function() nn.build(nn.Linear(3, 4), nn.SigLIPCriterion(), { 1, 3 }) end, "batch of one")
  harness.raises(function() nn.build(nn.CAddTable(), nn.MSECriterion(), { 4, 3 }) end, "a list of values")
end)

return harness.finish()
