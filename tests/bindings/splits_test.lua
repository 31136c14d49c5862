-- K micro-batches of any sizes are one batch of all their samples: 200 random splits of the recipes that come with
-- cairn, with ragged and masked rows. All of them under CAIRN_TEST=long, a share otherwise.
local ffi = require "ffi"
local cairn = require "cairn"
local harness = require "harness"
local generator = require "cairn.random"

local SPLITS, ONE_IN = 200, 8
local LONG = os.getenv "CAIRN_TEST" == "long"
local GRADIENTS, LOSSES = 1e-6, 1e-7  -- relative; of a tensor, by its 2-norm
local IGNORED = -100

local function pick(random, list) return list[math.floor(random() * #list) + 1] end
local function between(random, low, high) return low + math.floor(random() * (high - low + 1)) end

-- Recipes, and options to draw from.
local RECIPES = {
  mlp = { layers = { 1, 2, 3 }, width = { 8, 24, 64 }, activation = { "relu", "gelu", "silu" },
          loss = { "cross_entropy", "cross_entropy", "mse" }, classes = { 2, 5 } },
  gpt2 = { layers = { 1, 2 }, heads = { 1, 2 }, width = { 16, 32 }, vocab = { 17, 64 }, seq = { 5, 16 } },
  llama = { layers = { 1, 2 }, heads = { 2, 4 }, width = { 16, 32 }, vocab = { 17, 64 }, seq = { 5, 16 } },
}
local NAMES = { "mlp", "gpt2", "llama" }

local function draw_options(recipe, choices, random)
  local o, keys = {}, {}
  for _, row in ipairs(recipe.options) do o[row[1]] = row[2] end
  for key in pairs(choices) do keys[#keys + 1] = key end
  table.sort(keys)
  for _, key in ipairs(keys) do o[key] = pick(random, choices[key]) end
  return o
end

local function graph_of(recipe, o, batch)
  local own = {}
  for key, value in pairs(o) do own[key] = value end
  own.batch = batch
  local graph = assert(cairn.graph())
  return assert(graph:freeze(recipe.model(own, graph)))
end

-- Numbers of all rows, by input: {numbers, width (of a row)}. Rows of targets end early, some before they begin.
local function draw_data(graph, o, rows, random)
  local data = {}
  for _, input in ipairs(graph:inputs()) do
    local width = 1
    for d = 2, #input.shape do width = width * input.shape[d] end
    local targets, numbers = input.name:match("^target"), {}
    for row = 1, rows do
      local counted = random() < 0.2 and 0 or between(random, 1, width)
      for at = 1, width do
        local number = 2 * random() - 1
        if input.dtype == "i32" then
          number = math.floor(random() * (o.vocab or o.classes))
          if targets and at > counted and row > 1 then number = IGNORED end
        end
        numbers[(row - 1) * width + at] = number
      end
    end
    data[input.name] = { numbers, width }
  end
  return data
end

local function write(session, data, first, rows)
  for name, column in pairs(data) do
    local numbers, width = column[1], column[2]
    local part = {}
    for i = 1, rows * width do part[i] = numbers[first * width + i] end
    assert(session:write(name, part))
  end
end

-- Sums of gradients by parameter, and the report, after all of `parts` are accumulated.
local function accumulated(recipe, o, data, parts, device, options)
  local sizes, programs, number = {}, {}, {}
  for _, rows in ipairs(parts) do
    if not number[rows] then
      sizes[#sizes + 1], number[rows] = rows, #sizes + 1
      programs[#sizes] = { name = "rows-" .. rows, graph = graph_of(recipe, o, rows) }
    end
  end
  local plans = assert(cairn.plan_set(programs, device, options))
  local sessions = assert(cairn.sessions(plans))
  assert(sessions[1]:initialise(7))
  local stepper = assert(cairn.stepper(sessions[1], { micro_steps = #parts + 1 }))
  local first, report = 0, nil
  for _, rows in ipairs(parts) do
    local session = sessions[number[rows]]
    write(session, data, first, rows)
    report = assert(stepper:micro(session))
    first = first + rows
  end
  local gradients = {}
  for _, info in ipairs(programs[1].graph:parameters()) do
    local count = 1
    for _, dim in ipairs(info.shape) do count = count * dim end
    local buffer = ffi.new("float[?]", count)
    assert(sessions[1]:read(info.name .. "/gradient", buffer))
    gradients[#gradients + 1] = { name = info.name, buffer = buffer, count = count }
  end
  stepper:free()
  for i, session in ipairs(sessions) do
    session:free()
    plans[i]:free()
    programs[i].graph:free()
  end
  return gradients, report
end

-- The largest relative difference of a tensor, and whose it is.
local function apart(ours, theirs)
  local most, where = 0, nil
  for i, one in ipairs(ours) do
    local square, whole = 0, 0
    for at = 0, one.count - 1 do
      local difference = one.buffer[at] - theirs[i].buffer[at]
      square, whole = square + difference * difference, whole + theirs[i].buffer[at] ^ 2
    end
    local relative = square == 0 and 0 or math.sqrt(square / whole)
    if relative > most or relative ~= relative then most, where = relative, one.name end
    if relative ~= relative then return math.huge, where end
  end
  return most, where
end

local worst, worst_loss, taken = { 0, "none" }, 0, 0
local device = assert(cairn.device("cpu", { threads = 2 }))

local function split(number)
  local random = generator(1000 + number)
  local name = NAMES[number % #NAMES + 1]
  local recipe = require("recipes." .. name)
  local o = draw_options(recipe, RECIPES[name], random)
  if recipe.check and recipe.check(o) then o.heads = 1 end
  local rows, parts = between(random, 2, 17), {}
  local left = rows
  while left > 0 do
    parts[#parts + 1] = math.min(left, between(random, 1, math.max(1, math.floor(rows / 2))))
    left = left - parts[#parts]
  end
  local graph = graph_of(recipe, o, rows)
  local data = draw_data(graph, o, rows, random)
  graph:free()
  local options = { policy = pick(random, { "auto", "keep", "recompute" }) }
  local whole, one = accumulated(recipe, o, data, { rows }, device, options)
  local sums, report = accumulated(recipe, o, data, parts, device, options)
  local what = ("split %d: %s of %d rows in %d"):format(number, name, rows, #parts)
  harness.equal(report.step_weight, one.step_weight, what .. ": weight")
  harness.equal(report.outcome, "accumulated", what)
  local difference, where = apart(sums, whole)
  local loss = math.abs(report.step_loss / one.step_loss - 1)
  if difference > worst[1] then worst = { difference, what .. ", " .. where } end
  worst_loss, taken = math.max(worst_loss, loss), taken + 1
  if difference > GRADIENTS then error(("%s: %s is %.3g apart"):format(what, where, difference)) end
  if loss > LOSSES or loss ~= loss then error(("%s: losses are %.3g apart"):format(what, loss)) end
end

for number = 1, SPLITS do
  if LONG or number % ONE_IN == 1 then
    harness.test("split " .. number, function() split(number) end)
  end
end
io.stdout:write(("%d splits; gradients at most %.3g apart (%s), losses %.3g\n"):format(taken, worst[1], worst[2],
  worst_loss))

return harness.finish()
